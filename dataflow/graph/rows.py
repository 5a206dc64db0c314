"""A block as rows for a Python function, and the rows that it returns as columns again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from connectors.tensors import has_nulls, shape_of, to_numpy
from dataflow.errors import PlanError
from dataflow.graph.block import Column, as_arrow

__all__ = ["Row", "columns_of", "infer_schema", "listed", "plain_value"]

Row = dict[str, object]
# The stubs of pyarrow know the members of an array or type only when its class is known statically.
Arrow: TypeAlias = Any


def listed(columns: Mapping[str, Column], rows: int) -> list[Row]:
    """The rows of columns as dicts of NumPy scalars, NumPy arrays, str, bytes; a null is None."""
    names = list(columns)
    if not names:
        return [{} for _ in range(rows)]
    return [
        dict(zip(names, values, strict=True)) for values in zip(*map(_values, columns.values()), strict=True)
    ]


def _values(column: Column) -> Sequence[object]:
    if isinstance(column, np.ndarray):
        return list(column)
    kind: Arrow = column.type
    if pa.types.is_temporal(kind) and not pa.types.is_interval(kind) and column.null_count == 0:
        return list(column.to_numpy(zero_copy_only=False))
    if shape_of(kind) is not None and not has_nulls(column):
        return list(to_numpy(column))
    if isinstance(kind, pa.FixedShapeTensorType):
        return _values(column.storage)
    lists = pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)
    if lists and shape_of(kind.value_type) is not None:
        return [None if not item.is_valid else _list_value(item) for item in column]
    values: list[object] = column.to_pylist()
    return values


def _list_value(item: Arrow) -> object:
    values = item.values
    return values.to_pylist() if has_nulls(values) else to_numpy(values)


def plain_value(value: object) -> object:
    """A torch tensor (anything with `.numpy()`) as NumPy, NumPy text and bytes as Python's; all else as it is."""
    if isinstance(value, np.str_ | np.bytes_):
        return value.item()
    numpy = getattr(value, "numpy", None)
    return numpy() if callable(numpy) and not isinstance(value, np.ndarray) else value


def infer_schema(rows: Sequence[Row], operator: str) -> pa.Schema:
    """The schema of the rows that a function returned.

    Arrays of one dtype and one shape give a fixed-shape column; 1-d arrays of several lengths, and Python
    lists, give a list column; the rest is what Arrow infers.

    Raises:
        PlanError: the rows have different keys, or a value has no Arrow type.
    """
    names = list(rows[0])
    for row in rows:
        if set(row) != set(names):
            raise PlanError(
                f"{operator}: the function returned the keys {sorted(row)}, and before {sorted(names)}.",
                hint="return the same keys for every row",
            )
    return pa.schema(
        [pa.field(name, _infer_type([row[name] for row in rows], name, operator)) for name in names]
    )


def _infer_type(values: Sequence[object], name: str, operator: str) -> Arrow:
    present: list[Any] = [plain_value(value) for value in values if value is not None]
    try:
        arrays = [value for value in present if isinstance(value, np.ndarray | np.generic)]
        if arrays and len(arrays) == len(present):
            dtype = np.result_type(*arrays)
            shapes = {array.shape for array in arrays}
            if len(shapes) == 1:
                return as_arrow(np.zeros((1, *shapes.pop()), dtype)).type
            if {len(shape) for shape in shapes} == {1}:
                return pa.list_(as_arrow(np.zeros(1, dtype)).type)
            raise PlanError(f"shapes {sorted(shapes)} differ")
        return pa.array(present).type
    except (pa.ArrowException, PlanError, TypeError, ValueError) as error:
        raise PlanError(
            f"{operator}: the values returned for {name!r} have no common type: {error}",
            hint=f"give the type: schema={{'{name}': ...}}, or return arrays of one shape",
        ) from error


def columns_of(rows: Sequence[Row], schema: pa.Schema) -> dict[str, Column]:
    """Rows as columns of exactly `schema`.

    Raises:
        TypeError, ValueError, KeyError: a value does not fit its column; the message names the column.
    """
    columns: dict[str, Column] = {}
    for field in schema:
        try:
            columns[field.name] = _column([plain_value(row[field.name]) for row in rows], field.type)
        except KeyError:
            raise KeyError(f"the function returned no {field.name!r}, which its schema has") from None
        except (pa.ArrowException, TypeError, ValueError) as error:
            raise ValueError(f"column {field.name!r} ({field.type}): {error}") from error
    for row in rows:
        if len(row) != len(schema):
            extra = sorted(set(row) - set(schema.names))
            raise ValueError(f"the function returned {extra}, which its schema does not have")
    return columns


def _unit_of(values: Sequence[object]) -> np.dtype[np.generic]:
    return np.result_type(*[v for v in values if isinstance(v, np.datetime64 | np.timedelta64)])


def _column(values: list[object], kind: pa.DataType) -> Column:
    dense = shape_of(kind)
    if pa.types.is_temporal(kind) and any(
        isinstance(value, np.datetime64 | np.timedelta64) for value in values
    ):
        times: Arrow = pa.array(np.array(["NaT" if v is None else v for v in values], _unit_of(values)))
        return times.cast(kind)
    if dense is None or any(value is None for value in values) or pa.types.is_temporal(kind):
        if dense is not None and dense[1]:
            values = [value.tolist() if isinstance(value, np.ndarray) else value for value in values]
            return pa.array(values, kind)
        return pa.array(values, kind)
    dtype, shape = dense
    if not values:
        return np.empty((0, *shape), dtype)
    out: npt.NDArray[np.generic] = np.empty((len(values), *shape), dtype)
    for place, value in enumerate(values):
        array = np.asarray(value)
        if array.shape != shape:
            raise ValueError(f"a value has shape {array.shape}, not {shape}")
        if array.dtype.kind not in "biuf":
            raise TypeError(f"{value!r} is no {dtype}")
        out[place] = array
        lossless = np.can_cast(array.dtype, dtype, "safe") or array.dtype.kind == dtype.kind == "f"
        if not lossless and not np.array_equal(out[place], array):
            raise TypeError(f"{value!r} ({array.dtype}) does not fit {dtype}")
    return out
