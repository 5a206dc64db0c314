"""Interleaved repeats: every side of a case once, then every side again, each time in a fresh process."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.case import Case, Figures, Need, Side
from bench.data import data_folder
from bench.memory import PeakMemory
from dataflow.errors import DataflowError

__all__ = ["CaseFailed", "Runs", "run_case"]

# Far beyond any side's work: a side that hangs must not hold up the others for ever.
_TIMEOUT_S = 900.0
_PACKAGES = Path(__file__).parents[1]

Said = Callable[[str], None]


class CaseFailed(DataflowError):
    """A side of a case ended with an error, or did not end."""


@dataclass(frozen=True)
class Runs:
    """The figures of every repeat of every side of a case; repeat i of one side ran beside repeat i of the others.

    `left_out` are the sides that did not run, and what each of them lacks.
    """

    case: Case
    figures: Mapping[str, list[Figures]] = field(default_factory=dict)
    left_out: Mapping[str, Need] = field(default_factory=dict)


def run_case(case: Case, *, repeats: int, quick: bool, say: Said) -> Runs:
    """Make the data of a case, then run its sides `repeats` times in turn. `say` is told what happens.

    A side that lacks what it needs is left out.

    Raises:
        CaseFailed: a side failed; has the end of what it wrote.
    """
    left_out = {side.name: need for side in case.sides if (need := case.lacking(side)) is not None}
    sides = [side for side in case.sides if side.name not in left_out]
    figures: dict[str, list[Figures]] = {side.name: [] for side in sides}
    if case.sides and not sides:
        return Runs(case, figures, left_out)
    say(f"{case.name}: data")
    scale = "quick" if quick else "full"
    made, _ = _run_worker(["prepare", case.name, scale], memory=False)
    for number in range(repeats):
        for side in sides:
            if side.repeats is not None and number >= side.repeats:
                continue
            say(f"{case.name}: {side.name} {number + 1}/{repeats}")
            figures[side.name].append(_run_side(case, side, made["folder"], scale))
    return Runs(case, figures, left_out)


def _run_side(case: Case, side: Side, folder: str, scale: str) -> Figures:
    measured, peak_bytes = _run_worker(["run", case.name, scale, side.name, folder], memory=side.memory)
    imports = measured.pop("imports_bytes")
    if side.memory:
        measured["peak_mb"] = max(0, peak_bytes - imports) / 1e6
    return measured


def _run_worker(arguments: Sequence[str], *, memory: bool) -> tuple[dict[str, Any], int]:
    """What a worker prints, and the peak memory in bytes of it and its children where asked for."""
    command = [sys.executable, "-m", "bench.worker", *arguments]
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(
            command, stdout=out, stderr=errors, env=_environment(), start_new_session=True
        )
        peak_bytes = 0
        try:
            if memory:
                with PeakMemory(process.pid) as peak:
                    process.wait(_TIMEOUT_S)
                peak_bytes = peak.peak_bytes
            else:
                process.wait(_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            raise CaseFailed(
                f"bench {' '.join(arguments)} did not end within {_TIMEOUT_S:.0f} s.",
                hint="run it with --quick",
            ) from None
        finally:
            _end(process)
        out.seek(0)
        errors.seek(0)
        if process.returncode:
            raise CaseFailed(
                f"bench {' '.join(arguments)} ended with {process.returncode}:\n{errors.read()[-2000:]}",
                hint="run it alone: " + " ".join(command[1:]),
            )
        measured: dict[str, Any] = json.loads(out.read().splitlines()[-1])
        return measured, peak_bytes


def _environment() -> dict[str, str]:
    # The packages are found from any folder, and indexes do not land among the user's own.
    path = os.pathsep.join(filter(None, [str(_PACKAGES), os.environ.get("PYTHONPATH")]))
    return {**os.environ, "PYTHONPATH": path, "DATAFLOW_CACHE": str(data_folder() / "cache")}


def _end(process: subprocess.Popen[bytes]) -> None:
    """End whatever of the side is still alive: it is the leader of a session of its own."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
