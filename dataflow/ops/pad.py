"""Pad: list columns to a fixed length."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from connectors.arrow_types import Arrow, is_list
from connectors.tensors import shape_of, to_numpy
from dataflow.errors import DataError, PlanError
from dataflow.given import as_whole, check_flags
from dataflow.graph.block import Block, Column, as_arrow
from dataflow.graph.columns import check_columns, check_new_names
from dataflow.graph.draw import Draw
from dataflow.graph.node import Node, Traits
from dataflow.graph.registry import register
from dataflow.wording import counted

__all__ = ["Pad"]

# That is how long Arrow's lists of one size can be.
MOST_VALUES = (1 << 31) - 1

Bools = npt.NDArray[np.bool_]
Int64s = npt.NDArray[np.int64]


@register("pad")
@dataclass(frozen=True, kw_only=True, eq=False)
class Pad(Node):
    """Make each list column named in `lengths` a fixed-shape column of that length.

    Shorter lists are filled behind with `value`; a longer one is an error, or loses its end with `truncate`.
    With `mask`, a bool column `<name>__mask` of the same shape says which elements are real. A null list stays null,
    as do nulls inside lists: `nulls`, in front or behind, says what becomes of them.
    """

    lengths: Mapping[str, int]
    value: int | float = 0
    truncate: bool = False
    mask: bool = False

    def __post_init__(self) -> None:
        check_flags("pad", truncate=self.truncate, mask=self.mask)
        if not isinstance(self.value, int | float | np.number | np.bool_):
            raise PlanError(f"pad(value={self.value!r}) is no number.", hint="give a number, as value=0")
        check_columns("pad", self.lengths, None)
        lengths = {
            name: as_whole(
                length,
                f"pad: length {length!r} for column {name!r}.",
                hint=f"give a whole number from 1 to {MOST_VALUES:,}",
                least=1,
                below=MOST_VALUES + 1,
            )
            for name, length in self.lengths.items()
        }
        object.__setattr__(self, "lengths", lengths)

    @property
    def traits(self) -> Traits:
        names = frozenset(self.lengths)
        added = frozenset(f"{name}__mask" for name in names) if self.mask else frozenset()
        return Traits(kernel=True, reads=names, writes=names | added)

    def infer(self, schemas: Sequence[pa.Schema | None]) -> pa.Schema | None:
        schema = schemas[0]
        if schema is None:
            return None
        check_columns("pad", self.lengths, schema)
        for name, length in self.lengths.items():
            item = _item_type(schema.field(name).type, name)
            self._check_value(item, name)
            schema = schema.set(schema.get_field_index(name), pa.field(name, pa.list_(item, length)))
            if self.mask:
                check_new_names("pad", [*schema.names, f"{name}__mask"])
                schema = schema.append(pa.field(f"{name}__mask", pa.list_(pa.bool_(), length)))
        return schema

    def _check_value(self, item: pa.DataType, name: str) -> None:
        dtype, _ = shape_of(item) or (np.dtype(np.int64), ())
        try:
            fits = bool(np.asarray(self.value, dtype) == self.value)
        except (OverflowError, ValueError):
            fits = False
        if not fits:
            raise PlanError(
                f"pad: {self.value!r} is no value of column {name!r} ({item}).",
                hint="give value= of that type",
            )

    def apply(self, block: Block, draw: Draw) -> Block:
        columns: dict[str, Column] = dict(block.columns)
        for name, length in self.lengths.items():
            columns[name], real = self._padded(as_arrow(columns[name]), name, length)
            if self.mask:
                columns[f"{name}__mask"] = real
        return block.with_columns(columns)

    def _padded(self, array: Arrow, name: str, length: int) -> tuple[Column, Column]:
        """The lists at that length, and which elements are real, both (rows, length)."""
        item = _item_type(array.type, name)
        if pa.types.is_fixed_size_list(array.type):
            array = array.cast(pa.list_(item))
        sizes = np.asarray(array.value_lengths().fill_null(0).to_numpy(zero_copy_only=False), np.int64)
        if not self.truncate and len(sizes) and sizes.max() > length:
            raise DataError(
                f"pad: a list of {counted(int(sizes.max()), 'value')} in column {name!r} is longer than {length}.",
                hint="use a larger length, or truncate=True",
            )
        flat = array.flatten()
        real = np.arange(length) < sizes[:, None]
        if array.null_count or flat.null_count:
            return _gathered(array, flat, sizes, real, self.value), real
        dtype, _ = shape_of(item) or (np.dtype(np.int64), ())
        place = np.arange(len(flat)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        row = np.repeat(np.arange(len(sizes)), sizes)
        inside = place < length
        out = np.full((len(sizes), length), self.value, dtype)
        out[row[inside], place[inside]] = to_numpy(flat)[inside]
        return out, real


def _gathered(lists: Arrow, flat: Arrow, sizes: Int64s, real: Bools, value: float) -> Arrow:
    """Padded lists that keep their nulls, which NumPy has not: those of whole lists and those inside them."""
    length = real.shape[1]
    filled = pa.concat_arrays([flat, pa.array([value], flat.type)])
    starts = np.cumsum(sizes) - sizes
    picked = np.where(real, starts[:, None] + np.arange(length), len(flat))
    form: Arrow = pa.FixedSizeListArray
    return form.from_arrays(filled.take(pa.array(picked.ravel())), length, mask=lists.is_null())


def _item_type(kind: Arrow, name: str) -> Arrow:
    dense = shape_of(kind.value_type) if is_list(kind) else None
    if dense is None or dense[1]:
        raise PlanError(f"pad: column {name!r} is {kind}, no list of numbers.", hint="pad takes list columns")
    return kind.value_type
