"""Repeat: several passes in one epoch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from connectors.contract import Json
from dataflow.given import as_whole
from dataflow.graph.node import Node, Traits
from dataflow.graph.registry import register
from dataflow.order import stream
from dataflow.order.stream import Stream

__all__ = ["Repeat"]

# What is worked out for an epoch grows with its passes.
MOST_PASSES = 1 << 20


@register("repeat")
@dataclass(frozen=True, kw_only=True, eq=False)
class Repeat(Node):
    """Go through the rows `passes` times in an epoch, in another order each time where they are shuffled."""

    passes: int

    def __post_init__(self) -> None:
        passes = as_whole(
            self.passes,
            f"repeat({self.passes!r}) is no number of passes.",
            hint=f"give a whole number from 1 to {MOST_PASSES:,}; each `for` over a loader is one more epoch",
            least=1,
            below=MOST_PASSES + 1,
        )
        object.__setattr__(self, "passes", passes)

    @property
    def traits(self) -> Traits:
        return Traits(changes_order=True)

    def order_fact(self) -> Json:
        return self.passes

    def arrange(self, streams: Sequence[Stream]) -> Stream:
        return stream.repeat(streams[0], self.passes)
