"""A map-style data set: any object with `__len__` and `__getitem__`, as torch's `Dataset`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol, TypeAlias, cast

import numpy as np
import pyarrow as pa

from connectors.arrow_types import Column
from connectors.conform import plain, rows_alone
from connectors.contract import BadRow, Chunk, FileInfo, Fragment, Opened, Scan, Traits
from connectors.fitting import fitted
from connectors.memory import values_of
from connectors.store import Store
from connectors.tensors import to_arrow
from dataflow.errors import DataError, PlanError
from dataflow.wording import counted, text_of

__all__ = ["Dataset", "MapStyle"]

Value: TypeAlias = Any  # what a user's data set returns

FRAGMENT_ROWS = 1_024
_COLUMNS: Final = "columns"  # in the `meta` of an index: all that a row has
# What Arrow and NumPy raise for a value that is not of the type asked for; PlanError is a ValueError.
UNFIT = (
    pa.ArrowInvalid,
    pa.ArrowTypeError,
    pa.ArrowNotImplementedError,
    TypeError,
    ValueError,
    OverflowError,
)


class MapStyle(Protocol):
    """What a data set must have. Rows are asked for from several threads at once."""

    def __len__(self) -> int: ...

    def __getitem__(self, index: int, /) -> Value: ...


@dataclass(frozen=True, eq=False, kw_only=True)
class Dataset:
    """The rows of a map-style data set; a fragment is 1,024 of them.

    A row is a dict, a named tuple, a tuple (columns "0", "1", ...) or one value (column "value"); `columns`
    names them otherwise. Values are numbers, strings, bytes, arrays and tensors, or lists and dicts of these.

    The schema is that of row 0, unless `schema` gives it: an array of one axis becomes FixedSizeList, of more
    fixed_shape_tensor, so that rows of another shape are bad rows; give `schema` with `pa.list_` for ragged
    ones. Every row has exactly the columns of the schema, None where there is no value: one that lacks a column or
    has another, or that raises, is a `BadRow`. `files()` names the one pseudo file that stands for the rows.
    """

    data: MapStyle = field(repr=False)
    columns: tuple[str, ...] | None = None
    schema: pa.Schema | None = None

    def __post_init__(self) -> None:
        if not hasattr(self.data, "__len__") or not hasattr(self.data, "__getitem__"):
            raise PlanError(
                f"a {type(self.data).__name__} has no length or no rows by number.",
                hint="give an object with __len__ and __getitem__; an iterable one has no exact resume",
            )
        if self.schema is not None and not isinstance(self.schema, pa.Schema):
            raise PlanError(
                f"schema={self.schema!r} is no schema.", hint="as pyarrow.schema({'x': pyarrow.int64()})"
            )

    @property
    def name(self) -> str:
        return "dataset"

    @property
    def suffixes(self) -> tuple[str, ...]:
        return ()

    @property
    def traits(self) -> Traits:
        return Traits(row_ranges=True, single_rows=True)

    def files(self) -> tuple[FileInfo, ...]:
        """The one pseudo file that stands for the data set; its size is the number of rows."""
        return (FileInfo(self._label, len(self.data)),)

    def scan(self, store: Store, files: Sequence[FileInfo]) -> Scan:
        """See `Connector`; reads row 0. `offset` is the first row of the fragment.

        Raises:
            DataError: row 0 raises.
            PlanError: a value of row 0 has no Arrow type.
        """
        count = len(self.data)
        offset = np.arange(0, count, FRAGMENT_ROWS)
        rows = np.minimum(FRAGMENT_ROWS, count - offset)
        schema = self._schema()
        return Scan(
            schema=schema,
            file=np.zeros(len(offset), np.int64),
            offset=offset,
            length=rows,
            rows=rows,
            meta={_COLUMNS: list(schema.names)},
        )

    def read(
        self, opened: Opened, fragment: Fragment, schema: pa.Schema, start: int, stop: int, max_rows: int
    ) -> Iterator[Chunk]:
        """See `Connector`."""
        if fragment.offset + fragment.rows > len(self.data):
            raise DataError(
                f"it has {counted(len(self.data), 'row')}, not {fragment.offset + fragment.rows}.",
                file=self._label,
                hint="resume with the data set that the run was started with",
            )
        # All columns: that a row has others is seen whichever of them are read.
        names = cast("list[str]", opened.meta[_COLUMNS])
        for first in range(start, stop, max_rows):
            count = min(max_rows, stop - first)
            yield self._chunk(range(fragment.offset + first, fragment.offset + first + count), schema, names)

    @property
    def _label(self) -> str:
        return type(self.data).__name__

    def _schema(self) -> pa.Schema:
        if self.schema is not None:
            return plain(self.schema, file=self._label)
        if not len(self.data):
            return pa.schema([])
        row = self._row(0)
        return pa.schema([pa.field(name, _type_of(name, value)) for name, value in row.items()])

    def _row(self, index: int) -> dict[str, Value]:
        """The values of a row by column, tensors as ndarrays."""
        try:
            row = self.data[index]
            if isinstance(row, Mapping):
                found = {str(name): value for name, value in row.items()}
            elif isinstance(row, tuple):
                names = self.columns or getattr(row, "_fields", None) or [str(k) for k in range(len(row))]
                found = dict(zip(names, row, strict=True))
            else:
                found = {(self.columns or ("value",))[0]: row}
            return {name: values_of(value) for name, value in found.items()}
        except Exception as error:
            # The row is the user's code: whatever it raises costs this row only.
            raise DataError(
                f"it raised {type(error).__name__}: {text_of(error)}",
                file=self._label,
                row=index,
                hint="repair the data set's __getitem__, or use on_error='skip' or 'replace'",
            ) from error

    def _whole_row(self, index: int, names: Sequence[str]) -> dict[str, Value]:
        """The values of a row that has exactly these columns."""
        row = self._row(index)
        for name in names:
            if name not in row:
                raise DataError(
                    f"it has no {name!r}, which the schema has.",
                    file=self._label,
                    row=index,
                    hint="return the same keys for every row, None where there is no value",
                )
        if len(row) != len(names):
            raise DataError(
                f"it has {sorted(set(row).difference(names))}, which the schema does not have.",
                file=self._label,
                row=index,
                hint="return the same keys for every row, or give from_dataset(schema=...) with all of them; "
                "drop() leaves out those that nobody wants",
            )
        return row

    def _chunk(self, indices: range, schema: pa.Schema, names: Sequence[str]) -> Chunk:
        bad: dict[int, DataError] = {}
        rows: list[dict[str, Value]] = []
        for place, index in enumerate(indices):
            try:
                rows.append(self._whole_row(index, names))
            except DataError as error:
                bad[place] = error
                rows.append({})
        try:
            batch = _batch(rows, schema)
        except UNFIT:
            # Some row does not fit: look at each alone.
            for place, index in enumerate(indices):
                unfit = self._unfit(rows[place], schema, index)
                if unfit is not None:
                    bad[place] = unfit
                    rows[place] = {}
            batch = _batch(rows, schema)
        return Chunk(batch, tuple(BadRow(place, bad[place]) for place in sorted(bad)))

    def _unfit(self, row: dict[str, Value], schema: pa.Schema, index: int) -> DataError | None:
        """What is wrong with a row that does not fit the schema."""
        for wanted in schema:
            try:
                _column([row.get(wanted.name)], wanted.type)
            except UNFIT as cause:
                error = DataError(
                    f"column {wanted.name!r} does not fit {wanted.type}: {text_of(cause)}",
                    file=self._label,
                    row=index,
                    hint="give Dataset(schema=...) a type that all rows fit, as pa.list_ for ragged arrays",
                )
                error.__cause__ = cause
                return error
        return None


def _batch(rows: Sequence[dict[str, Value]], schema: pa.Schema) -> pa.RecordBatch:
    if not len(schema):
        return rows_alone(len(rows))
    columns = [_column([row.get(field.name) for row in rows], field.type) for field in schema]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _type_of(name: str, value: Value) -> pa.DataType:
    """The Arrow type of a value of row 0."""
    try:
        if isinstance(value, np.ndarray | np.generic) and value.dtype.kind in "iufb":
            column = to_arrow(np.asarray(value)[np.newaxis])
        else:
            column = pa.array([value])
        kind: pa.DataType = column.type
        return kind
    except UNFIT as error:
        raise PlanError(
            f"column {name!r} of row 0 is a {type(value).__name__}, which has no Arrow type.",
            hint="return numbers, strings, bytes, arrays or tensors; of an image numpy.asarray(image)",
        ) from error


def _column(values: Sequence[Value], kind: pa.DataType) -> Column:
    """Values as an array of a type; None is null."""
    column: Column = fitted(list(values), kind)
    return to_arrow(column, kind) if isinstance(column, np.ndarray) else column
