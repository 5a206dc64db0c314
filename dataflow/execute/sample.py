"""Rows on the caller's own thread: in file order, operators applied."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from dataflow.execute.arrow_use import ArrowUse
from dataflow.execute.buffers import BufferPool
from dataflow.execute.gather import gathers_of
from dataflow.execute.metrics import Meters
from dataflow.execute.program import Program, Turned, compile_program
from dataflow.execute.streams import OpenStreams
from dataflow.graph.block import Block
from dataflow.graph.draw import Turn
from dataflow.graph.node import Node
from dataflow.order.stream import Stream
from dataflow.order.windows import Window, locate

__all__ = ["FileOrder", "run_window"]

Int64s = npt.NDArray[np.int64]

_SLICE_BYTES = 8 << 20
# Of a block: what a reader decodes of it at a time.
_SLICE_SHARE = 1 / 4
# What a block may hold, and from how many rows on a larger one saves nothing.
_BLOCK_BYTES = 32 << 20
_BLOCK_ROWS = 1 << 16


class FileOrder:
    """The rows that come out of a step by their place in file order, whatever shuffles are below it. Close it.

    Args:
        stream: the rows of `node`.
        block_bytes: what a block may hold; None for what is fast.
    """

    def __init__(self, node: Node, stream: Stream, seed: int, *, block_bytes: int | None = None) -> None:
        self._program, self._stream, self._seed = compile_program(node), stream, seed
        self._block_bytes = _BLOCK_BYTES if block_bytes is None else min(_BLOCK_BYTES, block_bytes)
        slice_bytes = min(_SLICE_BYTES, int(_SLICE_SHARE * self._block_bytes))
        # One for each group, so that what comes next goes on with the decoder that is open.
        self._readers = OpenStreams(slice_bytes, limit=len(self._program.groups))

    def close(self) -> None:
        """Close the readers that wait; may be called twice."""
        self._readers.close()

    def read(self, start: int, stop: int, *, turn: Turn = 0, isolate: bool = False) -> Block:
        """Rows `start` to `stop` of the pass of `turn`; `origin` counts from `start`.

        Rows that cannot be made are in its `bad`: with `isolate` these alone, as in `Turned`.

        Raises:
            DataflowError: what reading the rows raised, unless `isolate`.
        """
        positions = np.arange(start, stop)
        spans = locate(self._stream, positions).spans
        window = Window(0, stop - start, spans, None, positions if self._stream.others else None)
        turned = Turned(self._seed, turn, Meters(), isolate)
        return run_window(self._program, self._stream, window, turned, readers=self._readers)

    def blocks(
        self, first: int = 0, end: int | None = None, *, turn: Turn = 0, isolate: bool = False
    ) -> Iterator[tuple[int, int, Block]]:
        """Rows `first` to `end` (None: all), block by block, each with where it starts and stops.

        Blocks start a multiple of 8 rows behind `first`.
        """
        until = self._stream.n if end is None else end
        fitting = int(min(_BLOCK_ROWS, self._block_bytes / self._program.row_bytes))
        rows = max(8, fitting // 8 * 8)
        for start in range(first, until, rows):
            stop = min(until, start + rows)
            yield start, stop, self.read(start, stop, turn=turn, isolate=isolate)


def run_window(
    program: Program,
    stream: Stream,
    window: Window,
    turned: Turned,
    *,
    as_ids: Int64s | None = None,
    readers: OpenStreams | None = None,
) -> Block:
    """All rows of a window, read and operated on, on this thread.

    `as_ids`, int64 (zipped inputs,): the sample ids under which they go through the operators, else their own.
    `readers`, for one thread, are those that an earlier call left open.
    """
    if readers is None:
        with closing(OpenStreams(_SLICE_BYTES, limit=1)) as own:
            return run_window(program, stream, window, turned, as_ids=as_ids, readers=own)
    gathers = gathers_of(program, stream, window, None, BufferPool(0), ArrowUse(0))
    for gather in gathers:
        for number in range(len(gather.spans)):
            gather.read_span(number, readers, turned.meters)
    parts = [gather.block() for gather in gathers]
    if as_ids is not None:
        groups = zip(parts, program.groups, strict=True)
        parts = [replace(part, ids=np.full_like(part.ids, as_ids[group.input])) for part, group in groups]
    return program.run(parts, turned)
