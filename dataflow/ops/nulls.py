"""Nulls: what becomes of missing values; without it a null in a numeric column is an error."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from connectors.tensors import shape_of
from dataflow.errors import PlanError
from dataflow.graph.block import Block, Column, as_arrow
from dataflow.graph.columns import check_columns, check_new_names
from dataflow.graph.draw import Draw
from dataflow.graph.node import Node, Traits
from dataflow.graph.registry import register

__all__ = ["Nulls"]

# The stubs of pyarrow know the members of an array or type only when its class is known statically.
Arrow: TypeAlias = Any


@register("nulls")
@dataclass(frozen=True, kw_only=True, eq=False)
class Nulls(Node):
    """Fill the nulls of `columns` with `value`; with `mask` also add a bool column `<name>__mask`.

    The mask is True where a value was present. Integers stay integers, whatever their size. In a
    fixed-shape column, a row that is null is filled in all its elements; a null list becomes an empty one.
    """

    columns: tuple[str, ...]
    value: int | float | str | bool = 0
    mask: bool = False

    def __post_init__(self) -> None:
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
            self._fill(schema.field(name).type, name)
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
                columns[name] = self._filled(array, name)
        return block.with_columns(columns)

    def _fill(self, kind: pa.DataType, name: str) -> Arrow:
        dense = shape_of(kind)
        try:
            if dense is not None and (np.asarray(self.value, dense[0]) != self.value).any():
                raise ValueError("it would be changed")
            if dense is not None and dense[1]:
                return pa.scalar(np.full(dense[1], self.value).tolist(), kind)
            if (pa.types.is_list(kind) or pa.types.is_large_list(kind)) and self.value == 0:
                return pa.scalar([], kind)
            return pa.scalar(self.value, kind)
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
            raise PlanError(
                f"nulls: {self.value!r} is no value for column {name!r} ({kind}).",
                hint="give value= of that type",
            ) from error

    def _filled(self, array: Arrow, name: str) -> Arrow:
        fill = self._fill(array.type, name)
        dense = shape_of(array.type)
        if dense is None or not dense[1]:
            return pc.fill_null(array, fill)
        # Arrow has no fill_null for fixed-shape rows: rows present keep their place, nulls take an extra row.
        index = np.where(array.is_valid().to_numpy(zero_copy_only=False), np.arange(len(array)), len(array))
        return pa.concat_arrays([array, pa.array([fill], array.type)]).take(pa.array(index))
