"""Batches as dicts of NumPy arrays, or as Arrow record batches: torch is not imported."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from connectors.arrow_types import Arrow, is_list, is_ragged
from connectors.tensors import shape_of, to_arrow, to_numpy
from dataflow.errors import DataError
from dataflow.execute.assemble import HostBatch
from dataflow.graph.block import Column, as_arrow
from dataflow.graph.image_column import ImageType, images_in
from dataflow.wording import counted

__all__ = ["NumpyBatch", "dense_or_listed", "extras", "to_arrow_batch", "to_numpy_batch"]

Plain = npt.NDArray[np.generic] | list[object]
# Arrays, and lists for what is no array: Any, for whoever asks for a column knows which of the two it is.
NumpyBatch: TypeAlias = dict[str, npt.NDArray[Any] | Any]


def to_numpy_batch(batch: HostBatch, schema: pa.Schema | None = None, *, ids: bool = False) -> NumpyBatch:
    """The columns by name: arrays (rows, *shape) that may be written to, or lists.

    Strings and bytes are lists; ragged columns are lists of 1-d arrays. Times are int64 counts of their unit, and
    numbers in bfloat16 the uint16 of their bits (see `connectors.tensors`). With `ids` also `__id__`, and
    `__replaced_by__` (with `on_error="replace"`).

    Raises:
        DataError: a column has nulls; names the column and the sample.
    """
    columns: dict[str, Plain] = {
        name: dense_or_listed(name, column, batch) for name, column in batch.columns.items()
    }
    return {**columns, **extras(batch, ids=ids)}


def extras(batch: HostBatch, *, ids: bool) -> Mapping[str, npt.NDArray[np.generic]]:
    """The columns that Dataflow adds: `__valid__`, `__id__`, `__replaced_by__`."""
    found: dict[str, npt.NDArray[np.generic]] = {}
    if batch.valid is not None:
        found["__valid__"] = batch.valid
    if ids:
        found["__id__"] = batch.ids if batch.ids.flags.writeable else batch.ids.copy()
        if batch.replaced is not None:
            found["__replaced_by__"] = batch.replaced
    return found


def dense_or_listed(name: str, column: Column, batch: HostBatch) -> Plain:
    """A column as a writable array of its own, its axes in memory as they were, or as a list."""
    if isinstance(column, np.ndarray):
        return column if batch.owned and column.flags.writeable else column.copy(order="K")
    if shape_of(column.type) is not None:
        _refuse_nulls(name, column, batch)
        return to_numpy(column).copy(order="K")
    return _listed(name, column, batch)


def _listed(name: str, column: Arrow, batch: HostBatch) -> list[object]:
    kind = column.type
    if isinstance(kind, ImageType):
        _refuse_nulls(name, column, batch)
        return [image.copy() for image in images_in(column) if image is not None]
    if isinstance(kind, pa.DictionaryType):
        return _listed(name, column.dictionary_decode(), batch)
    if is_ragged(kind) and shape_of(kind.value_type) is not None:
        _refuse_nulls(name, column, batch)
        flat = column.flatten()
        sizes = column.value_lengths().to_numpy(zero_copy_only=False)
        return list(np.split(to_numpy(flat).copy(), np.cumsum(sizes)[:-1])) if len(sizes) else []
    values: list[object] = column.to_pylist()
    return values


def _refuse_nulls(name: str, column: Arrow, batch: HostBatch) -> None:
    found = _find_nulls(column)
    if found is None:
        return
    nulls, row, inside = found
    first = int(batch.ids[row].ravel()[0])
    leaf = column.type
    while _is_nested(leaf):
        leaf = leaf.value_type
    fill = False if pa.types.is_boolean(leaf) else 0
    raise DataError(
        f"column {name!r} has {counted(nulls, 'null')}{' inside its lists' if inside else ''} "
        f"(first in sample {first >> 40}:{first & (1 << 40) - 1}), and a tensor has no place for that.",
        sample=first,
        hint=f"fill them with .nulls({name!r}, value={fill}), or .nulls({name!r}, value={fill}, mask=True)",
    )


def _find_nulls(column: Arrow) -> tuple[int, int, bool] | None:
    """Of the outermost depth that has nulls: how many, the row of the first, and whether that is inside."""
    if column.null_count:
        return column.null_count, column.is_null().index(True).as_py(), False
    if isinstance(column.type, pa.FixedShapeTensorType):
        return _find_nulls(column.storage)
    if not _is_nested(column.type):
        return None
    found = _find_nulls(column.flatten())
    parents: Arrow = pc.list_parent_indices(column)
    return found and (found[0], int(parents[found[1]].as_py()), True)


def _is_nested(kind: pa.DataType) -> bool:
    return is_list(kind) or isinstance(kind, pa.FixedShapeTensorType)


def _typed(column: Column, kind: pa.DataType | None) -> Arrow:
    """A column as Arrow, dense ones with the type that they had before they were NumPy."""
    if not isinstance(column, np.ndarray) or kind is None:
        return as_arrow(column)
    return to_arrow(column, kind) if shape_of(kind) == (column.dtype, column.shape[1:]) else to_arrow(column)


def to_arrow_batch(batch: HostBatch, schema: pa.Schema | None = None, *, ids: bool = False) -> pa.RecordBatch:
    """The columns as one Arrow record batch; dense ones share memory with the loader's buffers, read-only."""
    known = {} if schema is None else {field.name: field.type for field in schema}
    columns = {name: _typed(column, known.get(name)) for name, column in batch.columns.items()}
    for name, values in extras(batch, ids=ids).items():
        columns[name] = as_arrow(values)
    return pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))
