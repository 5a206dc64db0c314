"""One lane on one rank: its windows, read ahead, as a queue of rows; and which lane reads ahead next."""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dataflow.errors import InternalError
from dataflow.execute.budget import Pace
from dataflow.execute.job import Bench, WindowJob
from dataflow.graph.block import Block
from dataflow.order.epoch import EpochOrder, LaneWindow

__all__ = ["ALL_ROWS", "LaneFeed", "LanePlace", "Mend", "Needs", "ReadAhead", "RowQueue", "Segment"]

Bools = npt.NDArray[np.bool_]
Mend = Callable[[Block, WindowJob], Block]


@dataclass(frozen=True, slots=True)
class Segment:
    """Rows `start` to `stop` of a block."""

    block: Block
    start: int
    stop: int

    @property
    def nbytes(self) -> float:
        """Memory of its columns, the block's shared evenly among its rows."""
        return self.block.nbytes * (self.stop - self.start) / max(1, self.block.rows)


@dataclass(frozen=True, slots=True)
class Needs:
    """Which rows of a lane a rank delivers in one epoch.

    Of every `stride` rows from lane row `first` up to `until`, `count` (those of one step); and the ranges of
    `extra`, which are the steps at the end.
    """

    first: int
    count: int
    stride: int
    until: int
    extra: tuple[tuple[int, int], ...] = ()

    def mask(self, start: int, stop: int) -> Bools | None:
        """bool (stop - start,): which of these lane rows are delivered; None where all are."""
        if self.count == self.stride and self.first <= start and stop <= self.until:
            return None
        row = np.arange(start, stop)
        regular = (row >= self.first) & (row < self.until)
        regular &= (row - self.first) % self.stride < self.count if self.stride else False
        for low, high in self.extra:
            regular |= (row >= low) & (row < high)
        return None if regular.all() else regular


ALL_ROWS = Needs(0, 1, 1, 1 << 62)


class LanePlace(NamedTuple):
    """A row of a lane in an epoch."""

    epoch: int
    lane: int
    row: int


class LaneFeed:
    """The windows of one lane that this rank needs, started ahead and handed out block by block.

    Windows are started by `ReadAhead`, or by `next_block` when it cannot wait.

    Args:
        place: the row from which on rows are wanted.
        stride: rows of this lane in a step, to tell which step needs a window first.
    """

    def __init__(self, bench: Bench, order: EpochOrder, place: LanePlace, needs: Needs, stride: int) -> None:
        self.bench, self.lane = bench, place.lane
        self._order, self._needs = order, needs
        self._epoch, self._row, self._stride = place.epoch, place.row, max(1, stride)
        self._windows = self._needed_windows()
        self._next = next(self._windows, None)
        self._jobs: deque[WindowJob] = deque()
        self._current: tuple[WindowJob, Iterator[Block]] | None = None

    def _needed_windows(self) -> Iterator[tuple[LaneWindow, Bools | None]]:
        for window in self._order.windows(self.lane, self._row):
            start = max(window.start, self._row)
            mask = self._needs.mask(start, window.stop)
            if mask is not None and not mask.any():
                continue
            if mask is not None and start > window.start:
                mask = np.concatenate([np.zeros(start - window.start, np.bool_), mask])
            yield window, mask

    @property
    def next_step(self) -> int | None:
        """The step that first needs the next window that is not started; None where all are."""
        return None if self._next is None else max(self._next[0].start, self._row) // self._stride

    @property
    def next_rows(self) -> int:
        """Rows of the next window that is not started."""
        return 0 if self._next is None else self._next[0].rows

    @property
    def ahead_rows(self) -> int:
        """Rows of windows that are started and not begun to be taken."""
        return sum(job.window.rows for job in self._jobs)

    @property
    def held_rows(self) -> int:
        """Rows of the windows that are started, the one being taken included."""
        return self.ahead_rows + (self._current[0].window.rows if self._current is not None else 0)

    @property
    def ahead(self) -> int:
        """Windows that are started and not begun to be taken."""
        return len(self._jobs)

    def start_next(self) -> None:
        """Start to read the next window."""
        if self._next is None:
            raise InternalError(f"lane {self.lane} has no further window.")
        window, mask = self._next
        first = max(0, self._row - window.start)
        first_turn = self._epoch * self.bench.stream.passes
        start, stride = window.start, self._stride
        job = WindowJob(
            self.bench, window, first_turn + window.pass_number, mask, first,
            need=lambda row: (first_turn, (start + row) // stride),
        )  # fmt: skip
        job.start()
        self._jobs.append(job)
        self._next = next(self._windows, None)

    def next_block(self) -> tuple[Block, WindowJob] | None:
        """The next block and the job of its window; waits for it. None behind the lane's end.

        Raises:
            DataflowError: what reading it or an operator raised.
        """
        while True:
            if self._current is not None:
                job, blocks = self._current
                block = next(blocks, None)
                if block is not None:
                    return block, job
                self._current = None
            if not self._jobs:
                if self._next is None:
                    return None
                self.start_next()
            job = self._jobs.popleft()
            self._current = job, job.blocks()

    @property
    def all_started(self) -> bool:
        """Whether no window is left to be started."""
        return self._next is None

    def cancel(self) -> None:
        """Start no further window, and let tasks that have not begun do nothing."""
        self._next = None
        for job in self._jobs:
            job.cancel()
        self._jobs.clear()
        if self._current is not None:
            self._current[0].cancel()
            self._current = None


class RowQueue:
    """The rows of one lane that this rank delivers, taken from the front; each bad row raises or is replaced.

    Args:
        mend: puts other rows in the place of a block's bad ones, or leaves them bad. The error of the first that
            is left is raised when its turn comes.
    """

    def __init__(self, feed: LaneFeed, mend: Mend | None) -> None:
        self.feed, self._mend = feed, mend
        self._ready: deque[Segment] = deque()
        self._error: Exception | None = None

    def take(self, rows: int) -> list[Segment]:
        """The next `rows` rows; waits for them. Nothing is taken where it raises.

        Raises:
            DataflowError: what reading them or an operator raised.
        """
        taken: list[Segment] = []
        left = rows
        while left > 0:
            try:
                head = self._ready.popleft() if self._ready else self._fetched()
            except Exception:
                self._ready.extendleft(reversed(taken))
                raise
            stop = min(head.stop, head.start + left)
            if stop > head.start:
                taken.append(Segment(head.block, head.start, stop))
            if stop < head.stop:
                self._ready.appendleft(Segment(head.block, stop, head.stop))
            left -= stop - head.start
        return taken

    def give_back(self, segments: Sequence[Segment]) -> None:
        """Put back what was taken last."""
        self._ready.extendleft(reversed(segments))

    def _fetched(self) -> Segment:
        if self._error is not None:
            raise self._error
        try:
            found = self.feed.next_block()
            if found is not None and self._mend is not None:
                found = self._mend(*found), found[1]
        except Exception as error:
            self._error = error
            raise
        if found is None:
            raise InternalError(f"lane {self.feed.lane} ended before its rows did.")
        block, _ = found
        if block.bad:
            first = min(block.bad, key=lambda bad: bad.origin)
            self._error = self.feed.bench.ends_with(first)
            return Segment(block, 0, int(np.searchsorted(block.origin, first.origin)))
        return Segment(block, 0, block.rows)


class ReadAhead:
    """Starts windows in the order in which steps need them, as far as count and bytes allow.

    Args:
        pace: has the memory that windows, those being taken included, may hold, and as much as is worth reading
            ahead; two windows are always worth it.
    """

    def __init__(self, bench: Bench, pace: Pace) -> None:
        self._bench, self._row_bytes = bench, pace.row_bytes
        self._limit_bytes, self._ahead_bytes = pace.limit_bytes, pace.ahead_bytes
        self._feeds: list[LaneFeed] = []
        self._heap: list[tuple[int, int, int, LaneFeed]] = []
        self._tie = count()

    def add(self, epoch: int, feeds: Sequence[LaneFeed]) -> None:
        """Consider the lanes of one more epoch."""
        self._feeds.extend(feeds)
        for feed in feeds:
            self._push(epoch, feed)

    def _push(self, epoch: int, feed: LaneFeed) -> None:
        if feed.next_step is not None:
            heapq.heappush(self._heap, (epoch, feed.next_step, next(self._tie), feed))

    @property
    def exhausted(self) -> bool:
        """Whether all windows of the lanes that were added are started."""
        return not self._heap

    def top_up(self) -> None:
        """Start what fits."""
        self._feeds = [feed for feed in self._feeds if not (feed.all_started and feed.ahead == 0)]
        ahead = sum(feed.ahead for feed in self._feeds)
        ahead_bytes = self._row_bytes * sum(feed.ahead_rows for feed in self._feeds)
        while self._heap and (ahead < 2 or ahead_bytes < self._ahead_bytes):
            epoch, _, _, feed = self._heap[0]
            rows = feed.next_rows
            # What is in use counts memory that batches still show; what is estimated, windows yet to be read.
            in_use = self._bench.memory.leased_bytes + self._bench.arrow.bytes
            held = max(in_use, self._row_bytes * sum(f.held_rows for f in self._feeds))
            if rows and held + rows * self._row_bytes > self._limit_bytes:
                return
            heapq.heappop(self._heap)
            if rows:
                # `take` may have started the window of this entry already: the entry then stands for the next one.
                feed.start_next()
                ahead, ahead_bytes = ahead + 1, ahead_bytes + rows * self._row_bytes
            self._push(epoch, feed)
