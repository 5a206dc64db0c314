"""Rows that a function returned as columns of exactly its schema; which of them do not fit it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from connectors.tensors import shape_of
from dataflow.errors import StageError
from dataflow.graph.block import Column, as_arrow, joined
from dataflow.graph.function_types import infer_type
from dataflow.graph.rows import Row, is_list, plain_value

__all__ = ["as_column", "column_of", "fitting_columns", "misfit", "type_of"]

# The stubs of pyarrow know the members of an array or type only when its class is known statically.
Arrow: TypeAlias = Any


def fitting_columns(
    groups: Sequence[Sequence[Row]], schema: pa.Schema, operator: str
) -> tuple[dict[str, Column], dict[int, StageError]]:
    """The rows of all groups as columns of exactly `schema`, and the errors of the groups that do not fit it.

    A group is left out as a whole where one of its rows does not fit; its error stands under its place.
    """
    try:
        return _columns([row for group in groups for row in group], schema, operator), {}
    except StageError as error:
        if len(groups) == 1:
            return _columns([], schema, operator), {0: error}
    middle = len(groups) // 2
    head, faults = fitting_columns(groups[:middle], schema, operator)
    tail, others = fitting_columns(groups[middle:], schema, operator)
    columns = {name: joined([head[name], tail[name]]) for name in schema.names}
    return columns, {**faults, **{middle + place: error for place, error in others.items()}}


def _columns(rows: Sequence[Row], schema: pa.Schema, operator: str) -> dict[str, Column]:
    columns: dict[str, Column] = {}
    for field in schema:
        try:
            columns[field.name] = column_of([row[field.name] for row in rows], field.type)
        except Exception as error:
            # What is returned is the user's, and may fail in any way when it is looked at.
            lacks = isinstance(error, KeyError) and any(field.name not in row for row in rows)
            raise (_lacking(field.name, operator) if lacks else misfit(field, error, operator)) from error
    for row in rows:
        if len(row) != len(schema):
            others = sorted(map(str, set(row) - set(schema.names)))
            raise StageError(
                f"the function returned {others}, which its schema does not have.",
                operator=operator, hint="return the same keys for every row, or give schema={...}",
            )  # fmt: skip
    return columns


def _lacking(name: str, operator: str) -> StageError:
    return StageError(
        f"the function returned no {name!r}, which its schema has.", operator=operator,
        hint="return the same keys for every row, None where there is no value",
    )  # fmt: skip


def misfit(field: pa.Field[Any], error: Exception, operator: str) -> StageError:
    """The error of values that a function returned and that are none of their column."""
    kind: Arrow = field.type
    dense = shape_of(kind)
    fits, more = "...", ""
    if dense is not None and len(dense[1]) == 1:
        fits, more = f"'list<{kind.value_type}>'", ", which pad({...}) behind it brings to one length"
    return StageError(
        f"the function returned for column {field.name!r} what is no {kind}: {error}", operator=operator,
        hint="all rows have the type that schema= gives, or without it that of the first rows; for one that all "
        f"values fit, give schema={{'{field.name}': {fits}}}{more}",
    )  # fmt: skip


def column_of(values: Sequence[object], kind: pa.DataType) -> Column:
    """The values of rows as a column of a type.

    Raises:
        TypeError, ValueError, pyarrow.ArrowException: a value does not fit it, or what looking at it raised.
    """
    return _column([plain_value(value) for value in values], kind)


def _arrow(values: list[object], kind: pa.DataType) -> Arrow:
    fixed = pa.types.is_fixed_size_list(kind) or isinstance(kind, pa.FixedShapeTensorType)
    # Arrow takes arrays for lists alone, and of one axis.
    values = [
        value.tolist() if isinstance(value, np.ndarray) and (fixed or value.ndim > 1) else value
        for value in values
    ]
    made = pa.array(values, kind)
    # Of floats Arrow keeps the whole part, or infinity where they are too large, and says nothing.
    whole = any(map(_is_whole, _leaves(kind))) and _may_have_floats(values)
    if whole or _infinities(made):
        for value in values:
            if _is_cut(value, kind):
                raise TypeError(f"{value!r} does not fit {kind}")
    return made


def _is_whole(kind: Arrow) -> bool:
    return pa.types.is_integer(kind) or pa.types.is_temporal(kind)


def _may_have_floats(values: list[object]) -> bool:
    try:
        found = pa.infer_type(values)  # type: ignore[call-arg]
        return any(map(pa.types.is_floating, _leaves(found)))
    except pa.ArrowException:
        return True


def _is_cut(value: Any, kind: Arrow) -> bool:
    """Whether a number has a fraction where the type has whole ones, or is finite and too large for its floats."""
    if isinstance(kind, pa.FixedShapeTensorType):
        kind = kind.value_type
    if isinstance(value, list | tuple | np.ndarray):
        inner = kind.value_type if is_list(kind) or pa.types.is_fixed_size_list(kind) else kind
        return any(_is_cut(item, inner) for item in value)
    if _is_whole(kind):
        return isinstance(value, float | np.floating) and bool(value != np.trunc(value))
    if pa.types.is_floating(kind) and value is not None:
        with np.errstate(over="ignore"):
            return math.isfinite(value) and not math.isfinite(np.asarray(value, kind.to_pandas_dtype()))
    if pa.types.is_struct(kind) and isinstance(value, Mapping):
        return any(_is_cut(value.get(field.name), field.type) for field in kind)
    return False


def _infinities(column: Arrow) -> int:
    """How many of the floats in a column are infinite, at any depth."""
    kind = column.type
    if isinstance(kind, pa.FixedShapeTensorType):
        return _infinities(column.storage)
    if pa.types.is_floating(kind):
        return int(np.count_nonzero(pc.is_inf(column.drop_null()).to_numpy(zero_copy_only=False)))
    if pa.types.is_struct(kind):
        return sum(map(_infinities, column.flatten()))
    nested = is_list(kind) or pa.types.is_fixed_size_list(kind)
    return _infinities(column.flatten()) if nested else 0


def _leaves(kind: Arrow) -> list[Arrow]:
    """The types of a nested type that have no types inside."""
    if isinstance(kind, pa.FixedShapeTensorType):
        return _leaves(kind.value_type)
    if not kind.num_fields:
        return [kind]
    return [leaf for place in range(kind.num_fields) for leaf in _leaves(kind.field(place).type)]


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
        return _arrow(values, kind)
    dtype, shape = dense
    if not values:
        return np.empty((0, *shape), dtype)
    out: npt.NDArray[np.generic] = np.empty((len(values), *shape), dtype)
    with np.errstate(over="ignore"):  # what is too large becomes infinite, and is found below
        for place, value in enumerate(values):
            array = np.asarray(value)
            if array.shape != shape:
                raise ValueError(f"a value has shape {array.shape}, not {shape}")
            if array.dtype.kind not in "biuf":
                if shape:
                    return _arrow(values, kind)  # a list with nulls inside
                raise TypeError(f"{value!r} is no {dtype}")
            out[place] = array
            lossless = np.can_cast(array.dtype, dtype, "safe") or array.dtype.kind == dtype.kind == "f"
            if not lossless and not np.array_equal(out[place], array):
                raise TypeError(f"{value!r} ({array.dtype}) does not fit {dtype}")
    for place in _infinite_rows(out):
        array = np.asarray(values[place])
        if not np.array_equal(np.isinf(array), np.isinf(out[place])):
            raise TypeError(f"{values[place]!r} ({array.dtype}) is too large for {dtype}")
    return out


def _infinite_rows(column: npt.NDArray[Any]) -> list[int]:
    """The rows in which a float is infinite."""
    if column.dtype.kind != "f":
        return []
    found: list[int] = np.flatnonzero(np.isinf(column).reshape(len(column), -1).any(axis=1)).tolist()
    return found


def type_of(values: Any, name: str, operator: str) -> Arrow:
    """The type of a whole column that a function returned: an array of NumPy or Arrow, or one value a row.

    Raises:
        PlanError: the values have no common type.
    """
    if isinstance(values, pa.ChunkedArray | pa.Array):
        return values.type
    if isinstance(values, np.ndarray) and values.dtype.kind in "biuf":
        return as_arrow(values).type
    return infer_type(list(values), name, operator)


def as_column(values: Any, kind: pa.DataType) -> Column:
    """A whole column that a function returned, as one of a type. It is a copy: the function may return the same
    memory for the next block.

    Raises:
        TypeError, ValueError, pyarrow.ArrowException: a value does not fit it, or what looking at it raised.
    """
    if isinstance(values, pa.ChunkedArray):
        return _cast(pa.concat_arrays(values.chunks) if values.num_chunks else values.combine_chunks(), kind)
    if isinstance(values, pa.Array):
        return _cast(pa.concat_arrays([values]), kind)
    if isinstance(values, np.ndarray) and values.dtype.kind in "biuf":
        values = values.copy()
        if shape_of(kind) == (values.dtype, values.shape[1:]):
            return values
        return _cast(as_arrow(values), kind)
    return column_of(list(values), kind)


def _cast(column: Arrow, kind: pa.DataType) -> Arrow:
    made = column.cast(kind)
    if made.type != column.type and _infinities(made) != _infinities(column):
        raise ValueError(f"a value is too large for {kind}")
    return made
