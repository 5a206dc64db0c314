"""Reading a window: the spans of its fragments, each row put to its place in the delivery order.

Dense columns without nulls go into reused buffers. Wide rows are written to their places as they are read: one
copy from what the connector decoded. Narrow ones are kept as they were read and put in order column by column
when all are there: random reads within one column of a window mostly hit the cache, where writes of 8 bytes to
random places of all columns do not (47 and 105 ns for a row of 8 numbers, 350,000 rows a window).
Strings, lists and columns with nulls stay Arrow and are brought into order by one `take`.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from connectors.contract import Chunk
from connectors.tensors import has_nulls, to_arrow, to_numpy
from dataflow.errors import DataError
from dataflow.execute.arrow_use import ArrowUse
from dataflow.execute.buffers import BufferPool
from dataflow.execute.dense import dense_shape
from dataflow.execute.metrics import Meters
from dataflow.execute.places import Places, places_of
from dataflow.execute.program import Group, Program
from dataflow.execute.streams import OpenStreams
from dataflow.graph.block import BadSample, Block, Column
from dataflow.order.stream import Stream
from dataflow.order.windows import Span, Window, ids, locate

__all__ = ["Gather", "gathers_of"]

# A cache line: what a random read fetches in any case.
_NARROW_BYTES = 64

Int64s = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Rows: TypeAlias = slice | Int64s
Arrow: TypeAlias = Any  # the stubs know the members of an Arrow array only where its type is known statically


@dataclass
class _Pieces:
    """What arrived of one column that stays Arrow: the arrays, and which read rows theirs are."""

    arrays: list[Arrow] = field(default_factory=list)
    rows: list[Rows] = field(default_factory=list)


class Gather:
    """The rows of one group in one window; `read_span` may run on several threads at once.

    Args:
        ids: int64, one entry for each row in delivery order.
        arrow: is told what Arrow takes here.
    """

    def __init__(
        self,
        group: Group,
        spans: Sequence[Span],
        places: Places,
        ids: Int64s,
        pool: BufferPool,
        arrow: ArrowUse,
    ) -> None:
        self.group, self.spans = group, spans
        self._places, self._ids, self._pool, self._arrow = places, ids, pool, arrow
        self._starts = np.concatenate([np.zeros(1, np.int64), np.cumsum([span.wanted for span in spans])])
        self._lock = threading.Lock()
        self._bad: dict[int, BadSample] = {}  # by delivered row
        self._dense: dict[str, npt.NDArray[np.generic]] = {}
        self._staged: set[str] = set()  # dense columns that are not in delivery order yet
        self._pieces: dict[str, _Pieces] = {}
        self._mixed: dict[str, _Pieces] = {}
        for column in group.schema:
            dense = dense_shape(column.type)
            if dense is None:
                self._pieces[column.name] = _Pieces()
                continue
            self._dense[column.name] = pool.empty((places.rows, *dense[1]), dense[0])
            if dense[0].itemsize * prod(dense[1]) <= _NARROW_BYTES and places.order is not None:
                self._staged.add(column.name)

    def read_span(self, number: int, streams: OpenStreams, meters: Meters, *, tolerant: bool) -> None:
        """Read span `number` and put its rows in their places.

        With `tolerant`, a fragment that cannot be read makes all its rows bad; else its error is raised.
        """
        span, start = self.spans[number], int(self._starts[number])
        rows, _ = self._places.read_rows(start, start + span.wanted)
        if rows.start == rows.stop:
            return
        try:
            with meters.busy("read") as stage:
                done = 0
                for chunk, at in streams.read(self.group.indexes[span.leaf], self.group.schema, span):
                    done += self._put(span, chunk, at, start, done)
                    nbytes = chunk.batch.nbytes
                    stage.rows += chunk.batch.num_rows
                    stage.bytes += nbytes
                    if self.copies_arrow:
                        self._arrow.took(nbytes)
        except DataError as error:
            if not tolerant:
                raise
            for row in range(rows.start, rows.stop):
                self._fail(row, error)

    def first_of(self, number: int, error: Exception) -> BadSample:
        """The first row in delivery order of span `number`, which could not be read."""
        start = int(self._starts[number])
        rows, _ = self._places.read_rows(start, start + self.spans[number].wanted)
        return self._bad_row(int(self._places.to[rows].min()), error)

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
        for name in self.group.schema.names:
            self._put_column(name, batch.column(name), index, rows)
        return count

    def _put_column(self, name: str, array: Arrow, index: Int64s | None, rows: Rows) -> None:
        if name not in self._dense:
            self._keep(self._pieces[name], array if index is None else array.take(pa.array(index)), rows)
            return
        taken = array if index is None or not has_nulls(array) else array.take(pa.array(index))
        if has_nulls(taken):
            with self._lock:
                pieces = self._mixed.setdefault(name, _Pieces())
            self._keep(pieces, taken, rows)
            return
        values = to_numpy(taken)
        self._dense[name][self._target(name, rows)] = (
            values if index is None or taken is not array else values[index]
        )

    def _target(self, name: str, rows: Rows) -> Rows:
        """Where read rows are put in a dense column."""
        return rows if name in self._staged or self._places.order is None else self._places.to[rows]

    def _keep(self, pieces: _Pieces, array: Arrow, rows: Rows) -> None:
        with self._lock:
            pieces.arrays.append(array)
            pieces.rows.append(rows)

    def _note_bad(self, chunk: Chunk, index: Int64s | None, rows: slice) -> tuple[Int64s, Int64s]:
        inside = np.arange(chunk.batch.num_rows) if index is None else index
        read = np.arange(rows.start, rows.stop)
        good = np.ones(len(inside), np.bool_)
        for bad in chunk.bad:
            for place in np.flatnonzero(inside == bad.row):
                good[place] = False
                self._fail(int(read[place]), bad.error)
        return inside[good], read[good]

    def _fail(self, read_row: int, error: Exception) -> None:
        row = int(self._places.to[read_row])
        self._bad[row] = self._bad_row(row, error)

    def _bad_row(self, row: int, error: Exception) -> BadSample:
        return BadSample(int(self._places.origin[row]), int(self._ids[row]), "read", error)

    @property
    def copies_arrow(self) -> bool:
        """Whether `block` holds a column once more while it puts it in order."""
        return bool(self._pieces or self._mixed)

    def block(self) -> Block:
        """All rows that were read. Call it once, when every span has been read."""
        columns: dict[str, Column] = {}
        for column in self.group.schema:
            if column.name in self._pieces:
                columns[column.name] = self._arranged(self._pieces.pop(column.name), column.type)
            else:
                columns[column.name] = self._in_order(column.name, column.type)
        block = Block(columns, self._ids, self._places.origin, owned=True)
        if not self._bad:
            return block
        keep = np.ones(self._places.rows, np.bool_)
        keep[list(self._bad)] = False
        return block.without([self._bad[row] for row in sorted(self._bad)], keep)

    def _in_order(self, name: str, kind: pa.DataType) -> Column:
        """A dense column in delivery order; what it was read into is free for the next one."""
        dense = self._dense.pop(name)
        order = self._places.order if name in self._staged else None
        if name in self._mixed:
            mixed = self._mixed.pop(name)
            whole = _with_nulls(dense, mixed, [self._target(name, rows) for rows in mixed.rows], kind)
            return whole if order is None else whole.take(pa.array(order))
        if order is None:
            return dense
        out = self._pool.empty(dense.shape, dense.dtype)
        # Indices are in range; without "clip" NumPy takes through a copy.
        np.take(dense, order, axis=0, out=out, mode="clip")
        return out

    def _arranged(self, pieces: _Pieces, kind: pa.DataType) -> Arrow:
        """The arrays' rows in delivery order; a row that did not arrive (it was bad) is null.

        The arrays are let go of as soon as they are one: there are never more than two copies of a column.
        """
        order, rows = self._places.order, self._places.rows
        if not pieces.arrays:
            return pa.array([None] * rows, kind)
        # Spans arrive in any order.
        firsts = [_first(some) for some in pieces.rows]
        sequence = sorted(range(len(firsts)), key=firsts.__getitem__)
        whole = _joined([pieces.arrays[number] for number in sequence])
        pieces.arrays.clear()
        self._arrow.took(whole.nbytes)
        if len(whole) == rows:
            return whole if order is None else whole.take(pa.array(order))
        index = np.full(rows, -1, np.int64)
        index[np.concatenate([_numbers(pieces.rows[number]) for number in sequence])] = np.arange(len(whole))
        index = index if order is None else index[order]
        return whole.take(pa.array(index, mask=index < 0))


def _first(rows: Rows) -> int:
    if isinstance(rows, slice):
        return int(rows.start)
    return int(rows[0]) if len(rows) else -1


def _numbers(rows: Rows) -> Int64s:
    return np.arange(rows.start, rows.stop) if isinstance(rows, slice) else rows


def _joined(arrays: Sequence[Arrow]) -> Arrow:
    """One array; 32-bit offsets become 64-bit ones where 2 GB do not fit them."""
    kind = arrays[0].type
    wider = {pa.string(): pa.large_string(), pa.binary(): pa.large_binary()}.get(kind)
    if wider is not None and sum(array.nbytes for array in arrays) > (1 << 31) - (1 << 20):
        arrays = [array.cast(wider) for array in arrays]
    if isinstance(kind, pa.DictionaryType):
        # A dictionary of its own in every fragment: one for all.
        unified = pa.chunked_array(arrays).unify_dictionaries()
        return pa.concat_arrays(unified.chunks)
    return arrays[0] if len(arrays) == 1 else pa.concat_arrays(arrays)


def _with_nulls(
    dense: npt.NDArray[np.generic], mixed: _Pieces, places: Sequence[Rows], kind: pa.DataType
) -> Arrow:
    """A column of which some spans had nulls: what is in `dense`, but for the rows in `mixed`."""
    index = np.arange(len(dense))
    to = np.concatenate([_numbers(some) for some in places])
    index[to] = len(dense) + np.arange(len(to))
    return pa.concat_arrays([to_arrow(dense, kind), *mixed.arrays]).take(pa.array(index))


def gathers_of(
    program: Program,
    stream: Stream,
    window: Window,
    wanted: Bools | None,
    memory: BufferPool,
    arrow: ArrowUse,
) -> list[Gather]:
    """What has to be read of a window for each group of the program, and where each row goes.

    `wanted`, bool (window rows,): the rows that are delivered; None for all.
    """
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
        gathers.append(Gather(group, here, places, named, memory, arrow))
    return gathers
