"""Skip: all but the first rows, counted in file order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from connectors.contract import Json
from dataflow.given import as_whole
from dataflow.graph.node import Node, Traits
from dataflow.graph.registry import register
from dataflow.order import stream
from dataflow.order.stream import Stream

__all__ = ["Skip"]


@register("skip")
@dataclass(frozen=True, kw_only=True, eq=False)
class Skip(Node):
    """Keep all but the first `rows` rows, in file order."""

    rows: int

    def __post_init__(self) -> None:
        rows = as_whole(
            self.rows,
            f"skip({self.rows!r}) is no number of rows.",
            hint="give a whole number from 0 up",
            least=0,
        )
        object.__setattr__(self, "rows", rows)

    @property
    def traits(self) -> Traits:
        return Traits(counts_rows=True)

    def order_fact(self) -> Json:
        return self.rows

    def arrange(self, streams: Sequence[Stream]) -> Stream:
        return stream.skip(streams[0], self.rows)
