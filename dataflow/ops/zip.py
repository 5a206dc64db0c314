"""Zip: the columns of several pipelines side by side, row by row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import pyarrow as pa

from connectors.contract import Json
from dataflow.graph.columns import check_new_names
from dataflow.graph.node import Node, Traits
from dataflow.graph.registry import register
from dataflow.order import stream
from dataflow.order.stream import Stream

__all__ = ["Zip"]


@register("zip")
@dataclass(frozen=True, kw_only=True, eq=False)
class Zip(Node):
    """Row i of every input makes row i; `__id__` holds one id for each input."""

    feeds: ClassVar[int | None] = None

    @property
    def traits(self) -> Traits:
        return Traits(joins=True, pairs=True, counts_rows=True)

    def infer(self, schemas: Sequence[pa.Schema | None]) -> pa.Schema | None:
        known = [schema for schema in schemas if schema is not None]
        if len(known) < len(schemas):
            return None
        fields = [field for schema in known for field in schema]
        check_new_names("zip", [field.name for field in fields])
        return pa.schema(fields)

    def needs(self, wanted: frozenset[str] | None) -> tuple[frozenset[str] | None, ...]:
        schemas = [feed.schema for feed in self.inputs]
        if wanted is None:
            return (None,) * len(schemas)
        return tuple(None if schema is None else wanted & frozenset(schema.names) for schema in schemas)

    def order_fact(self) -> Json:
        return len(self.inputs)

    def arrange(self, streams: Sequence[Stream]) -> Stream:
        return stream.zip_streams(*streams)
