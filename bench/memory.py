"""Memory of a tree of processes: its proportional set size, in which shared pages count once."""

from __future__ import annotations

import threading
from pathlib import Path

from bench.process_tree import process_tree

__all__ = ["PeakMemory", "tree_pss_bytes"]

_PROC = Path("/proc")


def tree_pss_bytes(*roots: int) -> int:
    """PSS of the processes `roots` and of all below them; a process that ends meanwhile counts nothing.

    Source: /proc/PID/smaps_rollup, see `man 5 proc`.
    """
    return sum(map(_pss_bytes, process_tree(*roots)))


def _pss_bytes(process: int) -> int:
    try:
        for line in (_PROC / str(process) / "smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    except OSError:
        return 0
    return 0


class PeakMemory:
    """Samples the PSS of trees of processes until it is left; `peak_bytes` is the largest sample.

    Every sample walks the processes' page tables, about 10 ms a GB, so it is not taken more often than `period_s`.
    """

    def __init__(self, *roots: int, period_s: float = 0.05) -> None:
        self.peak_bytes = 0
        self._roots, self._period_s = roots, period_s
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._sample, name="dataflow-bench-memory", daemon=True)

    def _sample(self) -> None:
        while not self._stop.wait(self._period_s):
            self.peak_bytes = max(self.peak_bytes, tree_pss_bytes(*self._roots))

    def __enter__(self) -> PeakMemory:
        self.peak_bytes = tree_pss_bytes(*self._roots)
        self._thread.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._stop.set()
        self._thread.join()
