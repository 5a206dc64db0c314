"""Batch: how many rows make a step, over all ranks."""

from __future__ import annotations

from dataclasses import dataclass

from dataflow.errors import PlanError
from dataflow.given import MOST_ROWS, as_whole, check_choice
from dataflow.graph.node import BatchSizes, Node, Traits
from dataflow.graph.registry import register
from dataflow.order.batches import Remainder

__all__ = ["REMAINDERS", "Batch"]

# Each lane has a window in memory, and may have a cursor in the state.
MOST_LANES = 1 << 20
REMAINDERS = ("drop", "pad", "keep")


@register("batch")
@dataclass(frozen=True, kw_only=True, eq=False)
class Batch(Node):
    """Rows in global batches of `global_size`, or of `size` on every rank of the first start.

    `lanes` is the number of independently read parts (default: the world size of the first start).
    `remainder` says what becomes of the rows behind the last whole batch: "drop", "pad" or "keep".
    """

    size: int | None = None
    global_size: int | None = None
    lanes: int | None = None
    remainder: Remainder = "drop"

    def __post_init__(self) -> None:
        if (self.size is None) == (self.global_size is None):
            raise PlanError(
                f"batch(size={self.size}, global_size={self.global_size}) needs exactly one of the two.",
                hint="batch(32) is 32 a rank, batch(global_size=1024) is 1024 over all ranks",
            )
        for name, most in (("size", MOST_ROWS), ("global_size", MOST_ROWS), ("lanes", MOST_LANES)):
            value = getattr(self, name)
            if value is not None:
                said = f"batch({name}={value!r}) is no whole number from 1 to {most:,}."
                whole = as_whole(value, said, hint="give one, as batch(32)", least=1, below=most + 1)
                object.__setattr__(self, name, whole)
        check_choice("batch", "remainder", self.remainder, REMAINDERS)

    @property
    def traits(self) -> Traits:
        return Traits(batches=True)

    @property
    def batch_sizes(self) -> BatchSizes:
        return BatchSizes(
            size=self.size, global_size=self.global_size, lanes=self.lanes, remainder=self.remainder
        )
