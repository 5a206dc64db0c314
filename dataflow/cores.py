"""`available_cores`: how many cores this process may keep busy."""

from __future__ import annotations

import math
import os
from pathlib import Path

__all__ = ["available_cores"]

_CGROUP = Path("/sys/fs/cgroup")


def available_cores() -> int:
    """The cores that this process may use, of which its cgroup may have a quota; at least 1."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    quota = _quota()
    # A part of a core is one more thread: what it may not use is waited for by none of the others.
    return cores if quota is None else max(1, min(cores, math.ceil(quota)))


def _quota() -> float | None:
    """Cores that the cgroup gives at a time, on the average; None where it sets no bound."""
    unified = _words("cpu.max")
    if len(unified) == 2:
        return _share(*unified)
    return _share(*_words("cpu/cpu.cfs_quota_us"), *_words("cpu/cpu.cfs_period_us"))


def _share(*values: str) -> float | None:
    """A quota by its period, both microseconds. "max" and -1 are no quota."""
    if len(values) != 2 or not all(value.isdigit() for value in values):
        return None
    quota, period = map(int, values)
    return quota / period if quota and period else None


def _words(name: str) -> list[str]:
    try:
        return (_CGROUP / name).read_text().split()
    except OSError:
        return []
