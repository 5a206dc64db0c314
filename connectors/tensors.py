"""Dense columns: Arrow arrays whose rows all have one shape and one NumPy dtype.

The mapping, both ways without a copy except for bool (Arrow packs it into bits):

    a row is            Arrow type                     NumPy
    a number            int8..uint64, float16..float64 the same dtype
    one in bfloat16     BFloat16Type                   uint16, its bits
    a truth value       bool                           bool
    a point in time     timestamp, date64, time64      int64, the count of the type's unit
                        date32, time32                 int32, the count of the type's unit
    a span of time      duration                       int64, the count of the type's unit
    k dense values      FixedSizeList of a dense type  one more axis of length k
    an n-d tensor       fixed_shape_tensor             n more axes (a permutation is applied: the memory stays)

Strings, binaries, lists, structs, maps, decimals and dictionaries are not dense. `float16` is kept.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.types as pt

from connectors.arrow_types import Column, Kind
from connectors.bfloat16 import BFloat16Type
from dataflow.errors import DataError, PlanError
from dataflow.wording import counted

__all__ = ["empty_rows", "has_nulls", "shape_of", "to_arrow", "to_numpy"]

Shape: TypeAlias = tuple[int, ...]
AnyArray: TypeAlias = npt.NDArray[Any]


def shape_of(kind: pa.DataType) -> tuple[np.dtype[np.generic], Shape] | None:
    """The dtype and shape of one row of a dense type; None where the type is not dense."""
    if isinstance(kind, pa.FixedShapeTensorType):
        inner = shape_of(kind.value_type)
        return inner and (inner[0], _logical(kind) + inner[1])
    if pt.is_fixed_size_list(kind):
        inner = shape_of(kind.value_type)
        return inner and (inner[0], (kind.list_size, *inner[1]))
    dtype = _scalar_dtype(kind)
    return None if dtype is None else (dtype, ())


def empty_rows(rows: int, kind: pa.DataType, empty: Callable[..., AnyArray] = np.empty) -> AnyArray:
    """Uninitialised memory for rows of a dense type, in which axes lie as the type has them.

    Args:
        empty: gives memory of a shape and dtype.

    Raises:
        PlanError: the type is not dense.
    """
    found = shape_of(kind)
    if found is None:
        raise _not_dense(kind)
    dtype, shape = found
    order = list(kind.permutation or ()) if isinstance(kind, pa.FixedShapeTensorType) else []
    order += range(len(order), len(shape))
    memory = empty((rows, *(shape[axis] for axis in np.argsort(order))), dtype)
    return memory.transpose(0, *(axis + 1 for axis in order))


def _not_dense(kind: Kind) -> PlanError:
    return PlanError(f"{kind} has no fixed shape.", hint="cast or pad the column, or read it as Arrow")


def to_numpy(array: pa.Array[Any]) -> AnyArray:
    """Return a dense array without nulls as a read-only ndarray of shape (rows, *shape of a row).

    Zero-copy except for bool. The result keeps the Arrow buffers alive.

    Raises:
        PlanError: the type is not dense.
        DataError: the array has nulls, at any depth.
    """
    kind = array.type
    if shape_of(kind) is None:
        raise _not_dense(kind)
    result = _dense(array)
    result.flags.writeable = False
    return result


def has_nulls(array: Column) -> bool:
    """Nulls at any depth of an array of numbers, or of fixed shapes of numbers."""
    if array.null_count:
        return True
    if isinstance(array.type, pa.FixedShapeTensorType):
        return has_nulls(array.storage)
    return pt.is_fixed_size_list(array.type) and has_nulls(_elements(array))


def _elements(array: Column) -> Column:
    """The elements of fixed-size lists of which none is null.

    `flatten` takes 150 us for a row group of 2 MB, a thirtieth of the time to decode it.
    """
    values, size = array.values, array.type.list_size
    first, count = array.offset * size, len(array) * size
    return values if len(values) == count else values.slice(first, count)


def to_arrow(array: npt.ArrayLike, kind: pa.DataType | None = None) -> pa.Array[Any]:
    """Return an ndarray of shape (rows, *shape of a row) as Arrow, without a copy where it is C-contiguous.

    With `kind` the result has that dense type, the array holding its storage as `to_numpy` gives it.
    Without, a 1-d array becomes a primitive array (datetime64 a timestamp, timedelta64 a duration), a 2-d
    one FixedSizeList, one of more axes fixed_shape_tensor.

    Raises:
        PlanError: the dtype has no dense Arrow type, or dtype or shape are not those of `kind`.
    """
    values = np.asarray(array)
    if values.ndim == 0:
        raise PlanError("an array without axes has no rows.", hint="give at least one axis, the rows")
    values = values.astype(values.dtype.newbyteorder("="), copy=False)
    if values.dtype.kind in "mM":
        values, leaf = _counted(values)
    else:
        leaf = _leaf_type(values.dtype)
    if kind is None:
        kind = _natural(leaf, values.shape[1:])
    found = shape_of(kind)
    if found is None or found != (values.dtype, values.shape[1:]):
        raise PlanError(
            f"rows of {values.dtype} and shape {values.shape[1:]} are not {kind}.",
            hint="give the dtype and shape that shape_of() says",
        )
    wrapped: pa.Array[Any] = _wrap(values, kind)
    return wrapped


def _scalar_dtype(kind: Kind) -> np.dtype[np.generic] | None:
    if pt.is_integer(kind) or pt.is_floating(kind) or pt.is_boolean(kind):
        return np.dtype(kind.to_pandas_dtype())
    if pt.is_timestamp(kind) or pt.is_duration(kind) or pt.is_time64(kind) or pt.is_date64(kind):
        return np.dtype(np.int64)
    if pt.is_date32(kind) or pt.is_time32(kind):
        return np.dtype(np.int32)
    if isinstance(kind, BFloat16Type):
        return np.dtype(np.uint16)
    return None


def _logical(kind: Kind) -> Shape:
    order = kind.permutation
    shape = tuple(kind.shape)
    return shape if order is None else tuple(shape[axis] for axis in order)


def _dense(array: Column) -> AnyArray:
    kind = array.type
    rows = len(array)
    if array.null_count:
        raise DataError(
            f"of {counted(rows, 'value')} of a {kind}, {counted(array.null_count, 'is', 'are')} null.",
            hint="choose a null policy: fill or mask",
        )
    if isinstance(kind, pa.FixedShapeTensorType):
        flat = _dense(array.storage)
        inner = flat.shape[2:]
        result = flat.reshape(rows, *kind.shape, *inner)
        if kind.permutation is not None:
            axes = [0, *(axis + 1 for axis in kind.permutation)]
            result = result.transpose(*axes, *range(len(axes), result.ndim))
        return result
    if pt.is_fixed_size_list(kind):
        flat = _dense(_elements(array))
        return flat.reshape(rows, kind.list_size, *flat.shape[1:])
    if isinstance(kind, BFloat16Type):
        return _dense(array.storage)
    if pt.is_boolean(kind):
        return np.asarray(array.to_numpy(zero_copy_only=False), dtype=np.bool_)
    dtype = _scalar_dtype(kind)
    assert dtype is not None
    buffer = array.buffers()[1]
    if not rows or buffer is None:
        return np.empty(rows, dtype)
    return np.frombuffer(buffer, dtype, rows, array.offset * dtype.itemsize)


def _counted(values: AnyArray) -> tuple[AnyArray, Kind]:
    """datetime64 or timedelta64 as int64 counts of a unit that Arrow has."""
    letter = values.dtype.kind
    unit: Any = np.datetime_data(values.dtype)[0]
    if np.isnat(values).any():
        raise PlanError("an array with NaT has no dense Arrow form.", hint="give the times as integers")
    if unit not in ("s", "ms", "us", "ns"):
        unit = "s"
    if np.datetime_data(values.dtype) != (unit, 1):
        values = values.astype(f"{letter}8[{unit}]")
    leaf = pa.timestamp(unit) if letter == "M" else pa.duration(unit)
    return values.view(np.int64), leaf


def _leaf_type(dtype: np.dtype[np.generic]) -> pa.DataType:
    if dtype.kind in "iufb" and dtype.itemsize <= 8:
        return pa.from_numpy_dtype(dtype)
    raise PlanError(
        f"an array of {dtype} has no dense Arrow type.",
        hint="use integers, floats up to 64 bits, bool or times",
    )


def _natural(leaf: Kind, shape: Shape) -> Kind:
    if not shape:
        return leaf
    return pa.list_(leaf, shape[0]) if len(shape) == 1 else pa.fixed_shape_tensor(leaf, shape)


def _wrap(values: AnyArray, kind: Kind) -> Column:
    """`values`, which has the dtype and shape that `shape_of(kind)` says, as an array of `kind`."""
    rows = values.shape[0]
    if isinstance(kind, pa.FixedShapeTensorType):
        if kind.permutation is not None:
            back = np.argsort(kind.permutation)
            values = values.transpose(0, *(back + 1), *range(len(back) + 1, values.ndim))
        size = int(np.prod(kind.shape, dtype=np.int64))
        inner = values.shape[1 + len(kind.shape) :]
        storage = _wrap(values.reshape(rows, size, *inner), kind.storage_type)
        return pa.ExtensionArray.from_storage(kind, storage)
    if pt.is_fixed_size_list(kind):
        child = _wrap(values.reshape(rows * kind.list_size, *values.shape[2:]), kind.value_type)
        return pa.Array.from_buffers(kind, rows, [None], children=[child])
    if isinstance(kind, BFloat16Type):
        return pa.ExtensionArray.from_storage(kind, _wrap(values, kind.storage_type))
    if pt.is_boolean(kind):
        return pa.array(values.reshape(-1), pa.bool_())
    native: Any = np.ascontiguousarray(values)
    return pa.Array.from_buffers(kind, rows, [None, pa.py_buffer(native)])
