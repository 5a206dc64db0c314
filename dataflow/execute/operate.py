"""Operators run ahead of the batches: ranges of windows that have been read, those first that are needed first."""

from __future__ import annotations

import heapq
import threading
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from itertools import count
from typing import NamedTuple

from dataflow.execute.pools import Pools
from dataflow.graph.block import Block

__all__ = ["Need", "Operators", "RangeRun"]

# Tasks handed to the pool for each of its threads: one that runs, and one that follows it at once.
_TASKS_A_THREAD = 2
# Ranges begun and not taken, for each thread: enough to keep the pool busy while the consumer does something else.
_RANGES_A_THREAD = 4

Need = tuple[int, int]  # the first turn of the epoch, and the step in it, whose batch needs a range first
Work = Callable[[int, int], Block]


class RangeRun:
    """The ranges of one window, in order: those not begun, and what the others gave or will give.

    Only `Operators` changes it.

    Args:
        work: what is done for the rows `start` to `stop` of the window.
        ranges: for each range its need, start and stop.
    """

    def __init__(self, work: Work, ranges: Iterable[tuple[Need, int, int]]) -> None:
        self.work = work
        self.left = deque(ranges)
        self.begun: deque[Future[Block]] = deque()
        self.held_bytes = 0
        self.dropped = False


class _Begun(NamedTuple):
    run: RangeRun
    start: int
    stop: int
    made: Future[Block]


class Operators:
    """Keeps the compute pool busy with ranges in the order of their need; thread-safe.

    Args:
        ahead_bytes: how much of what came out may wait to be taken, about, beside a few ranges a thread; what is
            waited for is always begun.
    """

    def __init__(self, pools: Pools, ahead_bytes: int) -> None:
        self._pools, self._ahead_bytes = pools, ahead_bytes
        self._tasks = _TASKS_A_THREAD * pools.threads
        self._ranges = _RANGES_A_THREAD * pools.threads
        self._lock = threading.Lock()
        self._waiting: list[tuple[Need, int, RangeRun]] = []
        self._tie = count()
        self._running = 0
        self._untaken = 0
        self._held_bytes = 0
        self._largest = 0
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
            begun = [self._begin(run)] if run.left and not run.begun else []
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
            run.dropped = True
            run.left.clear()
            self._untaken -= len(run.begun)
            run.begun.clear()
            begun = self._fill()
        self._submit(begun)

    def _queue(self, run: RangeRun) -> None:
        if run.left:
            heapq.heappush(self._waiting, (run.left[0][0], next(self._tie), run))

    def _fill(self) -> list[_Begun]:
        begun = []
        while self._waiting and self._has_room():
            run = heapq.heappop(self._waiting)[-1]
            # Its ranges may have been begun or dropped since.
            if run.left:
                begun.append(self._begin(run))
                self._queue(run)
        return begun

    def _has_room(self) -> bool:
        if self._running >= self._tasks:
            return False
        expected = self._held_bytes + self._running * self._largest
        few = self._untaken < self._ranges or self._waiting[0][0] <= self._wanted
        return few and expected < self._ahead_bytes

    def _begin(self, run: RangeRun) -> _Begun:
        _, start, stop = run.left.popleft()
        made: Future[Block] = Future()
        run.begun.append(made)
        self._running += 1
        self._untaken += 1
        return _Begun(run, start, stop, made)

    def _submit(self, begun: list[_Begun]) -> None:
        # Not under our lock: a pool that is being closed calls `_ended` under a lock that it needs here.
        for each in begun:
            try:
                task = self._pools.compute(each.run.work, each.start, each.stop)
            except RuntimeError:
                each.made.cancel()  # the pool is closed: nobody wants what would come out
                continue
            task.add_done_callback(lambda done, each=each: self._ended(each, done))  # type: ignore[misc]

    def _ended(self, each: _Begun, done: Future[Block]) -> None:
        if done.cancelled():
            each.made.cancel()  # the pool is being closed: it holds a lock that `compute` needs
            return
        error = done.exception()
        size = 0 if error is not None else done.result().nbytes
        with self._lock:
            self._running -= 1
            self._largest = max(self._largest, size)
            self._hold(each.run, size)
            begun = self._fill()
        if error is not None:
            each.made.set_exception(error)
        else:
            each.made.set_result(done.result())
        self._submit(begun)

    def _hold(self, run: RangeRun, size: int) -> None:
        if not run.dropped:
            run.held_bytes += size
            self._held_bytes += size
