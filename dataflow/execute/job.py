"""One window on its way: its order is worked out, its fragments are read, its operators run range by range."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import CancelledError, Future
from dataclasses import replace
from functools import partial
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from dataflow.execute.due import Due
from dataflow.execute.gather import Gather, gathers_of
from dataflow.execute.operate import RangeRun
from dataflow.execute.program import cut
from dataflow.execute.slots import Slots
from dataflow.execute.workbench import Bench
from dataflow.graph.block import BadSample, Block
from dataflow.graph.calls import forget_frames
from dataflow.graph.draw import Turn
from dataflow.order.epoch import LaneWindow

__all__ = ["WindowJob"]

T = TypeVar("T")
Bools = npt.NDArray[np.bool_]


class WindowJob:
    """Reads a window and runs the operators on it; `blocks` yields what comes out, in delivery order.

    Args:
        needed: bool (window rows,): the rows that this rank delivers; None for all.
        first: only rows of the window from here on are wanted.
        due: when rows of the window are needed.
        may_cut: the window may be made smaller where its rows are large: `blocks` then raises CutWindow.
    """

    def __init__(
        self, bench: Bench, window: LaneWindow, turn: Turn, needed: Bools | None, first: int,
        due: Due, *, may_cut: bool = False,
    ) -> None:  # fmt: skip
        self.bench, self.window = bench, window
        self._share = bench.memory.room.share(window.rows, may_cut=may_cut)
        self.turn = turn
        self._turned = bench.turned(turn, self._share.took)
        self._needed, self._first, self._due = needed, first, due
        self._gathers: list[Gather] = []
        self._read: Future[RangeRun | Block] = Future()
        self._left = 0
        self._lock = threading.Lock()
        self._failed: tuple[int, BaseException] | None = None
        self._cancelled = False

    def start(self) -> None:
        """Work out the order, then read, then let the operators run; returns at once."""
        self.bench.pools.plan(self._plan).add_done_callback(self._planned)

    def cancel(self) -> None:
        """Let tasks that have not begun do nothing."""
        with self._lock:
            self._cancelled = True
            self._gathers = []
            read = self._read
        self.release()
        if read.done() and not read.cancelled() and read.exception() is None:
            self._drop(read.result())

    def release(self) -> None:
        """All its rows have been taken."""
        self._share.release()

    def _drop(self, ready: RangeRun | Block) -> None:
        if isinstance(ready, RangeRun):
            self.bench.operators.drop(ready)

    def _planned(self, done: Future[None]) -> None:
        error = _error_of(done)
        if error is not None:
            self._finish(error)

    def _plan(self) -> None:
        if self._cancelled:
            return self._finish(CancelledError())
        work, memory = self.bench.work, self.bench.memory
        with self.bench.meters.busy("order") as stage:
            window = self.window.resolve()
            stage.rows = window.rows
            wanted = self._wanted(window.rows)
            self._gathers = gathers_of(
                work.program, work.stream, window, wanted, memory.buffers, memory.arrow, self._share
            )
        tasks = [(gather, number) for gather in self._gathers for number in range(len(gather.spans))]
        self._left = len(tasks)
        if not tasks:
            self._all_read()
        for task, (gather, number) in enumerate(tasks):
            self._start_read(task, gather, number)
        return None

    def _wanted(self, rows: int) -> Bools | None:
        """The rows that must be read: blocks of batched functions are read whole."""
        chunk = self.bench.work.program.chunk
        wanted = self._needed if chunk == 1 else None
        if self._first and chunk is not None:
            wanted = np.ones(rows, np.bool_) if wanted is None else wanted.copy()
            wanted[: self._first // chunk * chunk] = False
        return wanted

    def _start_read(self, task: int, gather: Gather, number: int) -> None:
        span = gather.spans[number]
        index = gather.group.indexes[span.leaf]
        before, done = None, None
        if (span.lo, span.hi) != tuple(index.starts[span.fragment : span.fragment + 2]):
            before, done = self.bench.streams.chain.link(index, gather.group.schema, span)
        try:
            future = self.bench.pools.read(self._read_span, task, gather, number, before)
        except BaseException:
            if done is not None:
                done.set()
            raise
        if done is not None:
            # Also where the task is cancelled: whoever waits for it must not wait for ever.
            future.add_done_callback(lambda _: done.set())
        future.add_done_callback(lambda done: self._one_read(task, done))

    def _read_span(self, task: int, gather: Gather, number: int, before: threading.Event | None) -> None:
        if before is not None:
            # Readers begin in order, so that it has begun on another thread, or is done or cancelled.
            before.wait()
        # What lies in front of a span that failed is read none the less: if that fails too, its error is the one.
        if not self._cancelled and (self._failed is None or task < self._failed[0]):
            gather.read_span(number, self.bench.streams, self.bench.meters)

    def _one_read(self, task: int, done: Future[None]) -> None:
        error = _error_of(done)
        with self._lock:
            if error is not None and (self._failed is None or task < self._failed[0]):
                self._failed = task, error
            self._left -= 1
            last = self._left == 0
        if last:
            self._all_read()

    def _all_read(self) -> None:
        if self._failed is not None:
            return self._finish(self._failed[1])
        if any(gather.arrivals.copies_arrow for gather in self._gathers):
            # One at a time, for that takes memory.
            return self.bench.arranging.run(self._arrange, self._arranged)
        try:
            ready = self.bench.pools.compute(self._arrange)
        except RuntimeError as closed:
            return self._finish(closed)
        return ready.add_done_callback(self._arranged)

    def _arrange(self) -> RangeRun | Block:
        gathers, self._gathers = self._gathers, []
        if self._cancelled:
            raise CancelledError
        with self.bench.meters.busy("arrange") as stage:
            parts = [gather.block() for gather in gathers]
            stage.rows = sum(block.rows for block in parts)
        program = self.bench.work.program
        if program.bare:
            return self._restricted(program.run(parts, self._turned))
        chunk = program.chunk
        first = 0 if chunk is None else self._first // chunk * chunk
        slots = self._slots(first)
        work = partial(self._run, parts, slots)
        return RangeRun(work, self._due, first, self.window.rows, chunk, by_batch=slots is not None)

    def _slots(self, first: int) -> Slots | None:
        """Memory of batches for what the operators write; None where the rows do not lie side by side in them."""
        program = self.bench.work.program
        if not program.slot or program.chunk != 1 or self._needed is not None:
            return None
        return Slots(self.bench.memory.buffers, program.slot, self._due, first, self.window.rows)

    def _arranged(self, done: Future[RangeRun | Block]) -> None:
        error = _error_of(done)
        if error is not None:
            return self._finish(error)
        ready = done.result()
        with self._lock:
            cancelled = self._cancelled
            self._read.set_result(ready)
        if not cancelled and isinstance(ready, RangeRun):
            self.bench.operators.add(ready)
        return None

    def _finish(self, error: BaseException) -> None:
        with self._lock:
            self._gathers = []
            if not self._read.done():
                self._read.set_exception(error)

    def blocks(self) -> Iterator[Block]:
        """The rows that come out of the operators, range by range; waits for them.

        Raises:
            DataflowError: what reading or an operator raised.
            CutWindow: the window holds too much, and may be cut.
        """
        self._share.need()
        ready = self._read.result()
        if isinstance(ready, Block):
            yield ready
            return
        while (block := self.bench.operators.next(ready)) is not None:
            yield block

    def _run(self, parts: list[Block], slots: Slots | None, start: int, stop: int) -> Block:
        if self._cancelled:
            raise CancelledError
        slot = None if slots is None else slots.slot(start, stop)
        return self._restricted(self.bench.work.program.run(cut(parts, start, stop), self._turned, slot))

    def _restricted(self, block: Block) -> Block:
        """Without the rows that were only there to fill a block of a batched function."""
        if self.bench.work.tolerant:
            for sample in block.bad:
                forget_frames(sample.error)
        every = self._first == 0 and self._needed is None
        if every or self.bench.work.program.chunk is None:
            return block
        bad: tuple[BadSample, ...] = tuple(sample for sample in block.bad if self._delivers(sample.origin))
        keep = block.origin >= self._first
        if self._needed is not None:
            keep &= self._needed[block.origin]
        if not keep.all():
            block = block.take(np.flatnonzero(keep))
        return replace(block, bad=bad)

    def _delivers(self, origin: int) -> bool:
        return origin >= self._first and (self._needed is None or bool(self._needed[origin]))


def _error_of(done: Future[T]) -> BaseException | None:
    return CancelledError() if done.cancelled() else done.exception()
