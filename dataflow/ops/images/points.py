"""Columns of boxes and keypoints: what Arrow types they may have, and their rows as arrays."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from connectors.tensors import shape_of, to_arrow, to_numpy
from dataflow.errors import DataError, PlanError
from dataflow.graph.block import Column

__all__ = ["points_column", "points_in", "points_type"]

Points = npt.NDArray[np.float32]
# The stubs of pyarrow know the members of an array or type only when its class is known statically.
Arrow: TypeAlias = Any


def points_type(kind: Arrow, width: int, *, step: str, column: str) -> Arrow:
    """What a column of this type becomes, where a box or point is `width` numbers: the same in float32.

    One a row is a list of `width` numbers, of fixed size or not; any number is a list of such.

    Raises:
        PlanError: the type holds none.
    """
    found = shape_of(kind)
    if found is not None and found[1][-1:] == (width,) and _is_number(kind):
        shape = found[1]
        return (
            pa.list_(pa.float32(), width) if len(shape) == 1 else pa.fixed_shape_tensor(pa.float32(), shape)
        )
    if _is_list(kind):
        item = kind.value_type
        if _is_scalar(item):
            return pa.list_(pa.float32(), width)
        if _is_list(item) and _is_scalar(item.value_type):
            return pa.list_(pa.list_(pa.float32(), width))
        inner = shape_of(item)
        if inner is not None and inner[1][-1:] == (width,) and _is_number(item):
            return pa.list_(_nested(inner[1]))
    name, what = ("boxes", "(x1, y1, x2, y2)") if width == 4 else ("keypoints", "(x, y)")
    raise PlanError(
        f"{step}: column {column!r} is {kind}, no {name}.",
        hint=f"give {what} a row, or a list of {what} a row",
    )


def _is_list(kind: Arrow) -> bool:
    return pa.types.is_list(kind) or pa.types.is_large_list(kind)


def _is_scalar(kind: Arrow) -> bool:
    return pa.types.is_integer(kind) or pa.types.is_floating(kind)


def _is_number(kind: Arrow) -> bool:
    """Whether the numbers of a dense type are such, and no times."""
    while not _is_scalar(kind):
        if not (pa.types.is_fixed_size_list(kind) or isinstance(kind, pa.FixedShapeTensorType)):
            return False
        kind = kind.value_type
    return True


def _nested(shape: tuple[int, ...]) -> Arrow:
    kind: Arrow = pa.float32()
    for size in reversed(shape):
        kind = pa.list_(kind, size)
    return kind


def points_in(column: Column, width: int) -> list[Points | Exception | None]:
    """The boxes or points of each row, float32 (..., width), ours to change; an error where a row holds none.

    None where there is one a row and it is null; a list that is null is empty.
    """
    try:
        return list(_rows(column, width))
    except DataError as error:
        if len(column) == 1:
            return [error]
        return [each for row in range(len(column)) for each in points_in(column[row : row + 1], width)]


def _rows(column: Column, width: int) -> Sequence[Points | None]:
    """
    Raises:
        DataError: a row holds none.
    """
    if isinstance(column, np.ndarray):
        return list(column.astype(np.float32))
    if not _is_list(column.type):
        return _spread(to_numpy(column.drop_null()).astype(np.float32), column.is_valid().to_pylist())
    counts = _lengths(column)
    if _is_scalar(column.type.value_type):
        there = counts > 0
        return _spread(_whole(column.filter(pa.array(there)), width), there)
    items = column.flatten()
    flat = _whole(items, width) if _is_list(items.type) else to_numpy(items).astype(np.float32)
    return np.split(flat, np.cumsum(counts)[:-1]) if len(column) else []


def _whole(lists: Arrow, width: int) -> Points:
    """Lists of `width` numbers as (lists, width)."""
    if lists.null_count:
        raise DataError("a box or keypoint is null.", hint="leave it out of its list")
    lengths = _lengths(lists)
    if (lengths != width).any():
        raise DataError(
            f"{lengths[lengths != width][0]} numbers where there should be {width}.",
            hint="a box is (x1, y1, x2, y2), a keypoint (x, y)",
        )
    return to_numpy(lists.flatten()).astype(np.float32).reshape(-1, width)


def _lengths(lists: Arrow) -> npt.NDArray[np.int64]:
    """How long each list is; 0 where it is null."""
    lengths: Arrow = pc.list_value_length(lists)
    return np.asarray(lengths.fill_null(0).to_numpy(zero_copy_only=False), np.int64)


def _spread(values: Points, there: Iterable[bool]) -> list[Points | None]:
    """One entry of `values` for each True, None for each False."""
    each = iter(values)
    return [next(each) if here else None for here in there]


def points_column(rows: Sequence[Points | None], kind: Arrow) -> Column:
    """A column of a type that `points_type` gives."""
    if pa.types.is_list(kind):
        there = [row for row in rows if row is not None]
        offsets = np.cumsum([0, *(0 if row is None else len(row) for row in rows)], dtype=np.int32)
        item = shape_of(kind.value_type)
        flat = np.concatenate([np.empty((0, *(item[1] if item else ())), np.float32), *there])
        items: Arrow = to_arrow(flat, kind.value_type)
        return pa.ListArray.from_arrays(cast(Arrow, pa.array(offsets)), items, type=kind)
    dense = shape_of(kind)
    assert dense is not None
    whole = np.zeros((len(rows), *dense[1]), np.float32)
    for place, row in enumerate(rows):
        if row is not None:
            whole[place] = row
    if all(row is not None for row in rows):
        return whole
    return _with_nulls(to_arrow(whole, kind), [row is not None for row in rows])


def _with_nulls(array: Arrow, there: Sequence[bool]) -> Arrow:
    if isinstance(array.type, pa.FixedShapeTensorType):
        return pa.ExtensionArray.from_storage(array.type, _with_nulls(array.storage, there))
    return pc.if_else(pa.array(there), array, pa.scalar(None, array.type))
