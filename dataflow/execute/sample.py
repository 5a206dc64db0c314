"""A few rows on the caller's own thread: by position in file order, operators applied."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from dataflow.execute.buffers import BufferPool
from dataflow.execute.job import gathers_of
from dataflow.execute.metrics import Meters
from dataflow.execute.program import Program, Turned, compile_program
from dataflow.execute.streams import OpenStreams
from dataflow.graph.block import Block
from dataflow.graph.draw import Draw, Turn
from dataflow.graph.node import Node
from dataflow.order.stream import Stream
from dataflow.order.windows import Window, locate

__all__ = ["read_positions", "run_window"]

Int64s = npt.NDArray[np.int64]

_SLICE_BYTES = 8 << 20


def read_positions(
    node: Node, stream: Stream, start: int, stop: int, seed: int, key: str, turn: Turn = 0
) -> tuple[Block, Draw]:
    """Rows `start` to `stop` of `node`, whose rows are `stream`, in file order; and the draw of `key`.

    `origin` of the block counts from `start`. Rows that cannot be read are in its `bad`.

    Raises:
        DataflowError: what reading them or an operator raised.
    """
    positions = np.arange(start, stop)
    spans = locate(stream, positions).spans
    window = Window(0, stop - start, spans, None, positions if stream.others else None)
    turned = Turned(seed, turn, Meters(), False)
    return run_window(compile_program(node), stream, window, turned), Draw(seed, turn, key)


def run_window(
    program: Program, stream: Stream, window: Window, turned: Turned, *, as_ids: Int64s | None = None
) -> Block:
    """All rows of a window, read and operated on, on this thread.

    `as_ids`, int64 (zipped inputs,): the sample ids under which they go through the operators, else their own.
    """
    readers = OpenStreams(_SLICE_BYTES, limit=1)
    gathers = gathers_of(program, stream, window, None, BufferPool(0))
    for gather in gathers:
        for number in range(len(gather.spans)):
            gather.read_span(number, readers, turned.meters, tolerant=turned.isolate)
    parts = [gather.block() for gather in gathers]
    if as_ids is not None:
        groups = zip(parts, program.groups, strict=True)
        parts = [replace(part, ids=np.full_like(part.ids, as_ids[group.input])) for part, group in groups]
    return program.run(parts, turned)
