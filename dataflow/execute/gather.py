"""`Gather`: reading a window: the spans of its fragments, and which of its rows cannot be read."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing

import numpy as np
import numpy.typing as npt

from connectors.contract import Chunk
from dataflow.errors import DataError
from dataflow.execute.arrivals import Arrivals
from dataflow.execute.arrow_use import ArrowUse
from dataflow.execute.buffers import BufferPool
from dataflow.execute.metrics import Meters
from dataflow.execute.pieces import Rows
from dataflow.execute.places import Places, places_of
from dataflow.execute.program import Group, Program
from dataflow.execute.room import Room, Share
from dataflow.execute.streams import OpenStreams
from dataflow.graph.block import BadSample, Block
from dataflow.graph.calls import forget_frames
from dataflow.order.stream import Stream
from dataflow.order.windows import Span, Window, ids, locate

__all__ = ["Gather", "gathers_of"]

Int64s = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


class Gather:
    """The rows of one group in one window; `read_span` may run on several threads at once.

    Args:
        ids: int64, one entry for each row in delivery order.
        arrow: is told what Arrow takes here.
        share: counts what is held of columns that stay Arrow; reading waits for it.
    """

    def __init__(
        self,
        group: Group,
        spans: Sequence[Span],
        places: Places,
        ids: Int64s,
        pool: BufferPool,
        arrow: ArrowUse,
        share: Share,
    ) -> None:
        self.group, self.spans = group, spans
        self.arrivals = Arrivals(group.schema, places, pool, arrow)
        self._places, self._ids, self._arrow, self._share = places, ids, arrow, share
        self._starts = np.concatenate([np.zeros(1, np.int64), np.cumsum([span.wanted for span in spans])])
        self._bad: dict[int, BadSample] = {}  # by delivered row

    def read_span(self, number: int, streams: OpenStreams, meters: Meters) -> None:
        """Read span `number` and put its rows in their places; where its fragment cannot be read any further, the
        rows from there on are bad.

        Raises:
            ConnectorError: the store cannot be read.
            CutWindow, PlanError, CancelledError: see `Share.took`.
        """
        span, start = self.spans[number], int(self._starts[number])
        wanted = span.wanted
        rows, _ = self._places.read_rows(start, start + wanted)
        if rows.start == rows.stop:
            return
        waits, done = self.arrivals.keeps_arrow, 0
        with (
            meters.busy("read") as stage,
            closing(streams.read(self.group.indexes[span.leaf], self.group.schema, span)) as chunks,
        ):
            if waits:
                self._share.wait()
            try:
                for chunk, at in chunks:
                    done += self._put(span, chunk, at, start, done)
                    nbytes = chunk.batch.nbytes
                    stage.rows += chunk.batch.num_rows
                    stage.bytes += nbytes
                    if self.arrivals.copies_arrow:
                        self._arrow.took(nbytes)
                    if waits and done < wanted:
                        self._share.wait()
            except DataError as error:
                forget_frames(error)  # it is kept for what else is read of the fragment
                rows, _ = self._places.read_rows(start + done, start + wanted)
                for row in range(rows.start, rows.stop):
                    self._fail(row, error)

    def _put(self, span: Span, chunk: Chunk, at: int, start: int, done: int) -> int:
        """Place a chunk whose first row is source row `at`, behind `done` wanted rows; returns how many it had."""
        batch = chunk.batch
        index: Int64s | None = None
        count = batch.num_rows
        if span.rows is not None:
            wanted = span.rows[done : np.searchsorted(span.rows, at + batch.num_rows)]
            index, count = wanted - at, len(wanted)
        rows: Rows
        rows, used = self._places.read_rows(start + done, start + done + count)
        if used is not None:
            index = np.flatnonzero(used) if index is None else index[used]
        if chunk.bad:
            index, rows = self._note_bad(chunk, index, rows)
        kept = 0
        for name in self.group.schema.names:
            kept += self.arrivals.put(name, batch.column(name), index, rows)
        if kept:
            self._share.took(kept, count)
        return count

    def _note_bad(self, chunk: Chunk, index: Int64s | None, rows: slice) -> tuple[Int64s, Int64s]:
        inside = np.arange(chunk.batch.num_rows) if index is None else index
        read = np.arange(rows.start, rows.stop)
        good = np.ones(len(inside), np.bool_)
        errors = {bad.row: bad.error for bad in chunk.bad}
        for place in np.flatnonzero(np.isin(inside, list(errors))).tolist():
            good[place] = False
            self._fail(int(read[place]), errors[int(inside[place])])
        return inside[good], read[good]

    def _fail(self, read_row: int, error: Exception) -> None:
        row = int(self._places.to[read_row])
        self._bad[row] = BadSample(int(self._places.origin[row]), int(self._ids[row]), "read", error)

    def block(self) -> Block:
        """All rows that were read. Call it once, when every span has been read."""
        columns = {
            column.name: self.arrivals.in_order(column.name, column.type) for column in self.group.schema
        }
        block = Block(columns, self._ids, self._places.origin, owned=True)
        if not self._bad:
            return block
        keep = np.ones(self._places.rows, np.bool_)
        keep[list(self._bad)] = False
        return block.without([self._bad[row] for row in sorted(self._bad)], keep)


def gathers_of(
    program: Program,
    stream: Stream,
    window: Window,
    wanted: Bools | None,
    memory: BufferPool,
    arrow: ArrowUse,
    share: Share | None = None,
) -> list[Gather]:
    """What has to be read of a window for each group of the program, and where each row goes.

    `wanted`, bool (window rows,): the rows that are delivered; None for all. `share` counts what is read; without
    one there is room for all.
    """
    share = share or Room().share(window.rows)
    sample_ids = ids(stream, window)
    gathers = []
    for group in program.groups:
        spans, at = window.spans, window.order
        if group.input > 0 and window.positions is not None:
            located = locate(stream.others[group.input - 1], window.positions)
            spans = located.spans
            if located.order is not None:
                at = located.order if at is None else located.order[at]
        inside = np.array([span.leaf in group.indexes for span in spans], np.bool_)
        rows = None if inside.all() else np.repeat(inside, [span.wanted for span in spans])
        places = places_of(at, window.rows, wanted, rows)
        own = sample_ids if sample_ids.ndim == 1 else sample_ids[:, group.input]
        here = tuple(span for span, keep in zip(spans, inside.tolist(), strict=True) if keep)
        named = own if places.rows == len(own) else own[places.origin]
        gathers.append(Gather(group, here, places, named, memory, arrow, share))
    return gathers
