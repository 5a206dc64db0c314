"""Drop: leave out the named columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from dataflow.errors import PlanError
from dataflow.graph.block import Block
from dataflow.graph.columns import check_columns, check_named
from dataflow.graph.draw import Draw
from dataflow.graph.node import Node, Traits
from dataflow.graph.registry import register

__all__ = ["Drop"]


@register("drop")
@dataclass(frozen=True, kw_only=True, eq=False)
class Drop(Node):
    """Leave out `columns`; the others keep their order."""

    columns: tuple[str, ...]

    def __post_init__(self) -> None:
        check_named("drop", self.columns)
        check_columns("drop", self.columns, None)

    @property
    def traits(self) -> Traits:
        return Traits(kernel=True, keeps_values=True, after_batch=True, writes=frozenset(self.columns))

    def infer(self, schemas: Sequence[pa.Schema | None]) -> pa.Schema | None:
        if schemas[0] is None:
            return None
        check_columns("drop", self.columns, schemas[0])
        left = [field for field in schemas[0] if field.name not in self.columns]
        if not left:
            raise PlanError(f"drop({', '.join(self.columns)}) leaves no column.", hint="keep at least one")
        return pa.schema(left)

    def narrowed(self, wanted: frozenset[str]) -> Node:
        schema = self.input.schema
        if schema is None:
            return self
        # Not every step below could be narrowed: what it still gives is dropped here.
        left = tuple(name for name in self.columns if name in schema.names)
        return replace(self, columns=left) if left else self.input

    def apply(self, block: Block, draw: Draw) -> Block:
        left = {name: column for name, column in block.columns.items() if name not in self.columns}
        return block.with_columns(left, owned=block.owned)
