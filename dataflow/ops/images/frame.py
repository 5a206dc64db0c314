"""Frame: an image without its pixels."""

from __future__ import annotations

from dataflow.ops.images.canvas import Fill, Matrix, Padding
from dataflow.ops.images.filters import Filter, WarpFilter

__all__ = ["Frame"]


class Frame:
    """A `Canvas` that has a size alone: what steps would do to it can be tried."""

    def __init__(self, size: tuple[int, int]) -> None:
        self.size = size

    def crop(self, top: int, left: int, height: int, width: int) -> None:
        self.size = (height, width)

    def pad(
        self, above: int, left: int, below: int, right: int, fill: Fill = 0, mode: Padding = "constant"
    ) -> None:
        self.size = (self.size[0] + above + below, self.size[1] + left + right)

    def resize(self, height: int, width: int, filter: Filter) -> None:
        self.size = (height, width)

    def flip(self, *, horizontal: bool = False, vertical: bool = False) -> None:
        pass

    def warp(self, matrix: Matrix, height: int, width: int, filter: WarpFilter, fill: Fill = 0) -> None:
        self.size = (height, width)
