"""What must be in memory at once on a rank, beside what it may take."""

from __future__ import annotations

from dataclasses import dataclass

from dataflow.execute.budget import Budget
from dataflow.execute.compile import Plan
from dataflow.execute.outline.wording import megabytes
from dataflow.options import LoaderOptions, World
from dataflow.order.batches import Batching
from dataflow.wording import counted

__all__ = ["MemoryFacts", "memory_of"]


@dataclass(frozen=True, kw_only=True)
class MemoryFacts:
    """Bytes that windows, read-ahead and all else take on a rank with so many threads, and `memory_limit`."""

    lanes: int
    window_rows: int
    row_bytes: float
    overhead_bytes: int
    resident_bytes: int
    memory_limit: int
    threads: int

    def lines(self) -> list[str]:
        """One fact a line."""
        lanes, rows = counted(self.lanes, "lane"), counted(self.window_rows, "row")
        lines = [
            f"resident on a rank: {megabytes(self.resident_bytes)}",
            f"  windows of {lanes} at most and one ahead, each {rows} of {counted(round(self.row_bytes), 'byte')}",
            f"  {megabytes(self.overhead_bytes)} beside them: {counted(self.threads, 'thread')}, allocators",
            f"memory_limit: {megabytes(self.memory_limit)}",
        ]
        if self.resident_bytes > self.memory_limit:
            lines.append("  too little: a smaller window, fewer lanes, or a larger memory_limit is needed")
        return lines


def memory_of(plan: Plan, batching: Batching, world: World, options: LoaderOptions) -> MemoryFacts:
    """What a loader with these options needs."""
    need = Budget(plan, batching, world, options)
    return MemoryFacts(
        lanes=need.lanes_here,
        window_rows=need.window_rows,
        row_bytes=plan.row_bytes,
        overhead_bytes=need.beside_bytes,
        resident_bytes=round(need.resident_bytes),
        memory_limit=options.memory_limit,
        threads=options.threads,
    )
