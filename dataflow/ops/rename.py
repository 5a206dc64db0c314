"""Rename: give columns new names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from dataflow.errors import PlanError
from dataflow.graph.block import Block
from dataflow.graph.columns import check_columns, check_new_names
from dataflow.graph.draw import Draw
from dataflow.graph.node import Node, Traits
from dataflow.graph.registry import register

__all__ = ["Rename"]


@register("rename")
@dataclass(frozen=True, kw_only=True, eq=False)
class Rename(Node):
    """Give the columns named by the keys of `names` the names that are its values; places stay."""

    names: Mapping[str, str]

    def __post_init__(self) -> None:
        check_columns("rename", self.names, None)
        for name in self.names.values():
            if not isinstance(name, str):
                raise PlanError(f"rename: {name!r} is no name.", hint="as {'old': 'new'}")
        check_new_names("rename", self.names.values())

    @property
    def traits(self) -> Traits:
        touched = frozenset(self.names) | frozenset(self.names.values())
        return Traits(
            kernel=True, keeps_values=True, after_batch=True, reads=frozenset(self.names), writes=touched
        )

    @property
    def new_names(self) -> Mapping[str, str]:
        return self.names

    def infer(self, schemas: Sequence[pa.Schema | None]) -> pa.Schema | None:
        if schemas[0] is None:
            return None
        check_columns("rename", self.names, schemas[0])
        fields = [field.with_name(self.names.get(field.name, field.name)) for field in schemas[0]]
        check_new_names("rename", [field.name for field in fields])
        return pa.schema(fields)

    def needs(self, wanted: frozenset[str] | None) -> tuple[frozenset[str] | None, ...]:
        if wanted is None or self.input.schema is None:
            return (None,)
        old = {new: name for name, new in self.names.items()}
        return (frozenset(old.get(name, name) for name in wanted),)

    def narrowed(self, wanted: frozenset[str]) -> Node:
        schema = self.input.schema
        if schema is None:
            return self
        # Not every step below could be narrowed: what it still gives must not keep a name that another column gets.
        return replace(self, names={name: new for name, new in self.names.items() if name in schema.names})

    def fused(self, below: Node) -> Node | None:
        if not self.names:
            return below
        earlier = below.new_names
        if earlier is None:
            return None
        names = {name: self.names.get(new, new) for name, new in earlier.items()}
        first = {name: new for name, new in self.names.items() if name not in earlier.values()}
        return replace(self, inputs=below.inputs, names={**names, **first})

    def apply(self, block: Block, draw: Draw) -> Block:
        renamed = {self.names.get(name, name): column for name, column in block.columns.items()}
        return block.with_columns(renamed, owned=block.owned)
