"""Field: one field of a struct in the place of the struct."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from dataflow.errors import PlanError, near
from dataflow.graph.block import Block
from dataflow.graph.columns import check_columns
from dataflow.graph.draw import Draw
from dataflow.graph.node import Node, Traits
from dataflow.graph.registry import register

__all__ = ["Field"]


@register("field")
@dataclass(frozen=True, kw_only=True, eq=False)
class Field(Node):
    """Let `column`, a struct, become its field `name`, without a copy; null where the struct is."""

    column: str
    name: str

    def __post_init__(self) -> None:
        check_columns("field", [self.column], None)
        if not isinstance(self.name, str):
            raise PlanError(f"field: {self.name!r} is no name of a field.", hint="as field('image', 'bytes')")

    @property
    def traits(self) -> Traits:
        names = frozenset({self.column})
        return Traits(kernel=True, reads=names, writes=names)

    def infer(self, schemas: Sequence[pa.Schema | None]) -> pa.Schema | None:
        schema = schemas[0]
        if schema is None:
            return None
        check_columns("field", [self.column], schema)
        place = schema.get_field_index(self.column)
        kind = schema.field(place).type
        if not pa.types.is_struct(kind):
            raise PlanError(
                f"field: column {self.column!r} is {kind}, no struct.", hint="name a column that has fields"
            )
        found = kind.get_field_index(self.name)
        if found < 0:
            raise PlanError(
                f"field: column {self.column!r} has no field {self.name!r}.",
                hint=near(
                    self.name, [kind.field(number).name for number in range(kind.num_fields)], what="field"
                ),
            )
        return schema.set(place, pa.field(self.column, kind.field(found).type))

    def needs(self, wanted: frozenset[str] | None) -> tuple[frozenset[str] | None, ...]:
        return (wanted,)

    def narrowed(self, wanted: frozenset[str]) -> Node:
        return self if self.column in wanted else self.input

    def apply(self, block: Block, draw: Draw) -> Block:
        # A struct is never dense: the column is Arrow's.
        values = pc.struct_field(block.columns[self.column], self.name)
        return block.with_columns({**block.columns, self.column: values})
