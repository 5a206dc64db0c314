"""The deal: rows are taken round-robin from the lanes that still have one, in lane order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dataflow.errors import InternalError

__all__ = ["Deal", "Dealt", "Stopped", "deal", "first_cap", "share"]

Int64s = npt.NDArray[np.int64]


class Deal:
    """The deal of lanes with known lengths: in the order (row of the lane, lane), past lanes that have ended.

    Args:
        lengths: rows of every lane.
    """

    def __init__(self, lengths: Sequence[int] | Int64s) -> None:
        self.lengths = np.asarray(lengths, np.int64)
        lanes = len(self.lengths)
        if not lanes:
            raise InternalError("a deal needs at least one lane")
        self._steps = np.sort(self.lengths)
        before = np.cumsum(self._steps) - self._steps
        # Rows dealt when every lane has given min(length, step): up to there the deal is linear in between.
        self._dealt = before + self._steps * np.arange(lanes, 0, -1)
        self.total = int(self.lengths.sum())

    def taken(self, rows: int) -> Int64s:
        """How many rows each lane has given after `rows` rows of the deal: int64 (lanes,)."""
        level = self._level(rows)
        out = np.minimum(self.lengths, level)
        rest = rows - int(out.sum())
        if rest > 0:
            out[np.flatnonzero(self.lengths > level)[:rest]] += 1
        return out

    def _level(self, rows: int) -> int:
        """The rounds completed after `rows` rows."""
        passed = int(np.searchsorted(self._dealt, rows, "right"))
        if passed == len(self._dealt):
            return int(self._steps[-1])
        step, dealt = (int(self._steps[passed - 1]), int(self._dealt[passed - 1])) if passed else (0, 0)
        return step + (rows - dealt) // (len(self._steps) - passed)


class Dealt(NamedTuple):
    """A deal that is settled: the rows of each lane, and the lane at which the next batch begins (0 where all lanes
    have ended before the batch was full)."""

    counts: tuple[int, ...]
    turn: int


class Stopped(NamedTuple):
    """A deal that is not settled: the first lane it reached that has neither a row to give nor ended."""

    lane: int


def deal(give: Sequence[int], ended: Sequence[bool], turn: int, size: int) -> Dealt | Stopped:
    """Deal `size` rows from lanes that can give `give` rows now, beginning at lane `turn`.

    `ended[l]` says that lane l has no row behind those.
    """
    lanes = len(give)
    turned = [*range(turn, lanes), *range(turn)]
    known = Deal([give[lane] for lane in turned])
    short = [(give[lane], place) for place, lane in enumerate(turned) if not ended[lane]]
    if short:
        level, place = min(short)
        before = sum(min(give[lane], level + (i < place)) for i, lane in enumerate(turned))
        if before < size:
            return Stopped(turned[place])
    rows = min(size, known.total)
    taken = known.taken(rows).tolist()
    counts = [0] * lanes
    for lane, count in zip(turned, taken, strict=True):
        counts[lane] = count
    if rows < size:
        return Dealt(tuple(counts), 0)
    last = max(range(lanes), key=lambda place: (taken[place], place)) if rows else -1
    return Dealt(tuple(counts), (turn + last + 1) % lanes)


def share(size: int, rank: int, world: int) -> tuple[int, int]:
    """The part start..stop of `size` rows that `rank` takes: equal within one row, the first ranks longer."""
    whole, longer = divmod(size, world)
    return rank * whole + min(rank, longer), (rank + 1) * whole + min(rank + 1, longer)


def first_cap(batch: int, lanes: int) -> int:
    """Rows that a lane offers to the deal at first: a fair share of four batches."""
    return max(1, 4 * batch // lanes)
