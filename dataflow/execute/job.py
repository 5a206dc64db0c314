"""One window on its way: its order is worked out, its fragments are read, its operators run range by range."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, Future
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from dataflow.execute.buffers import BufferPool
from dataflow.execute.gather import Gather
from dataflow.execute.metrics import Meters
from dataflow.execute.pools import Pools
from dataflow.execute.program import Group, Program, Turned
from dataflow.execute.streams import Chain, OpenStreams
from dataflow.graph.block import BadSample, Block
from dataflow.graph.calls import forget_frames
from dataflow.graph.draw import Turn
from dataflow.order.epoch import LaneWindow
from dataflow.order.stream import Stream
from dataflow.order.windows import Span, Window, ids, locate

__all__ = ["Bench", "WindowJob", "gathers_of"]

Int64s = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


_FIRST_RANGE_ROWS = 64


@dataclass(frozen=True)
class Bench:
    """What every job of a loader works with: the program, where it runs, and where its memory comes from.

    `range_rows` is the number of rows that operators get at a time; `tolerant` says that bad rows are not the
    end (on_error is "skip" or "replace"). `place` gives the file and the row in it of a sample id. `late` says
    that whoever takes blocks puts their rows in order (see gather.py).
    """

    program: Program
    stream: Stream
    seed: int
    pools: Pools
    memory: BufferPool
    streams: OpenStreams
    meters: Meters
    range_rows: int
    range_bytes: int
    tolerant: bool
    late: bool
    place: Callable[[int], tuple[str, int]]
    chain: Chain = field(default_factory=Chain)

    def located(self, bad: BadSample) -> Exception:
        """The error of a bad row, with a note that says in which file and row it is."""
        file, row = self.place(bad.id)
        note = f"in {file}, row {row}"
        if note not in getattr(bad.error, "__notes__", ()):
            bad.error.add_note(note)
        return bad.error

    def turned(self, turn: Turn) -> Turned:
        """What kernels need to know in the pass of `turn`."""
        return Turned(self.seed, turn, self.meters, self.tolerant)


class WindowJob:
    """Reads a window and runs the operators on it; `blocks` yields what comes out, in delivery order.

    Args:
        needed: bool (window rows,): the rows that this rank delivers; None for all.
        first: only rows of the window from here on are wanted.
    """

    def __init__(
        self, bench: Bench, window: LaneWindow, turn: Turn, needed: Bools | None, first: int = 0
    ) -> None:
        self.bench, self.window = bench, window
        self.turn = turn
        self._turned = bench.turned(turn)
        self._needed = needed
        self._first = first
        self._gathers: list[Gather] = []
        self._read: Future[None] = Future()
        self._left = 0
        self._lock = threading.Lock()
        self._error: BaseException | None = None
        self._cancelled = False

    def start(self) -> None:
        """Work out the order, then read; returns at once."""
        self.bench.pools.plan(self._plan).add_done_callback(self._planned)

    def cancel(self) -> None:
        """Let tasks that have not begun do nothing."""
        self._cancelled = True
        self._gathers = []

    def _planned(self, done: Future[None]) -> None:
        try:
            error = done.exception()
        except CancelledError as cancelled:
            error = cancelled
        if error is not None:
            self._finish(error)

    def _plan(self) -> None:
        if self._cancelled:
            return self._finish(CancelledError())
        with self.bench.meters.busy("order") as stage:
            window = self.window.resolve()
            stage.rows = window.rows
            wanted = self._wanted(window.rows)
            self._gathers = gathers_of(
                self.bench.program, self.bench.stream, window, wanted, self.bench.memory, late=self.bench.late
            )
        tasks = [(gather, number) for gather in self._gathers for number in range(len(gather.spans))]
        self._left = len(tasks)
        if not tasks:
            self._finish(None)
        for gather, number in tasks:
            self._start_read(gather, number)
        return None

    def _wanted(self, rows: int) -> Bools | None:
        """The rows that must be read: blocks of batched functions are read whole."""
        chunk = self.bench.program.chunk
        wanted = self._needed if chunk == 1 else None
        if self._first and chunk is not None:
            wanted = np.ones(rows, np.bool_) if wanted is None else wanted.copy()
            wanted[: self._first // chunk * chunk] = False
        return wanted

    def _start_read(self, gather: Gather, number: int) -> None:
        span = gather.spans[number]
        index = gather.group.indexes[span.leaf]
        before, done = None, None
        if (span.lo, span.hi) != tuple(index.starts[span.fragment : span.fragment + 2]):
            before, done = self.bench.chain.link(index, gather.group.schema, span)
        try:
            future = self.bench.pools.read(self._read_span, gather, number, before)
        except BaseException:
            if done is not None:
                done.set()
            raise
        if done is not None:
            # Also where the task is cancelled: whoever waits for it must not wait for ever.
            future.add_done_callback(lambda _: done.set())
        future.add_done_callback(self._one_read)

    def _read_span(self, gather: Gather, number: int, before: threading.Event | None) -> None:
        if before is not None:
            # Readers begin in order, so that it has begun on another thread, or is done or cancelled.
            before.wait()
        if not self._cancelled and self._error is None:
            gather.read_span(number, self.bench.streams, self.bench.meters, tolerant=self.bench.tolerant)

    def _one_read(self, done: Future[None]) -> None:
        error: BaseException | None
        try:
            error = done.exception()
        except CancelledError as cancelled:
            error = cancelled
        with self._lock:
            self._error = self._error or error
            self._left -= 1
            last = self._left == 0
        if last:
            self._finish(self._error)

    def _finish(self, error: BaseException | None) -> None:
        with self._lock:
            if self._read.done():
                return
            if error is None:
                self._read.set_result(None)
            else:
                self._read.set_exception(error)

    def blocks(self) -> Iterator[Block]:
        """The rows that come out of the operators, range by range; waits for the reads.

        Raises:
            DataflowError: what reading or an operator raised.
        """
        self._read.result()
        program, pools = self.bench.program, self.bench.pools
        if program.bare:
            yield self._restricted(program.run(self._parts(), self._turned))
            return
        parts = pools.compute(self._parts).result()
        running: deque[Future[Block]] = deque()
        ranges = self._ranges()
        held, largest = 0, 0
        try:
            while True:
                depth = pools.threads + (pools.threads if held * largest < self.bench.range_bytes else 0)
                while len(running) < depth and (bounds := next(ranges, None)) is not None:
                    running.append(pools.compute(self._run, parts, *bounds))
                if not running:
                    return
                block = running.popleft().result()
                largest, held = max(largest, block.nbytes), depth
                yield block
        finally:
            for future in running:
                future.cancel()

    def _parts(self) -> list[Block]:
        gathers, self._gathers = self._gathers, []
        with self.bench.meters.busy("arrange") as stage:
            blocks = [gather.block() for gather in gathers]
            stage.rows = sum(block.rows for block in blocks)
        return blocks

    def _ranges(self) -> Iterator[tuple[int, int]]:
        """Ranges of window rows, cut at multiples of what the operators want together."""
        chunk, rows = self.bench.program.chunk, self.window.rows
        if chunk is None:
            yield 0, rows
            return
        most = max(chunk, self.bench.range_rows // chunk * chunk)
        start = self._first // chunk * chunk
        # Small at first, so that slow operators give the first batch soon.
        step = min(most, -(-_FIRST_RANGE_ROWS // chunk) * chunk)
        while start < rows:
            yield start, min(start + step, rows)
            start, step = start + step, min(2 * step, most)

    def _run(self, parts: list[Block], start: int, stop: int) -> Block:
        if self._cancelled:
            raise CancelledError
        cut = []
        for block in parts:
            low, high = np.searchsorted(block.origin, (start, stop))
            bad = tuple(sample for sample in block.bad if start <= sample.origin < stop)
            piece = block.slice(int(low), int(high))
            cut.append(Block(piece.columns, piece.ids, piece.origin, owned=False, bad=bad))
        return self._restricted(self.bench.program.run(cut, self._turned))

    def _restricted(self, block: Block) -> Block:
        """Without the rows that were only there to fill a block of a batched function."""
        if self.bench.tolerant:
            for sample in block.bad:
                forget_frames(sample.error)
        if self.bench.program.chunk is None:
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


def gathers_of(
    program: Program,
    stream: Stream,
    window: Window,
    wanted: Bools | None,
    memory: BufferPool,
    *,
    late: bool = False,
) -> list[Gather]:
    """What has to be read of a window for each group of the program, and where each row goes.

    `late`, for a bare program: rows stay as they are read, and the block has an index.
    """
    rows = window.rows
    sample_ids = ids(stream, window)
    if late and window.order is not None:
        return [_as_read(program.groups[0], window, window.order, sample_ids, wanted, memory)]
    place = np.empty(rows, np.int64)  # of row c of the concatenation: its row of the window
    place[window.order if window.order is not None else slice(None)] = np.arange(rows)
    gathers = []
    for group in program.groups:
        spans, delivered = window.spans, place
        if group.input > 0 and window.positions is not None:
            located = locate(stream.others[group.input - 1], window.positions)
            spans = located.spans
            if located.order is not None:
                delivered = np.empty(rows, np.int64)
                delivered[located.order] = place
        own = sample_ids if sample_ids.ndim == 1 else sample_ids[:, group.input]
        inside = [span.leaf in group.indexes for span in spans]
        if not all(inside):
            counts = np.array([span.wanted for span in spans], np.int64)
            delivered = delivered[np.repeat(np.array(inside), counts)]
            spans = tuple(span for span, keep in zip(spans, inside, strict=True) if keep)
        gathers.append(_placed(group, spans, delivered, own, wanted, memory))
    return gathers


def _as_read(
    group: Group, window: Window, order: Int64s, own: Int64s, wanted: Bools | None, memory: BufferPool
) -> Gather:
    rows = np.arange(len(own))
    if wanted is None:
        return Gather(group, window.spans, rows, rows, own, memory, order)
    origin = np.flatnonzero(wanted)
    read = np.zeros(len(own), np.bool_)
    read[order[origin]] = True
    place = np.cumsum(read) - 1
    return Gather(
        group, window.spans, np.where(read, place, -1), origin, own[origin], memory, place[order[origin]]
    )


def _placed(
    group: Group,
    spans: tuple[Span, ...],
    delivered: Int64s,
    own: Int64s,
    wanted: Bools | None,
    memory: BufferPool,
) -> Gather:
    here = np.zeros(len(own), np.bool_)
    here[delivered] = True
    if wanted is not None:
        here &= wanted
    if len(delivered) == len(own) and wanted is None:
        return Gather(group, spans, delivered, np.arange(len(own)), own, memory)
    origin = np.flatnonzero(here)
    compact = np.full(len(own), -1, np.int64)
    compact[origin] = np.arange(len(origin))
    return Gather(group, spans, compact[delivered], origin, own[origin], memory)
