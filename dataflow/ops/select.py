"""Select: keep the named columns, in the order named."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from dataflow.graph.block import Block
from dataflow.graph.columns import check_columns, check_named
from dataflow.graph.draw import Draw
from dataflow.graph.node import Node, Traits
from dataflow.graph.registry import register

__all__ = ["Select"]


@register("select")
@dataclass(frozen=True, kw_only=True, eq=False)
class Select(Node):
    """Keep `columns`, in that order. `asked_by` is what named them, for errors.

    None at all are kept only where a rule has found that none is wanted.
    """

    columns: tuple[str, ...]
    asked_by: str = field(default="select", repr=False)

    def __post_init__(self) -> None:
        check_columns(self.asked_by, self.columns, None)

    @classmethod
    def from_arguments(cls, inputs: tuple[Node, ...], values: Mapping[str, Any]) -> Node:
        check_named("select", values["columns"])
        return cls(inputs=inputs, **values)

    @property
    def traits(self) -> Traits:
        return Traits(
            kernel=True,
            keeps_columns=False,
            keeps_values=True,
            after_batch=True,
            reads=frozenset(self.columns),
        )

    def infer(self, schemas: Sequence[pa.Schema | None]) -> pa.Schema | None:
        check_columns(self.asked_by, self.columns, schemas[0])
        return None if schemas[0] is None else pa.schema([schemas[0].field(name) for name in self.columns])

    def needs(self, wanted: frozenset[str] | None) -> tuple[frozenset[str] | None, ...]:
        return (frozenset(self.columns) if wanted is None else wanted & frozenset(self.columns),)

    def narrowed(self, wanted: frozenset[str]) -> Node:
        return replace(self, columns=tuple(name for name in self.columns if name in wanted))

    def fused(self, below: Node) -> Node | None:
        return self.over(*below.inputs) if below.kind == self.kind else None

    def apply(self, block: Block, draw: Draw) -> Block:
        check_columns(self.asked_by, self.columns, pa.schema([(name, pa.null()) for name in block.columns]))
        return block.with_columns({name: block.columns[name] for name in self.columns}, owned=block.owned)
