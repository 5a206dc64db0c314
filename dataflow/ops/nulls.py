"""Nulls: what becomes of missing values; without it a null in a numeric column is an error."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from connectors.arrow_types import Arrow, is_list, is_ragged
from connectors.tensors import shape_of
from dataflow.errors import PlanError
from dataflow.given import check_flags
from dataflow.graph.block import Block, Column, as_arrow
from dataflow.graph.columns import check_columns, check_named, check_new_names
from dataflow.graph.draw import Draw
from dataflow.graph.node import Node, Traits
from dataflow.graph.registry import register

__all__ = ["Nulls"]


@register("nulls")
@dataclass(frozen=True, kw_only=True, eq=False)
class Nulls(Node):
    """Fill the nulls of `columns` with `value`; with `mask` also add a bool column `<name>__mask`.

    The mask is True where a row was present. Integers stay integers, whatever their size. Nulls inside lists are
    filled too, at every depth. Of a fixed-shape column, a row that is null is filled in all its elements; a null
    list becomes an empty one. (In lists of, say, strings, which have no 0, value=0 fills the lists alone.)
    """

    columns: tuple[str, ...]
    value: int | float | str | bool = 0
    mask: bool = False

    def __post_init__(self) -> None:
        check_flags("nulls", mask=self.mask)
        for name in self.columns:
            if isinstance(name, Mapping) and name:
                (column, value), *_ = name.items()
                raise PlanError(
                    f"nulls: {name!r} is not a column name.",
                    hint=f"give name and value apart, as nulls({column!r}, value={value!r})",
                )
        check_named("nulls", self.columns)
        check_columns("nulls", self.columns, None)

    @property
    def traits(self) -> Traits:
        names = frozenset(self.columns)
        added = frozenset(f"{name}__mask" for name in names) if self.mask else frozenset()
        return Traits(kernel=True, reads=names, writes=names | added)

    def infer(self, schemas: Sequence[pa.Schema | None]) -> pa.Schema | None:
        schema = schemas[0]
        if schema is None:
            return None
        check_columns("nulls", self.columns, schema)
        for name in self.columns:
            self._leaf(schema.field(name).type, name)
            if self.mask:
                check_new_names("nulls", [*schema.names, f"{name}__mask"])
                schema = schema.append(pa.field(f"{name}__mask", pa.bool_()))
        return schema

    def apply(self, block: Block, draw: Draw) -> Block:
        columns: dict[str, Column] = dict(block.columns)
        for name in self.columns:
            column = columns[name]
            array = as_arrow(column)
            if self.mask:
                columns[f"{name}__mask"] = np.asarray(pc.is_valid(array).to_numpy(zero_copy_only=False))
            if array.null_count or not isinstance(column, np.ndarray):
                columns[name] = _filled(array, self._leaf(array.type, name))
        return block.with_columns(columns)

    def _leaf(self, kind: pa.DataType, name: str) -> Arrow:
        """The value as a scalar of the innermost type of a column; a null one where only lists can be filled."""
        leaf = _innermost(kind)
        dense = shape_of(leaf)
        try:
            if dense is not None and np.asarray(self.value, dense[0]) != self.value:
                raise ValueError("it would be changed")
            return pa.scalar(self.value, leaf)
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
            if is_ragged(kind) and self.value == 0:
                return pa.scalar(None, leaf)
            raise PlanError(
                f"nulls: {self.value!r} is no value for column {name!r} ({kind}).",
                hint="give value= of that type",
            ) from error


def _innermost(kind: Arrow) -> Arrow:
    if is_list(kind) or isinstance(kind, pa.FixedShapeTensorType):
        return _innermost(kind.value_type)
    return kind


def _filled(array: Arrow, leaf: Arrow) -> Arrow:
    """The array without nulls at any depth: `leaf` in their place, or an empty list."""
    kind = array.type
    if isinstance(kind, pa.FixedShapeTensorType):
        return pa.ExtensionArray.from_storage(kind, _filled(array.storage, leaf))
    if pa.types.is_fixed_size_list(kind):
        fixed: Arrow = pa.FixedSizeListArray
        return fixed.from_arrays(_filled(_whole_rows(array, leaf).flatten(), leaf), type=kind)
    if is_ragged(kind):
        present = pc.fill_null(array, pa.scalar([], kind))
        starts = present.offsets
        moved = pc.subtract(starts, starts[0])
        form: Arrow = pa.LargeListArray if pa.types.is_large_list(kind) else pa.ListArray
        return form.from_arrays(moved, _filled(present.flatten(), leaf), type=kind)
    return pc.fill_null(array, leaf) if leaf.is_valid else array


def _whole_rows(array: Arrow, leaf: Arrow) -> Arrow:
    """Fixed-size lists, of which those that are null are `leaf` throughout."""
    if not array.null_count:
        return array
    # Arrow has no fill_null for fixed-shape rows: rows present keep their place, nulls take an extra row.
    index = np.where(array.is_valid().to_numpy(zero_copy_only=False), np.arange(len(array)), len(array))
    extra = pa.array([_row(array.type, leaf.as_py())], array.type)
    return pa.concat_arrays([array, extra]).take(pa.array(index))


def _row(kind: Arrow, value: object) -> object:
    """A row of `kind` that is `value` throughout; its lists of no fixed size are empty."""
    if is_ragged(kind):
        return []
    return [_row(kind.value_type, value)] * kind.list_size if pa.types.is_fixed_size_list(kind) else value
