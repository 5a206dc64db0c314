"""A process and all that it has started: which these are, and the processor time that they have used."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["living_cpu_s", "process_tree"]

_PROC = Path("/proc")
_TICKS_A_SECOND = os.sysconf("SC_CLK_TCK")


def process_tree(*roots: int) -> list[int]:
    """The processes `roots` and their living descendants."""
    children: dict[int, list[int]] = {}
    for entry in _PROC.iterdir():
        if entry.name.isdigit() and (facts := _facts(entry)) is not None:
            children.setdefault(int(facts[1]), []).append(int(entry.name))
    found, waiting = [], list(roots)
    while waiting:
        process = waiting.pop()
        found.append(process)
        waiting += children.get(process, [])
    return found


def living_cpu_s(root: int) -> float:
    """Processor seconds that the living descendants of `root` have used, without `root` itself."""
    ticks = 0
    for process in process_tree(root):
        if process != root and (facts := _facts(_PROC / str(process))) is not None:
            ticks += int(facts[11]) + int(facts[12])
    return ticks / _TICKS_A_SECOND


def _facts(entry: Path) -> list[str] | None:
    """What the kernel says of a process behind its name, as `man 5 proc` lists it; None where it has ended."""
    try:
        # The name of the program stands in brackets and may itself hold brackets and spaces.
        facts = (entry / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return facts or None
