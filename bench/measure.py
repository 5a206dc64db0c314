"""The clock and the processor time of one side's work, and the loop that takes batches."""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Callable, Iterable, Mapping, Sized
from functools import partial
from itertools import islice

from bench.case import Figures
from bench.process_tree import living_cpu_s

__all__ = ["DATALOADER_IMPORTS", "ENGINE_IMPORTS", "cpu_s", "iterate", "timed", "timed_when_warm"]

# What a side has loaded before its clock starts, with what these load only when they are first used.
ENGINE_IMPORTS = (
    "dataflow.beginnings",
    "loaders.torch",
    "connectors.parquet",
    "pyarrow.parquet",
    "pyarrow.dataset",
)
DATALOADER_IMPORTS = ("torch.utils.data", "pyarrow.parquet")


def timed(work: Callable[[], tuple[int, int]]) -> Figures:
    """Do `work`, which returns rows and batches: rows_per_s, wall and processor seconds, and both per batch."""
    cpu, start = cpu_s(), time.perf_counter()
    rows, batches = work()
    wall, cpu = time.perf_counter() - start, cpu_s() - cpu
    return {
        "rows": rows,
        "rows_per_s": rows / wall,
        "wall_s": wall,
        "cpu_s": cpu,
        "wall_us_per_batch": wall / batches * 1e6,
        "cpu_us_per_batch": cpu / batches * 1e6,
    }


def timed_when_warm(epochs: Callable[[int], tuple[int, int]], count: int) -> Figures:
    """What `timed` finds for `count` epochs behind the first two, and the rate of the first: first_rows_per_s.

    These pay for what later ones have: worker processes, threads, and memory that the kernel has to clear, of which
    a window that is read ahead touches the last in the second epoch.
    """
    first = timed(partial(epochs, 1))
    epochs(1)
    return {**timed(partial(epochs, count)), "first_rows_per_s": first["rows_per_s"]}


def iterate(
    loader: Iterable[Mapping[str, Sized]], column: str, *, epochs: int = 1, max_batches: int | None = None
) -> tuple[int, int]:
    """Take all batches, or the first ones, of some epochs; returns rows, by the length of `column`, and batches."""
    rows = batches = 0
    for _ in range(epochs):
        for made in islice(loader, max_batches):
            rows += len(made[column])
            batches += 1
    return rows, batches


def cpu_s() -> float:
    """Processor seconds that this process has used, and those below it that are alive or have ended."""
    own, ended = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in (own, ended)) + living_cpu_s(os.getpid())
