"""`LaneFeed`: the windows of one lane, started ahead and handed out block by block."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dataflow.errors import InternalError
from dataflow.execute.due import Due
from dataflow.execute.job import WindowJob
from dataflow.execute.needs import Needs
from dataflow.execute.room import CutWindow
from dataflow.execute.workbench import Bench
from dataflow.graph.block import Block
from dataflow.order.epoch import EpochOrder, LaneWindow

__all__ = ["LaneFeed", "LanePlace"]

Bools = npt.NDArray[np.bool_]


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
        self.bench, self.epoch, self.lane = bench, place.epoch, place.lane
        self.goes_on = False  # it has windows to be started again, after none was left
        self._order, self._needs = order, needs
        self._row, self._stride = place.row, max(1, stride)
        self._windows = self._needed_windows()
        self._next = next(self._windows, None)
        self._jobs: deque[WindowJob] = deque()
        self._ahead_rows = 0
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
        return self._ahead_rows

    @property
    def held_rows(self) -> int:
        """Rows of the windows that are started, the one being taken included."""
        return self._ahead_rows + (self._current[0].window.rows if self._current is not None else 0)

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
        first_turn = self.epoch * self.bench.work.stream.passes
        due = Due(first_turn, window.start, self._stride)
        job = WindowJob(
            self.bench, window, first_turn + window.pass_number, mask, first, due,
            may_cut=self._order.chunk_rows > self._chunk,
        )  # fmt: skip
        job.start()
        self._jobs.append(job)
        self._ahead_rows += window.rows
        self._next = next(self._windows, None)

    def next_block(self) -> tuple[Block, WindowJob] | None:
        """The next block and the job of its window; waits for it. None behind the lane's end.

        Raises:
            DataflowError: what reading it or an operator raised.
        """
        while True:
            if self._current is not None:
                job, blocks = self._current
                try:
                    block = next(blocks, None)
                except CutWindow as large:
                    self._cut(job.window, large.row_bytes)
                    continue
                if block is not None:
                    return block, job
                job.release()
                self._current = None
            if not self._jobs:
                if self._next is None:
                    return None
                self.start_next()
            job = self._jobs.popleft()
            self._ahead_rows -= job.window.rows
            self._current = job, job.blocks()

    @property
    def _chunk(self) -> int:
        """The number of rows at whose multiples a window may be cut."""
        return self.bench.work.program.chunk or 1

    def _cut(self, window: LaneWindow, row_bytes: float) -> None:
        """Begin again with a window of which nothing has been taken: it and those behind it become smaller."""
        fitting = min(self._order.chunk_rows / 2, self.bench.memory.room.cut_bytes / 2 / row_bytes)
        self.goes_on = self._next is None
        self._stop_all()
        self._row = max(self._row, window.start)
        self._order = self._order.in_chunks(max(1, int(fitting) // self._chunk) * self._chunk)
        self._windows = self._needed_windows()
        self._next = next(self._windows, None)

    @property
    def is_over(self) -> bool:
        """Whether no window is left to be started or to be taken."""
        return self._next is None and not self._jobs and self._current is None

    def cancel(self) -> None:
        """Start no further window, and let tasks that have not begun do nothing."""
        self._next = None
        self._stop_all()

    def _stop_all(self) -> None:
        for job in self._jobs:
            job.cancel()
        self._jobs.clear()
        self._ahead_rows = 0
        if self._current is not None:
            self._current[0].cancel()
            self._current = None
