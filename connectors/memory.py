"""Rows that are in memory already, as Arrow data or as columns."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol, TypeAlias

import numpy as np
import pyarrow as pa

from connectors.conform import conform, plain, rows_alone
from connectors.contract import Chunk, FileInfo, Fragment, Opened, Scan, Traits
from connectors.store import Store
from connectors.tensors import to_arrow
from dataflow.errors import DataError, PlanError
from dataflow.given import as_dict
from dataflow.wording import counted

__all__ = ["ArrowStream", "InMemory", "from_arrow", "from_columns", "values_of"]


class ArrowStream(Protocol):
    """Anything that exports Arrow's C stream: tables, readers, and the data frames of other libraries."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...


ArrowRows: TypeAlias = pa.Table | pa.RecordBatch | pa.RecordBatchReader | ArrowStream
Column: TypeAlias = Any  # an array-like: Arrow, NumPy, a tensor, or a sequence of Python values

MAX_FRAGMENT_ROWS = 65_536
MIN_MEAN_ROWS = 1_024
MIN_MEAN_BYTES = 1 << 20
SAMPLED_ROWS = 16
NAME = "in memory"


@dataclass(frozen=True, eq=False)
class InMemory:
    """A table in memory; a fragment is a chunk of it, at most 65,536 rows. Nothing is copied.

    `files()` names the one pseudo file that `scan` and `read` know; what store they are given does not
    matter. Its etag is a hash of the schema and of the first and last rows.
    """

    table: pa.Table = field(repr=False)

    def __reduce__(self) -> tuple[type[InMemory], tuple[pa.Table]]:
        return InMemory, (self.table,)

    @property
    def name(self) -> str:
        return "memory"

    @property
    def suffixes(self) -> tuple[str, ...]:
        return ()

    @property
    def traits(self) -> Traits:
        return Traits(row_ranges=True, single_rows=True)

    def files(self) -> tuple[FileInfo, ...]:
        """The one pseudo file that stands for the table."""
        return (FileInfo(NAME, self.table.nbytes, etag=_fingerprint(self.table)),)

    def scan(self, store: Store, files: Sequence[FileInfo]) -> Scan:
        """See `Connector`. `offset` is the number of the chunk."""
        rows = np.array([batch.num_rows for batch in self._batches], np.int64)
        return Scan(
            schema=plain(self.table.schema, file=NAME),
            file=np.zeros(len(rows), np.int64),
            offset=np.arange(len(rows)),
            length=np.ones(len(rows), np.int64),
            rows=rows,
        )

    def read(
        self, opened: Opened, fragment: Fragment, schema: pa.Schema, start: int, stop: int, max_rows: int
    ) -> Iterator[Chunk]:
        """See `Connector`."""
        batches = self._batches
        if fragment.offset >= len(batches) or batches[fragment.offset].num_rows != fragment.rows:
            raise DataError(
                f"chunk {fragment.offset} with {counted(fragment.rows, 'row')} is not in the table.",
                file=NAME,
                hint="resume with the table that the run was started with",
            )
        batch = batches[fragment.offset]
        for row in range(start, stop, max_rows):
            yield Chunk(conform(batch.slice(row, min(max_rows, stop - row)), schema, file=NAME))

    @cached_property
    def _batches(self) -> Sequence[pa.RecordBatch]:
        table = self.table
        if not table.num_columns:
            return [rows_alone(table.num_rows)]
        chunks = len(table.to_batches())
        if chunks > 1 and table.num_rows < MIN_MEAN_ROWS * chunks and table.nbytes < MIN_MEAN_BYTES * chunks:
            # With fragments of a few rows a shuffle of fragments would cost more than the rows.
            table = table.combine_chunks()
        return [batch for batch in table.to_batches(max_chunksize=MAX_FRAGMENT_ROWS) if batch.num_rows]


def from_arrow(rows: ArrowRows) -> InMemory:
    """Read from a table, a record batch, a reader (read to its end here), or any object of Arrow's C stream.

    Raises:
        PlanError: the argument is none of these, or a column name occurs twice.
    """
    if isinstance(rows, pa.RecordBatch):
        table = pa.Table.from_batches([rows])
    elif isinstance(rows, pa.RecordBatchReader):
        table = rows.read_all()
    elif isinstance(rows, pa.Table):
        table = rows
    else:
        table = _from_stream(rows)
    return InMemory(_named_once(table))


def from_columns(columns: Mapping[str, Column]) -> InMemory:
    """Read from columns of equal length: NumPy arrays, tensors, Arrow arrays, or sequences of Python values.

    The first axis is the rows. Arrays of numbers are not copied, so keep them unchanged while they are read;
    of two axes they become FixedSizeList, of more fixed_shape_tensor. NaT and masked values become nulls.

    Raises:
        PlanError: a column is not an array or sequence, its type has no Arrow form, or the lengths differ.
    """
    named = as_dict("from_columns", columns, hint="as from_columns({'x': [1, 2]})")
    arrays = {name: _column(name, values) for name, values in named.items()}
    lengths = {name: len(array) for name, array in arrays.items()}
    if len(set(lengths.values())) > 1:
        shown = ", ".join(f"{name!r} {length}" for name, length in lengths.items())
        raise PlanError(f"the columns have different lengths: {shown}.", hint="cut or pad them to one length")
    return InMemory(pa.table(arrays))


def values_of(value: Column) -> Column:
    """A tensor of any framework as the ndarray of its values; any other value as it is."""
    if isinstance(value, np.ndarray | pa.Array | pa.ChunkedArray):
        return value
    if not callable(getattr(value, "numpy", None)):
        return value
    # A tensor that takes part in a gradient does not give its values away until it is detached.
    detach = getattr(value, "detach", None)
    return (detach() if callable(detach) else value).numpy()


def _from_stream(rows: object) -> pa.Table:
    if not hasattr(rows, "__arrow_c_stream__"):
        raise PlanError(
            f"from_arrow got a {type(rows).__name__}.",
            hint="give a pyarrow Table, RecordBatch or RecordBatchReader; for a dict use from_columns",
        )
    stream: Any = rows
    return pa.table(stream)


def _named_once(table: pa.Table) -> pa.Table:
    try:
        plain(table.schema, file=NAME)
    except DataError as error:
        raise PlanError(error.message, hint="rename one of the columns") from error
    return table


def _column(name: str, values: Column) -> pa.Array[Any] | pa.ChunkedArray[Any]:
    if isinstance(values, str | bytes | Mapping) or not hasattr(values, "__len__"):
        raise PlanError(f"column {name!r} is a {type(values).__name__}.", hint="give an array or a sequence")
    try:
        values = values_of(values)
        if isinstance(values, pa.Array | pa.ChunkedArray):
            return values
        if isinstance(values, Sequence) and len(values) and _is_nd(values[0]):
            values = np.stack([values_of(value) for value in values])
        if isinstance(values, np.ma.MaskedArray):
            return pa.array(values.data, mask=np.ma.getmaskarray(values))
        has_dense_type = isinstance(values, np.ndarray) and values.dtype.kind in "iufb"
        return to_arrow(values) if has_dense_type else pa.array(values)
    except PlanError as error:
        raise PlanError(f"column {name!r}: {error.message}", hint=error.hint) from error
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, TypeError, ValueError) as error:
        raise PlanError(
            f"column {name!r} cannot become an Arrow array: {error}",
            hint="give numbers, strings, bytes, times, or lists and dicts of them, of one type",
        ) from error


def _is_nd(value: Column) -> bool:
    return getattr(value, "ndim", 0) >= 2


def _fingerprint(table: pa.Table) -> str:
    """A hash of the schema and of some rows: enough to notice that another table has taken its place."""
    sink = pa.BufferOutputStream()
    ends = pa.concat_tables(
        [table.slice(0, SAMPLED_ROWS), table.slice(max(0, table.num_rows - SAMPLED_ROWS))]
    )
    # As it is read: a slice of views would carry all the text of the table.
    ends = ends.cast(plain(table.schema, file=NAME))
    with pa.ipc.new_stream(sink, ends.schema) as writer:
        writer.write_table(ends.combine_chunks())
    return hashlib.blake2b(sink.getvalue(), digest_size=8).hexdigest()
