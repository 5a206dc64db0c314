"""The lanes of a mixture: which rows of which source each holds, and how many.

Row k of lane l takes the source at index k + l of the schedule, from lane l of that source. Where a source has given
all that it may, its turns are passed over, and the lane's rows behind them move up.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from dataflow.errors import PlanError
from dataflow.order.lanes import below
from dataflow.order.sigma import Sigma

__all__ = ["UNTIL", "LaneRun", "MixtureLanes", "Until"]

Int64s = npt.NDArray[np.int64]
Until = Literal["first", "all", "forever"]
UNTIL = ("first", "all", "forever")

# More rows than any source gives.
_UNBOUNDED = 1 << 62


class LaneRun(NamedTuple):
    """The sources (int64, (rows,)) of consecutive rows of a lane, and the index behind them."""

    sources: Int64s
    stop: int


class MixtureLanes:
    """The lanes of one epoch of a mixture.

    Args:
        sizes: the rows of each source when it has been through once.
        most: the rows that each source may give in an epoch, None for any number.
        until: a lane ends before the first row whose source has none left in it ("first"), or when every source has
            been through once in it ("all").
    """

    def __init__(
        self, sigma: Sigma, sizes: Sequence[int], most: Sequence[int | None], lanes: int, until: Until
    ) -> None:
        self._sigma, self._lanes, self._until = sigma, lanes, until
        self._sizes = sizes
        self._starts = [sigma.counts(lane) for lane in range(lanes)]
        first = until == "first"
        most = [size if first and rows is None else rows for size, rows in zip(sizes, most, strict=True)]
        self._most = [
            np.array([_UNBOUNDED if rows is None else below(rows, lane, lanes) for rows in most], np.int64)
            for lane in range(lanes)
        ]
        self._bounded = [source for source, rows in enumerate(most) if rows is not None]

    @property
    def lengths(self) -> tuple[int, ...] | None:
        """The rows of every lane; None where they never end.

        Raises:
            PlanError: a lane would never end, or all its sources have given what they may before it does.
        """
        if self._until == "forever":
            return None
        return tuple(self.rows(lane, self._end(lane)) for lane in range(self._lanes))

    def _end(self, lane: int) -> int:
        """The index behind the last row of a lane."""
        if self._until == "first":
            ends = [
                self._sigma.nth(source, int(self._starts[lane][source] + self._most[lane][source]))
                for source in self._bounded
            ]
            known = [end for end in ends if end is not None]
            if not known:
                raise PlanError("no source of the mixture ever ends.", hint="use until='all' or 'forever'")
            return min(known)
        behind = [lane]
        for source, size in enumerate(self._sizes):
            rows = below(size, lane, self._lanes)
            last = self._sigma.nth(source, int(self._starts[lane][source]) + rows - 1) if rows else None
            if last is not None:
                behind.append(last + 1)
        return max(behind)

    def taken(self, lane: int, index: int) -> Int64s:
        """The rows (int64, (sources,)) that a lane has taken of each source in front of an index."""
        taken: Int64s = np.minimum(self._sigma.counts(index) - self._starts[lane], self._most[lane])
        return taken

    def rows(self, lane: int, index: int) -> int:
        """The rows of a lane in front of an index."""
        return int(self.taken(lane, index).sum()) if self._bounded else index - lane

    def index(self, lane: int, row: int) -> int:
        """The first index in front of which a lane has `row` rows."""
        low = row + lane
        if not self._bounded or self.rows(lane, low) >= row:
            return low
        step = 1
        while self.rows(lane, low + step) < row:
            low, step = low + step, 2 * step
        high = low + step
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self.rows(lane, middle) >= row else (middle, high)
        return high

    def run(self, lane: int, index: int, rows: int) -> LaneRun:
        """The next `rows` rows of a lane from an index on."""
        if not self._bounded:
            return LaneRun(self._sigma.run(index, index + rows), index + rows)
        found = [np.zeros(0, np.int64)]
        while rows:
            sources = self._sigma.run(index, index + rows)
            kept = self._within(lane, index, sources)
            found.append(sources[kept])
            index += rows
            rows -= len(found[-1])
        return LaneRun(np.concatenate(found), index)

    def _within(self, lane: int, index: int, sources: Int64s) -> npt.NDArray[np.bool_]:
        """Which of the rows from an index on are given by sources that still may."""
        left = self._most[lane] - (self._sigma.counts(index) - self._starts[lane])
        kept = np.ones(len(sources), np.bool_)
        for source in self._bounded:
            if left[source] < len(sources):
                mine = np.flatnonzero(sources == source)
                kept[mine[max(0, int(left[source])) :]] = False
        return kept

    def furthest(self, rows: Sequence[int] | Int64s) -> tuple[int, int]:
        """The least and the greatest index at which lanes stand that have given so many rows."""
        at = [self.index(lane, int(count)) for lane, count in enumerate(rows)]
        return min(at), max(at)
