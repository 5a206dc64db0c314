"""Values of rows as a column of a type that holds each of them as it is; what it would change is refused."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from connectors.arrow_types import Arrow, is_list
from connectors.tensors import shape_of, to_arrow

__all__ = ["fitted", "infinities"]


def fitted(values: list[object], kind: pa.DataType) -> npt.NDArray[np.generic] | Arrow:
    """The values of rows as a column of a type: numbers, texts, bytes, arrays of NumPy, lists and dicts of these.

    It is NumPy (rows, *shape) where rows have one shape and none is null, else Arrow. A number of another type fits
    where it is exact, as 3.0 for integers; floats are rounded to narrower ones.

    Raises:
        TypeError, ValueError, pyarrow.ArrowException: a value does not fit, or what looking at it raised.
    """
    dense = shape_of(kind)
    if pa.types.is_temporal(kind):
        return _times(values, kind)
    if dense is None:
        return _arrow(values, kind)
    if any(value is None for value in values):
        return _with_nulls(values, kind)
    return _dense(values, kind, *dense)


def _times(values: list[object], kind: pa.DataType) -> Arrow:
    if not any(isinstance(value, np.datetime64 | np.timedelta64) for value in values):
        return _arrow(values, kind)
    times: Arrow = pa.array(np.array(["NaT" if v is None else v for v in values], _unit_of(values)))
    return times.cast(kind)


def _with_nulls(values: list[object], kind: pa.DataType) -> Arrow:
    present = [value for value in values if value is not None]
    column: Arrow = fitted(present, kind)
    if isinstance(column, np.ndarray):
        column = to_arrow(column, kind)
    places = iter(range(len(present)))
    return column.take(pa.array([None if value is None else next(places) for value in values], pa.int64()))


def _dense(
    values: list[object], kind: pa.DataType, dtype: np.dtype[np.generic], shape: tuple[int, ...]
) -> npt.NDArray[np.generic] | Arrow:
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
    if column.dtype.kind != "f" or not len(column):
        return []
    found: list[int] = np.flatnonzero(np.isinf(column).reshape(len(column), -1).any(axis=1)).tolist()
    return found


def _arrow(values: list[object], kind: pa.DataType) -> Arrow:
    fixed = pa.types.is_fixed_size_list(kind) or isinstance(kind, pa.FixedShapeTensorType)
    # Arrow takes arrays for lists alone, and of one axis.
    values = [
        value.tolist() if isinstance(value, np.ndarray) and (fixed or value.ndim != 1) else value
        for value in values
    ]
    made = pa.array(values, kind)
    # Of floats Arrow keeps the whole part, or infinity where they are too large, and says nothing.
    whole = any(map(_is_whole, _leaves(kind))) and _may_have_floats(values)
    if whole or infinities(made):
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
        inner = kind.value_type if is_list(kind) else kind
        return any(_is_cut(item, inner) for item in value)
    if _is_whole(kind):
        return isinstance(value, float | np.floating) and bool(value != np.trunc(value))
    if pa.types.is_floating(kind) and value is not None:
        with np.errstate(over="ignore"):
            return math.isfinite(value) and not math.isfinite(np.asarray(value, kind.to_pandas_dtype()))
    if pa.types.is_struct(kind) and isinstance(value, Mapping):
        return any(_is_cut(value.get(field.name), field.type) for field in kind)
    return False


def infinities(column: Arrow) -> int:
    """How many of the floats in a column are infinite, at any depth."""
    kind = column.type
    if isinstance(kind, pa.FixedShapeTensorType):
        return infinities(column.storage)
    if pa.types.is_floating(kind):
        return int(np.count_nonzero(pc.is_inf(column.drop_null()).to_numpy(zero_copy_only=False)))
    if pa.types.is_struct(kind):
        return sum(map(infinities, column.flatten()))
    return infinities(column.flatten()) if is_list(kind) else 0


def _leaves(kind: Arrow) -> list[Arrow]:
    """The types of a nested type that have no types inside."""
    if isinstance(kind, pa.FixedShapeTensorType):
        return _leaves(kind.value_type)
    if not kind.num_fields:
        return [kind]
    return [leaf for place in range(kind.num_fields) for leaf in _leaves(kind.field(place).type)]


def _unit_of(values: Sequence[object]) -> np.dtype[np.generic]:
    return np.result_type(*[v for v in values if isinstance(v, np.datetime64 | np.timedelta64)])
