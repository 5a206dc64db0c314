"""`Segment`: rows of a block, as lanes hand them out and batches are made of."""

from __future__ import annotations

from dataclasses import dataclass

from dataflow.graph.block import Block

__all__ = ["Segment"]


@dataclass(frozen=True, slots=True)
class Segment:
    """Rows `start` to `stop` of a block."""

    block: Block
    start: int
    stop: int

    @property
    def nbytes(self) -> float:
        """Memory of its columns, the block's shared evenly among its rows."""
        return self.block.nbytes * (self.stop - self.start) / max(1, self.block.rows)
