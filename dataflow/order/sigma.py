"""σ, the schedule of a mixture as a sequence: worked out as far as it is asked for, and kept.

Under whole weights of sum W it has the period W as soon as two rows W apart are owed the same, so that one period is
all there is to be kept. Until then a row costs about half a microsecond and two bytes.
"""

from __future__ import annotations

import threading
from bisect import bisect_right

import numpy as np
import numpy.typing as npt

from dataflow.errors import InternalError
from dataflow.order.chairman import Chairman
from dataflow.order.mixture import Change, Schedule

__all__ = ["Sigma"]

Int64s = npt.NDArray[np.int64]
# Rows that are worked out at a time: one set of counts for each is small beside them.
_CHUNK_ROWS = 1 << 13


class Sigma:
    """The source at every index, and the counts in front of it. Safe to ask from several threads."""

    def __init__(self, schedule: Schedule) -> None:
        self._stretches = [_Stretch(change) for change in schedule.changes]
        known = self._stretches[-1].start
        self._planned = [point for point in schedule.planned if point[0] > known]
        self._lock = threading.RLock()

    @property
    def sources(self) -> int:
        """How many there are."""
        return len(self._stretches[0].change.weights)

    def run(self, start: int, stop: int) -> Int64s:
        """The sources (int64, (stop - start,)) at indices `start` to `stop`."""
        parts = [np.zeros(0, np.int64)]
        with self._lock:
            while start < stop:
                stretch, end = self._stretch(start)
                until = stop if end is None else min(stop, end)
                parts.append(stretch.run(start - stretch.start, until - stretch.start))
                start = until
        return np.concatenate(parts)

    def counts(self, index: int) -> Int64s:
        """How many rows each source (int64, (sources,)) has in front of an index."""
        with self._lock:
            stretch, _ = self._stretch(index)
            return stretch.first + stretch.counts(index - stretch.start)

    def nth(self, source: int, number: int) -> int | None:
        """The index of row `number` (0: the first) of a source; None where it never comes."""
        with self._lock:
            for at, stretch in enumerate(self._stretches):
                if at + 1 == len(self._stretches) and self._planned:
                    self._begin_planned()
                if at + 1 == len(self._stretches) or self._stretches[at + 1].first[source] > number:
                    here = stretch.nth(source, number - int(stretch.first[source]))
                    return None if here is None else stretch.start + here
            raise InternalError("a schedule without a change of weights.")

    def changes(self, index: int) -> tuple[Change, ...]:
        """The changes up to and at an index, those that were planned with their counts."""
        with self._lock:
            self._stretch(index)
            return tuple(stretch.change for stretch in self._stretches if stretch.start <= index)

    def _stretch(self, index: int) -> tuple[_Stretch, int | None]:
        """The stretch that holds an index, and where it ends."""
        while self._planned and self._planned[0][0] <= index:
            self._begin_planned()
        at = bisect_right(self._stretches, index, key=lambda stretch: stretch.start) - 1
        if at + 1 < len(self._stretches):
            return self._stretches[at], self._stretches[at + 1].start
        return self._stretches[at], self._planned[0][0] if self._planned else None

    def _begin_planned(self) -> None:
        index, weights = self._planned.pop(0)
        last = self._stretches[-1]
        counts = (last.first + last.counts(index - last.start)).tolist()
        change = Change.carrying(counts, last.change.owed(counts), weights)
        self._stretches.append(_Stretch(change))


class _Stretch:
    """σ from one change of weights on, its rows counted from there."""

    def __init__(self, change: Change) -> None:
        self.change, self.start = change, change.index
        self.first = np.array(change.counts, np.int64)
        self._weights = np.array(change.weights, np.int64) if sum(change.weights) < 1 << 62 else None
        self._period = sum(change.weights)
        self._rule = Chairman(change.weights, change.debt)
        self._kind = np.uint8 if len(change.weights) <= 256 else np.uint32
        self._rows = 0  # that are worked out
        self._starts: list[int] = []  # of the chunks
        self._chunks: list[npt.NDArray[np.unsignedinteger]] = []
        self._before: list[Int64s] = [
            np.zeros_like(self.first)
        ]  # counts in front of each chunk, and of the next
        self._cycle: int | None = None  # where the first period that comes again begins
        self._whole: Int64s | None = None  # that period

    def run(self, start: int, stop: int) -> Int64s:
        self._reach(stop)
        if self._cycle is None or stop <= self._rows:
            return self._kept(start, stop)
        if self._whole is None:
            self._whole = self._kept(self._cycle, self._cycle + self._period)
        head = self._kept(start, min(stop, self._cycle)) if start < self._cycle else np.zeros(0, np.int64)
        place = (np.arange(max(start, self._cycle), stop) - self._cycle) % self._period
        return np.concatenate([head, self._whole[place]])

    def counts(self, row: int) -> Int64s:
        self._reach(row)
        turns = 0
        if self._cycle is not None and row > self._rows:
            turns, place = divmod(row - self._cycle, self._period)
            row = self._cycle + place
        out = self._counted(row)
        return out if not turns or self._weights is None else out + turns * self._weights

    def nth(self, source: int, number: int) -> int | None:
        """As `Sigma.nth`, of the rows from here on."""
        weight = self.change.weights[source]
        if not weight:
            return None
        while self._cycle is None and self._before[-1][source] <= number:
            self._extend()
        turns = 0
        if self._cycle is not None and self._before[-1][source] <= number:
            # The last period that is kept is the one that comes again.
            turns = (number - int(self._before[-1][source])) // weight + 1
        number -= turns * weight
        low, high = 0, len(self._chunks)
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self._before[middle][source] <= number else (low, middle)
        inside = np.flatnonzero(self._chunks[low] == source)
        return self._starts[low] + int(inside[number - int(self._before[low][source])]) + turns * self._period

    def _counted(self, row: int) -> Int64s:
        at = bisect_right(self._starts, row) - 1
        if at < 0:
            return np.zeros_like(self.first)
        inside = self._chunks[at][: row - self._starts[at]]
        return self._before[at] + np.bincount(inside, minlength=len(self.first))

    def _kept(self, start: int, stop: int) -> Int64s:
        """Rows that are worked out."""
        if start >= stop:
            return np.zeros(0, np.int64)
        first, last = bisect_right(self._starts, start) - 1, bisect_right(self._starts, stop - 1)
        rows = np.concatenate(self._chunks[first:last])
        return rows[start - self._starts[first] : stop - self._starts[first]].astype(np.int64)

    def _reach(self, row: int) -> None:
        while self._cycle is None and self._rows < row:
            self._extend()

    def _extend(self) -> None:
        """Work out one more chunk; none reaches over the end of a period."""
        rows = min(_CHUNK_ROWS, self._period - self._rows % self._period)
        chunk = self._rule.take(rows)
        self._starts.append(self._rows)
        self._chunks.append(chunk.astype(self._kind))
        self._before.append(self._before[-1] + np.bincount(chunk, minlength=len(self.first)))
        self._rows += rows
        if self._rows % self._period == 0 and self._weights is not None:
            begun = self._rows - self._period
            if np.array_equal(self._before[-1] - self._counted(begun), self._weights):
                self._cycle = begun
