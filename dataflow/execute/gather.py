"""Reading a window: the spans of its fragments, each row put straight to its place in the delivery order.

Dense columns without nulls go into reused buffers, one copy from what the connector decoded. Strings, lists and
columns with nulls stay Arrow and are brought into order by one `take` when all spans are there.

Narrow rows are better kept as they were read, and put in order when batches are made: a write of 8 bytes to a
random place of a window larger than the cache takes 23 ns, and the read of one 12 ns (wide rows: one copy
instead of two). The block then has an `index`.
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
from connectors.tensors import shape_of, to_arrow, to_numpy
from dataflow.errors import DataError
from dataflow.execute.buffers import BufferPool
from dataflow.execute.metrics import Meters
from dataflow.execute.program import Group
from dataflow.execute.streams import OpenStreams
from dataflow.graph.block import BadSample, Block, Column
from dataflow.order.windows import Span

__all__ = ["Gather", "dense_shape", "is_narrow"]

# A cache line: what a random read fetches in any case.
_NARROW_BYTES = 64

Int64s = npt.NDArray[np.int64]
Arrow: TypeAlias = Any  # the stubs know the members of an Arrow array only where its type is known statically


def dense_shape(kind: pa.DataType) -> tuple[np.dtype[np.generic], tuple[int, ...]] | None:
    """Dtype and shape of columns that are scattered as NumPy: numbers and fixed shapes of numbers.

    Times stay Arrow until they become a tensor, so that functions and filters still see times.
    """
    leaf = kind
    while isinstance(leaf, pa.FixedShapeTensorType) or pa.types.is_fixed_size_list(leaf):
        leaf = leaf.value_type
    return None if pa.types.is_temporal(leaf) else shape_of(kind)


def is_narrow(schema: pa.Schema) -> bool:
    """Whether rows are better put in order when batches are made: no dense column is wide."""
    shapes = [dense_shape(column.type) for column in schema]
    return all(s is None or s[0].itemsize * prod(s[1]) <= _NARROW_BYTES for s in shapes)


@dataclass
class _Pieces:
    """What arrived of one column that stays Arrow: the arrays, and where their rows go."""

    arrays: list[Arrow] = field(default_factory=list)
    places: list[Int64s] = field(default_factory=list)


class Gather:
    """The rows of one group in one window; `read_span` may run on several threads at once.

    Args:
        places: int64, one entry for each row of the spans' concatenation: where it goes, -1 for nowhere.
        origin: int64, one entry for each row in delivery order: its row of the window.
        ids: int64, one entry for each row in delivery order.
        index: int64, where the places are not in delivery order: row i of that is at place `index[i]`.
    """

    def __init__(
        self,
        group: Group,
        spans: Sequence[Span],
        places: Int64s,
        origin: Int64s,
        ids: Int64s,
        pool: BufferPool,
        index: Int64s | None = None,
    ) -> None:
        self.group, self.spans = group, spans
        self._origin, self._ids, self._places, self._index = origin, ids, places, index
        self._starts = np.concatenate([np.zeros(1, np.int64), np.cumsum([span.wanted for span in spans])])
        self._lock = threading.Lock()
        self._bad: list[BadSample] = []
        self._failed: list[int] = []
        self._dense: dict[str, npt.NDArray[np.generic]] = {}
        self._pieces: dict[str, _Pieces] = {}
        rows = len(origin)
        for column in group.schema:
            dense = dense_shape(column.type)
            if dense is None:
                self._pieces[column.name] = _Pieces()
            else:
                self._dense[column.name] = pool.empty((rows, *dense[1]), dense[0])
        self._mixed: dict[str, _Pieces] = {}

    def read_span(self, number: int, streams: OpenStreams, meters: Meters, *, tolerant: bool) -> None:
        """Read span `number` and put its rows in their places.

        With `tolerant`, a fragment that cannot be read makes all its rows bad; else its error is raised.
        """
        span = self.spans[number]
        places = self._places[self._starts[number] : self._starts[number + 1]]
        if not (places >= 0).any():
            return
        try:
            with meters.busy("read") as stage:
                done = 0
                for chunk, at in streams.read(self.group.indexes[span.leaf], self.group.schema, span):
                    done += self._put(span, chunk, at, places, done)
                    stage.rows += chunk.batch.num_rows
                    stage.bytes += chunk.batch.nbytes
        except DataError as error:
            if not tolerant:
                raise
            self._give_up(places, error)

    def _put(self, span: Span, chunk: Chunk, at: int, places: Int64s, done: int) -> int:
        """Scatter a chunk whose first row is source row `at`; returns how many wanted rows it had."""
        batch = chunk.batch
        index: Int64s | None = None
        count = batch.num_rows
        if span.rows is not None:
            wanted = span.rows[done : np.searchsorted(span.rows, at + batch.num_rows)]
            index, count = wanted - at, len(wanted)
        to = places[done : done + count]
        used = to >= 0
        if not used.all():
            index = np.flatnonzero(used) if index is None else index[used]
            to = to[used]
        if chunk.bad:
            index, to = self._note_bad(span, chunk, index, to)
        target = _as_slice(to)
        for name in self.group.schema.names:
            self._put_column(name, batch.column(name), index, to, target)
        return count

    def _put_column(
        self, name: str, array: Arrow, index: Int64s | None, to: Int64s, target: slice | Int64s
    ) -> None:
        if name in self._dense:
            taken = array if index is None or not array.null_count else array.take(pa.array(index))
            if not _has_nulls(taken):
                values = to_numpy(taken)
                self._dense[name][target] = values if index is None or taken is not array else values[index]
                return
            with self._lock:
                pieces = self._mixed.setdefault(name, _Pieces())
                pieces.arrays.append(taken)
                pieces.places.append(to)
            return
        taken = array if index is None else array.take(pa.array(index))
        with self._lock:
            self._pieces[name].arrays.append(taken)
            self._pieces[name].places.append(to)

    def _note_bad(self, span: Span, chunk: Chunk, index: Int64s | None, to: Int64s) -> tuple[Int64s, Int64s]:
        rows = np.arange(chunk.batch.num_rows) if index is None else index
        good = np.ones(len(rows), np.bool_)
        for bad in chunk.bad:
            for place in np.flatnonzero(rows == bad.row):
                good[place] = False
                self._fail(int(to[place]), bad.error)
        return rows[good], to[good]

    def _fail(self, place: int, error: Exception) -> None:
        row = place if self._index is None else int(np.flatnonzero(self._index == place)[0])
        sample = BadSample(int(self._origin[row]), int(self._ids[row]), "read", error)
        with self._lock:
            self._bad.append(sample)
            self._failed.append(row)

    def _give_up(self, places: Int64s, error: DataError) -> None:
        for place in places[places >= 0].tolist():
            self._fail(place, error)

    def block(self) -> Block:
        """All rows that were read. Call it once, when every span has been read."""
        rows = len(self._origin)
        columns: dict[str, Column] = {}
        for column in self.group.schema:
            if column.name in self._pieces:
                columns[column.name] = _ordered(self._pieces[column.name], column.type, rows)
            elif column.name in self._mixed:
                dense = self._dense[column.name]
                columns[column.name] = _with_nulls(dense, self._mixed[column.name], column.type)
            else:
                columns[column.name] = self._dense[column.name]
        self._pieces, self._mixed = {}, {}
        block = Block(columns, self._ids, self._origin, owned=True, index=self._index)
        if not self._failed:
            return block
        keep = np.ones(rows, np.bool_)
        keep[self._failed] = False
        unique = {sample.origin: sample for sample in self._bad}
        return block.ordered().without([unique[origin] for origin in sorted(unique)], keep)


def _as_slice(to: Int64s) -> slice | Int64s:
    """Consecutive places as a slice, which NumPy copies without looking at each index."""
    if len(to) and to[-1] - to[0] == len(to) - 1 and bool((np.diff(to) == 1).all()):
        return slice(int(to[0]), int(to[-1]) + 1)
    return to


def _has_nulls(array: Arrow) -> bool:
    """Nulls at any depth of a dense array."""
    if array.null_count:
        return True
    if isinstance(array.type, pa.FixedShapeTensorType):
        return _has_nulls(array.storage)
    return pa.types.is_fixed_size_list(array.type) and _has_nulls(array.flatten())


def _ordered(pieces: _Pieces, kind: pa.DataType, rows: int) -> Arrow:
    """The arrays' rows at their places; a place that got no row (it was bad) is null."""
    if not pieces.arrays:
        empty: Arrow = pa.array([None] * rows, kind)
        return empty
    # Spans arrive in any order; in that of their places, rows that were read in order need no gather.
    order = sorted(range(len(pieces.arrays)), key=lambda number: int(pieces.places[number][:1].sum()))
    whole = _joined([pieces.arrays[number] for number in order])
    places = np.concatenate([pieces.places[number] for number in order])
    index = np.full(rows, -1, np.int64)
    index[places] = np.arange(len(places))
    if len(places) == rows and bool((index == np.arange(rows)).all()):
        return whole
    return whole.take(pa.array(index, mask=index < 0))


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


def _with_nulls(dense: npt.NDArray[np.generic], mixed: _Pieces, kind: pa.DataType) -> Arrow:
    """A column of which some spans had nulls: what is in `dense`, but for the rows in `mixed`."""
    index = np.arange(len(dense))
    places = np.concatenate(mixed.places)
    index[places] = len(dense) + np.arange(len(places))
    return pa.concat_arrays([to_arrow(dense, kind), *mixed.arrays]).take(pa.array(index))
