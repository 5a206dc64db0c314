"""`Bench`: what all jobs of a run work with."""

from __future__ import annotations

from dataclasses import dataclass

from dataflow.execute.last_bad import LastBad
from dataflow.execute.memory import Memory
from dataflow.execute.metrics import Meters
from dataflow.execute.one_by_one import OneByOne
from dataflow.execute.operate import Operators
from dataflow.execute.pools import Pools
from dataflow.execute.program import Took, Turned, untold
from dataflow.execute.row_work import RowWork
from dataflow.execute.streams import OpenStreams
from dataflow.graph.draw import Turn

__all__ = ["Bench"]


@dataclass(frozen=True, slots=True)
class Bench:
    """The work, where it is done (`pools`, of which `operators` and `arranging` hand out their share), what it takes,
    and what is said of it."""

    work: RowWork
    pools: Pools
    operators: Operators
    arranging: OneByOne
    streams: OpenStreams
    memory: Memory
    meters: Meters
    last: LastBad

    def turned(self, turn: Turn, took: Took = untold) -> Turned:
        """What kernels need to know in the pass of `turn`; `took` is told what rows of a window become."""
        return Turned(self.work.seed, turn, self.meters, self.work.tolerant, took)
