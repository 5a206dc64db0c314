"""A block as rows for a Python function, and what it returned as it is then."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from copy import deepcopy
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from connectors.arrow_types import Arrow, is_list
from connectors.tensors import has_nulls, shape_of, to_numpy
from dataflow.graph.block import Column
from dataflow.graph.image_column import ImageType, images_in

__all__ = ["Row", "each_row", "listed", "plain_value", "taken"]

Row = dict[str, object]
# What can be changed in place, or may hold such a thing.
_HOLDERS: Final = (np.ndarray, list, tuple, dict, set, bytearray, memoryview)


def each_row(columns: Mapping[str, Column], rows: int) -> Iterator[Row]:
    """The rows of columns as dicts of NumPy scalars, NumPy arrays, str, bytes; a null is None.

    The arrays are copies, made row by row: a function that writes to them changes nothing else, and keeps no more
    than them.
    """
    names = list(columns)
    if not names:
        return ({} for _ in range(rows))
    values = zip(*map(_values, columns.values()), strict=True)
    return (dict(zip(names, row, strict=True)) for row in values)


def listed(columns: Mapping[str, Column], rows: int) -> list[Row]:
    """All that `each_row` gives."""
    return list(each_row(columns, rows))


def _values(column: Column) -> Iterable[object]:
    if isinstance(column, np.ndarray):
        return _rows(column)
    kind: Arrow = column.type
    if isinstance(kind, ImageType):
        return (None if image is None else image.copy() for image in images_in(column))
    times = pa.types.is_temporal(kind) and not pa.types.is_interval(kind)
    if times or shape_of(kind) is not None:
        # What a row is given as shall not depend on which others have come with it.
        present = column.drop_null() if column.null_count else column
        values = iter(present.to_numpy(zero_copy_only=False) if times else _dense_values(present))
        return (next(values) if valid else None for valid in column.is_valid().to_pylist())
    if is_list(kind):
        return (None if not item.is_valid else _list_value(item.values) for item in column)
    python_values: list[object] = column.to_pylist()
    return python_values


def _rows(array: npt.NDArray[np.generic]) -> Iterable[object]:
    return array if array.ndim == 1 else (row.copy() for row in array)


def _dense_values(column: Arrow) -> Iterable[object]:
    """Rows of one shape, none of them null; one with nulls inside is a list (of a tensor, a flat one)."""
    if not has_nulls(column):
        return _rows(to_numpy(column))
    if isinstance(column.type, pa.FixedShapeTensorType):
        column = column.storage
    return (_list_value(item.values) for item in column)


def _list_value(values: Arrow) -> object:
    """The values of one list: an array where that is possible, else a list."""
    whole = shape_of(values.type) is not None and not has_nulls(values)
    return to_numpy(values).copy() if whole else list(_values(values))


def plain_value(value: object) -> object:
    """A torch tensor (anything with `.numpy()`) as NumPy, NumPy text and bytes as Python's; all else as it is."""
    if isinstance(value, np.str_ | np.bytes_):
        return value.item()
    numpy = getattr(value, "numpy", None)
    return numpy() if callable(numpy) and not isinstance(value, np.ndarray) else value


def taken(row: Mapping[str, object]) -> Row:
    """A row that a function returned, as it is now: the function may change what is in it for the next one."""
    return {name: _taken(plain_value(value)) for name, value in row.items()}


def _taken(value: object) -> object:
    """A value as it is now: what can be changed in place is copied, at any depth."""
    if isinstance(value, np.ndarray):
        return deepcopy(value) if value.dtype == object else value.copy()
    if isinstance(value, list | tuple):
        # Numbers and text come in long lists: the set of their types takes a twentieth of the time of a call for each.
        holds = any(issubclass(kind, _HOLDERS) for kind in set(map(type, value)))
        items = map(_taken, value) if holds else value
        return tuple(items) if isinstance(value, tuple) else list(items)
    if isinstance(value, dict):
        return {key: _taken(item) for key, item in value.items()}
    if isinstance(value, set):
        return set(value)
    return bytes(value) if isinstance(value, bytearray | memoryview) else value
