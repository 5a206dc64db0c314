"""Concat: pipelines one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import pyarrow as pa

from connectors.contract import Json
from dataflow.errors import PlanError
from dataflow.graph.node import Node, Traits
from dataflow.graph.registry import register
from dataflow.order import stream
from dataflow.order.stream import Stream

__all__ = ["Concat"]


@register("concat")
@dataclass(frozen=True, kw_only=True, eq=False)
class Concat(Node):
    """The rows of the first input, then those of the second, and so on; all have the same columns.

    Types that differ are widened where no value is lost.
    """

    feeds: ClassVar[int | None] = None

    @property
    def traits(self) -> Traits:
        return Traits(joins=True)

    def infer(self, schemas: Sequence[pa.Schema | None]) -> pa.Schema | None:
        known = [schema for schema in schemas if schema is not None]
        if len(known) < len(schemas):
            return None
        first = known[0]
        for place, other in enumerate(known[1:], start=2):
            differ = sorted(set(first.names) ^ set(other.names))
            if differ:
                raise PlanError(
                    f"concat: input {place} and input 1 differ in the columns {differ}.",
                    hint="select, rename or map the inputs to the same columns first",
                )
        fields = []
        for name in first.names:
            kinds = [schema.field(name).type for schema in known]
            fields.append(pa.field(name, _common(kinds, name)))
        return pa.schema(fields)

    def order_fact(self) -> Json:
        return len(self.inputs)

    def arrange(self, streams: Sequence[Stream]) -> Stream:
        return stream.concat(*streams)


def _common(kinds: Sequence[pa.DataType], name: str) -> pa.DataType:
    parts = [pa.schema([pa.field(name, kind)]) for kind in kinds]
    try:
        common: pa.DataType = pa.unify_schemas(parts, promote_options="permissive").field(name).type
        return common
    except pa.ArrowException as error:
        raise PlanError(
            f"concat: column {name!r} has the types {', '.join(sorted({str(k) for k in kinds}))}.",
            hint="cast the inputs to one type first",
        ) from error
