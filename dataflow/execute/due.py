"""When rows of a window are due: the step of an epoch whose batch they go to."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["Due", "Need"]

Need = tuple[int, int]  # the first turn of the epoch, and the step in it, whose batch needs a row first


class Due(NamedTuple):
    """Row r of a window is row `start + r` of its lane, of which each step takes `stride` rows."""

    first_turn: int
    start: int
    stride: int

    def need(self, row: int) -> Need:
        """When a row of the window is needed."""
        return self.first_turn, (self.start + row) // self.stride

    def batch(self, row: int) -> range:
        """The rows of the window that go to the same batch; those outside the window included."""
        begin = (self.start + row) // self.stride * self.stride - self.start
        return range(begin, begin + self.stride)
