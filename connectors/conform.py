"""`conform`: rows of one file in the schema of the whole source; `plain`: the schema that a scan gives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from connectors.arrow_types import Column, Kind, is_list
from connectors.contract import Chunk
from connectors.isolate import isolated
from dataflow.errors import DataError

__all__ = ["conform", "conformed", "plain", "rows_alone"]


def conform(batch: pa.RecordBatch, schema: pa.Schema, *, file: str) -> pa.RecordBatch:
    """Return the rows of `batch` with exactly `schema`, in its order, without a copy where types agree.

    A column (or struct field) that the batch lacks is null, one that is not asked for is left out. These
    widen: null to anything, integers to larger ones and, where every value is exact, to floats, floats to
    larger floats, strings and binaries to their large forms, dictionaries to and from their values, coarser
    timestamps, dates and durations to finer ones, decimals to larger ones, lists between their forms.

    Raises:
        DataError: a column cannot be widened or a value does not fit, or a name occurs twice; names `file`
            and the column.
    """
    if batch.schema.equals(schema, check_metadata=True):
        return batch
    if not len(schema):
        # `from_arrays` of no columns would have no rows.
        return batch.select([]).replace_schema_metadata(schema.metadata)
    columns = [_find(batch, field, file) for field in schema]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def conformed(batch: pa.RecordBatch, schema: pa.Schema, *, file: str) -> Chunk:
    """As `conform`; a row with a value that does not fit is bad.

    Raises:
        DataError: the types do not go together, whatever the values.
    """
    try:
        return Chunk(conform(batch, schema, file=file))
    except DataError:
        conform(batch.slice(0, 0), schema, file=file)
    return isolated(
        lambda low, high: conform(batch.slice(low, high - low), schema, file=file),
        0, batch.num_rows, schema, DataError,
    )  # fmt: skip


def rows_alone(rows: int) -> pa.RecordBatch:
    """A batch of so many rows that has no columns, which Arrow makes only from one that has."""
    return pa.record_batch({"rows": pa.nulls(rows)}).select([])


def plain(schema: pa.Schema, *, file: str) -> pa.Schema:
    """The schema without metadata and with values for dictionaries and run-ends, at every depth.

    Batches whose dictionaries differ could not be joined without a look at each value, and what a file
    stores as a dictionary is no property of the data.

    Raises:
        DataError: a name occurs twice; names `file` and the column.
    """
    for name in schema.names:
        _refuse_twice(schema, name, file)
    return pa.schema([_plain_field(field) for field in schema])


def _plain_field(field: pa.Field[Any]) -> pa.Field[Any]:
    # A damaged file may say of nulls that there are none.
    kind = _plain_type(field.type)
    return pa.field(field.name, kind, field.nullable or pt.is_null(kind))


def _plain_type(kind: Kind) -> Kind:
    if pt.is_dictionary(kind) or pt.is_run_end_encoded(kind):
        return _plain_type(kind.value_type)
    if pt.is_string_view(kind) or pt.is_binary_view(kind):
        # Arrow has no `take` for views.
        return pa.large_string() if pt.is_string_view(kind) else pa.large_binary()
    if pt.is_struct(kind):
        return pa.struct([_plain_field(kind.field(k)) for k in range(kind.num_fields)])
    if pt.is_map(kind):
        return pa.map_(_plain_field(kind.key_field), _plain_field(kind.item_field), kind.keys_sorted)
    if pt.is_fixed_size_list(kind):
        return pa.list_(_plain_field(kind.value_field), kind.list_size)
    if pt.is_list(kind):
        return pa.list_(_plain_field(kind.value_field))
    if pt.is_large_list(kind):
        return pa.large_list(_plain_field(kind.value_field))
    return kind


def _refuse_twice(schema: pa.Schema, name: str, file: str) -> None:
    times = len(schema.get_all_field_indices(name))
    if times > 1:
        raise DataError(
            f"column {name!r} occurs {times} times.",
            file=file,
            hint="rename one of them where the file is written",
        )


def _find(batch: pa.RecordBatch, field: pa.Field[Any], file: str) -> Column:
    place = batch.schema.get_field_index(field.name)
    if place < 0:
        _refuse_twice(batch.schema, field.name, file)
        return _nulls(batch.num_rows, field.type)
    column = batch.column(place)
    try:
        return _widen(column, field.type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise DataError(
            f"column {field.name!r} is {column.type}, which does not fit {field.type}: {error}",
            file=file,
            hint="the files of a source must have compatible types: cast where the file is written",
        ) from error


def _nulls(rows: int, kind: Kind) -> Column:
    return pa.nulls(rows, kind)


def _widen(column: Column, target: Kind) -> Column:
    source = column.type
    if source.equals(target, check_metadata=True):
        return column
    if pt.is_null(source):
        return _nulls(len(column), target)
    if isinstance(source, pa.BaseExtensionType):
        return _widen(column.storage, target)
    if isinstance(target, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(target, _widen(column, target.storage_type))
    if pt.is_run_end_encoded(source):
        return _widen(pc.call_function("run_end_decode", [column]), target)
    if pt.is_dictionary(source):
        if pt.is_dictionary(target):
            values = _widen(column.dictionary, target.value_type)
            indices = column.indices.cast(target.index_type)
            return pa.DictionaryArray.from_arrays(indices, values, ordered=target.ordered)
        return _widen(column.dictionary_decode(), target)
    if pt.is_dictionary(target):
        return _widen(column, target.value_type).dictionary_encode().cast(target)
    if pt.is_struct(source) and pt.is_struct(target):
        return _widen_struct(column, target)
    if is_list(source) and is_list(target):
        return _widen_list(column, target)
    if pt.is_map(source) and pt.is_map(target):
        return _widen_map(column, target)
    if not _widens(source, target):
        raise pa.ArrowInvalid("the types are not compatible")
    return column.cast(target)


def _widen_struct(column: Column, target: Kind) -> Column:
    fields = [target.field(k) for k in range(target.num_fields)]
    source = column.type
    children = []
    for field in fields:
        place = source.get_field_index(field.name)
        children.append(
            _nulls(len(column), field.type) if place < 0 else _widen(column.field(place), field.type)
        )
    if not fields:
        return pa.Array.from_buffers(target, len(column), [_validity(column)])
    return pa.StructArray.from_arrays(children, fields=fields, mask=_mask(column))


def _widen_list(column: Column, target: Kind) -> Column:
    """Lists in another form or of wider values.

    They are built from their parts: pyarrow's cast of list<struct<x: null>>, even to itself, makes an invalid array.
    """
    offsets, first, length = _offsets(column)
    values = _widen(column.values.slice(first, length), target.value_type)
    if pt.is_fixed_size_list(target):
        values = _of_equal_length(column, offsets, values, target.list_size)
        # `from_arrays` takes no lists of length 0.
        return pa.Array.from_buffers(target, len(column), [_validity(column)], children=[values])
    is_large = pt.is_large_list(target)
    offsets = offsets.cast(pa.int64() if is_large else pa.int32())
    kind = pa.LargeListArray if is_large else pa.ListArray
    return kind.from_arrays(offsets, values, type=target, mask=_mask(column))


def _of_equal_length(column: Column, offsets: Column, values: Column, size: int) -> Column:
    """The values with `size` of them for every row, a null one too.

    Raises:
        ArrowInvalid: a list has another length.
    """
    if pt.is_fixed_size_list(column.type) and column.type.list_size == size:
        return values
    ends = offsets.to_numpy()
    lengths = np.diff(ends)
    valid = column.is_valid().to_numpy(zero_copy_only=False)
    wrong = lengths[valid & (lengths != size)]
    if len(wrong):
        raise pa.ArrowInvalid(f"a list has {wrong[0]} values, not {size}")
    if valid.all():
        return values
    places = (ends[:-1, None] + np.arange(size)).ravel()
    return values.take(pa.array(places, mask=np.repeat(~valid, size)))


def _widen_map(column: Column, target: Kind) -> Column:
    offsets, first, size = _offsets(column)
    keys = _widen(column.keys.slice(first, size), target.key_type)
    items = _widen(column.items.slice(first, size), target.item_type)
    return pa.MapArray.from_arrays(offsets, keys, items, type=target, mask=_mask(column))


def _mask(column: Column) -> Column | None:
    return column.is_null() if column.null_count else None


def _validity(column: Column) -> pa.Buffer | None:
    """The bits of the rows that are not null, the first row's first; None where no row is null."""
    return column.is_valid().buffers()[1] if column.null_count else None


def _offsets(column: Column) -> tuple[Column, int, int]:
    """The offsets of a column of lists from 0 on, and which of the values they name.

    The values of a slice are those of the whole array.
    """
    if pt.is_fixed_size_list(column.type):
        size = column.type.list_size
        offsets = pa.array(np.arange(len(column) + 1, dtype=np.int64) * size)
        return offsets, column.offset * size, len(column) * size
    offsets = column.offsets
    first, last = offsets[0].as_py(), offsets[-1].as_py()
    return pc.subtract(offsets, pa.scalar(first, offsets.type)), first, last - first


def _widens(source: Kind, target: Kind) -> bool:
    """Whether a leaf type may become another without losing what its values mean."""
    if source == target:
        return True
    if pt.is_integer(source):
        if pt.is_integer(target):
            grows = target.bit_width > source.bit_width
            return grows and (pt.is_signed_integer(target) or pt.is_unsigned_integer(source))
        return pt.is_floating(target) or pt.is_decimal(target)
    if pt.is_floating(source):
        return pt.is_floating(target) and target.bit_width > source.bit_width
    if _is_text(source) or _is_bytes(source):
        return (_is_text(target) and _is_text(source)) or _is_bytes(target)
    if pt.is_fixed_size_binary(source):
        return _is_bytes(target)
    if pt.is_decimal(source):
        return pt.is_decimal(target)
    if pt.is_timestamp(source) and pt.is_timestamp(target):
        return (source.tz is None) == (target.tz is None) and _finer(source, target)
    if pt.is_duration(source) and pt.is_duration(target):
        return _finer(source, target)
    if pt.is_time(source) and pt.is_time(target):
        return _finer(source, target)
    if pt.is_date(source):
        return pt.is_date64(target) or (pt.is_timestamp(target) and target.tz is None)
    return False


def _finer(source: Kind, target: Kind) -> bool:
    units = ("s", "ms", "us", "ns")
    return units.index(target.unit) >= units.index(source.unit)


def _is_text(kind: Kind) -> bool:
    return pt.is_string(kind) or pt.is_large_string(kind) or pt.is_string_view(kind)


def _is_bytes(kind: Kind) -> bool:
    return pt.is_binary(kind) or pt.is_large_binary(kind) or pt.is_binary_view(kind)
