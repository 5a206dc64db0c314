"""Operators run ahead of the batches: ranges of windows that have been read, those first that are needed first."""

from __future__ import annotations

import heapq
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from itertools import count
from typing import NamedTuple

from dataflow.execute.due import Due, Need
from dataflow.execute.pools import Pools
from dataflow.graph.block import Block

__all__ = ["Operators", "RangeRun"]

# Tasks handed to the pool for each of its threads: one that runs, and one that follows it at once.
_TASKS_A_THREAD = 2
# Ranges begun and not taken, for each thread: enough to keep the pool busy while the consumer does something else.
_RANGES_A_THREAD = 4
# What a range may give, about, once it is known what a row gives; before that it has few rows.
_RANGE_BYTES = 4 << 20
_FIRST_ROWS = 16
# Rows that go into memory of batches: a range of so many is a small part of a batch, and what it costs beside them (0.5
# ms for a chain of steps on images) a small part of it.
_PLACED_ROWS = 16

Work = Callable[[int, int], Block]


class RangeRun:
    """The rows of one window that operators have yet to see, and what the ranges begun gave or will give.

    Only `Operators` changes it.

    Args:
        work: what is done for the rows `start` to `stop` of the window.
        due: when rows of the window are needed.
        start, stop: the rows that are wanted.
        chunk: ranges begin at multiples of it; None: all rows are one range.
        by_batch: no range has rows of two batches.
    """

    def __init__(
        self,
        work: Work,
        due: Due,
        start: int,
        stop: int,
        chunk: int | None,
        *,
        by_batch: bool = False,
    ) -> None:
        self.work: Work | None = work  # None where nothing is left to be done
        self._due, self._at, self._stop = due, start, stop
        self._chunk, self._by_batch = chunk, by_batch
        # Small at first, so that slow operators give the first batch soon.
        self._grown_rows = 4 * _FIRST_ROWS
        self.begun: deque[Future[Block]] = deque()
        self.held_bytes = 0
        self.dropped = False

    @property
    def left(self) -> int:
        """Rows of no range yet."""
        return self._stop - self._at

    @property
    def need(self) -> Need:
        """When the first of these is needed."""
        return self._due.need(self._at)

    def cut(self, fitting_rows: int, placed_rows: int) -> tuple[int, int]:
        """Take the next range off, of about `fitting_rows` rows at most; by batch, of `placed_rows` at least."""
        start = self._at
        if self._chunk is None:
            self._at = self._stop
        else:
            rows, edge = min(fitting_rows, self._grown_rows), self._stop
            if self._by_batch:
                rows, edge = max(rows, placed_rows), self._due.batch(start).stop
            self._at = min(self._stop, edge, start + max(1, rows // self._chunk) * self._chunk)
            self._grown_rows *= 2
        if not self.left:
            self.work = None  # it holds the window
        return start, self._at

    def give_up(self) -> None:
        """Leave out the rest, and let go of the window."""
        self._at, self.work, self.dropped = self._stop, None, True
        self.begun.clear()


class _Begun(NamedTuple):
    run: RangeRun
    work: Work
    start: int
    stop: int
    made: Future[Block]


class Operators:
    """Keeps the compute pool busy with ranges in the order of their need; thread-safe.

    Args:
        ahead_bytes: how much of what came out, or will come out of what runs, may wait to be taken. What is waited
            for is begun in any case, a range a thread.
        most_rows: rows of a range at most.
    """

    def __init__(self, pools: Pools, ahead_bytes: int, most_rows: int) -> None:
        self._pools, self._ahead_bytes, self._most_rows = pools, ahead_bytes, most_rows
        self._tasks = _TASKS_A_THREAD * pools.threads
        self._ranges = _RANGES_A_THREAD * pools.threads
        self._lock = threading.Lock()
        self._waiting: list[tuple[Need, int, RangeRun]] = []
        self._tie = count()
        self._running = 0
        self._running_rows = 0
        self._untaken = 0
        self._held_bytes = 0
        self._row_bytes = 0.0  # the most that a row of the windows has given
        self._wanted: Need = (0, -1)

    def add(self, run: RangeRun) -> None:
        """Consider the ranges of one more window."""
        with self._lock:
            self._queue(run)
            begun = self._fill()
        self._submit(begun)

    def want(self, need: Need) -> None:
        """All ranges needed up to there are waited for now, lane by lane: begin them however many lie ready."""
        with self._lock:
            self._wanted = need
            begun = self._fill()
        self._submit(begun)

    def next(self, run: RangeRun) -> Block | None:
        """What the next range of a window gave; waits for it. None behind the last one.

        Raises:
            Exception: what its operators raised.
        """
        with self._lock:
            begun = [] if run.begun else self._begin(run)
            made = run.begun.popleft() if run.begun else None
            self._untaken -= made is not None
        self._submit(begun)
        if made is None:
            return None
        block = made.result()
        with self._lock:
            self._hold(run, -block.nbytes)
            begun = self._fill()
        self._submit(begun)
        return block

    def drop(self, run: RangeRun) -> None:
        """Let go of a window's ranges; those that have not begun never will."""
        with self._lock:
            self._hold(run, -run.held_bytes)
            self._untaken -= len(run.begun)
            run.give_up()
            begun = self._fill()
        self._submit(begun)

    def _queue(self, run: RangeRun) -> None:
        if run.left:
            heapq.heappush(self._waiting, (run.need, next(self._tie), run))

    def _fill(self) -> list[_Begun]:
        begun: list[_Begun] = []
        while self._waiting and self._has_room():
            need, _, run = heapq.heappop(self._waiting)
            # A range may have been begun since, or the window dropped.
            if run.left and run.need == need:
                begun += self._begin(run)
            self._queue(run)
        return begun

    def _has_room(self) -> bool:
        wanted = self._waiting[0][0] <= self._wanted
        if wanted and self._running < self._pools.threads:
            return True
        measured = self._row_bytes > 0 or self._running < self._pools.threads
        few = self._running < self._tasks and (wanted or self._untaken < self._ranges)
        expected = self._held_bytes + self._running_rows * self._row_bytes
        return measured and few and expected < self._ahead_bytes

    def _begin(self, run: RangeRun) -> list[_Begun]:
        work = run.work
        if work is None:
            return []
        fitting = int(_RANGE_BYTES / self._row_bytes) if self._row_bytes else _FIRST_ROWS
        start, stop = run.cut(min(fitting, self._most_rows), self._placed_rows())
        made: Future[Block] = Future()
        run.begun.append(made)
        self._running += 1
        self._running_rows += stop - start
        self._untaken += 1
        return [_Begun(run, work, start, stop, made)]

    def _placed_rows(self) -> int:
        # No more than leave each thread its tasks within what may lie ready.
        room = self._ahead_bytes / self._tasks
        return int(min(_PLACED_ROWS, room / self._row_bytes)) if self._row_bytes else 1

    def _submit(self, begun: list[_Begun]) -> None:
        # Not under our lock: a pool that is being closed calls `_ended` under a lock that it needs here.
        for each in begun:
            try:
                task = self._pools.compute(each.work, each.start, each.stop)
            except RuntimeError as error:
                self._refused(each, error)
                continue
            task.add_done_callback(lambda done, each=each: self._ended(each, done))  # type: ignore[misc]

    def _refused(self, each: _Begun, error: RuntimeError) -> None:
        if self._pools.closed:
            each.made.cancel()  # nobody wants what would come out
            return
        # No thread can be started.
        with self._lock:
            self._leave(each)
        each.made.set_exception(error)

    def _ended(self, each: _Begun, done: Future[Block]) -> None:
        if done.cancelled():
            each.made.cancel()  # the pool is being closed: it holds a lock that `compute` needs
            return
        error = done.exception()
        size = 0 if error is not None else done.result().nbytes
        with self._lock:
            self._leave(each)
            self._row_bytes = max(self._row_bytes, size / (each.stop - each.start))
            self._hold(each.run, size)
            begun = self._fill()
        if error is not None:
            each.made.set_exception(error)
        else:
            each.made.set_result(done.result())
        self._submit(begun)

    def _leave(self, each: _Begun) -> None:
        self._running -= 1
        self._running_rows -= each.stop - each.start

    def _hold(self, run: RangeRun, size: int) -> None:
        if not run.dropped:
            run.held_bytes += size
            self._held_bytes += size
