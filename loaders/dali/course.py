"""Course: what steps that move pixels do to one image, as a crop, a resize, a crop that may reach out, and flips."""

from __future__ import annotations

from dataflow.ops.images.canvas import Fill, Matrix, Padding
from dataflow.ops.images.filters import Filter, WarpFilter

__all__ = ["Course", "Unfit"]


class Unfit(Exception):
    """An image whose steps are more than that."""


class Course:
    """A `Canvas` that notes down what is done to it; lengths are in pixels, places are (top, left).

    `start` and `shape` are the part of the image as it is in its file, `resized` its size then; `anchor` and `cut`
    (height, width) the part of that which is kept, and may reach out over its edges; and then it is flipped.
    """

    def __init__(self, size: tuple[int, int]) -> None:
        self.start, self.shape = (0, 0), size
        self._resized: tuple[int, int] | None = None
        self._cut: tuple[int, int, int, int] | None = None
        self.mirrored, self.upside_down = False, False

    @property
    def resized(self) -> tuple[int, int]:
        return self._resized or self.shape

    @property
    def anchor(self) -> tuple[int, int]:
        return (0, 0) if self._cut is None else self._cut[:2]

    @property
    def cut(self) -> tuple[int, int]:
        return self.resized if self._cut is None else self._cut[2:]

    @property
    def size(self) -> tuple[int, int]:
        return self.cut

    def crop(self, top: int, left: int, height: int, width: int) -> None:
        if (top, left, height, width) == (0, 0, *self.size):
            return
        # What is noted down comes before the flips, and this crop behind them.
        left = self.size[1] - left - width if self.mirrored else left
        top = self.size[0] - top - height if self.upside_down else top
        if self._resized is None and self._cut is None:
            self.start, self.shape = (self.start[0] + top, self.start[1] + left), (height, width)
        else:
            self._cut = (self.anchor[0] + top, self.anchor[1] + left, height, width)

    def pad(
        self, above: int, left: int, below: int, right: int, fill: Fill = 0, mode: Padding = "constant"
    ) -> None:
        if mode != "constant" or not self._shows_all:
            raise Unfit
        above, below = (below, above) if self.upside_down else (above, below)
        left, right = (right, left) if self.mirrored else (left, right)
        height, width = self.size
        top, side = self.anchor
        self._cut = (top - above, side - left, height + above + below, width + left + right)

    @property
    def _shows_all(self) -> bool:
        """Whether there are no pixels outside of what is kept, where fill must come."""
        ends = [at + side for at, side in zip(self.anchor, self.cut, strict=True)]
        return max(self.anchor) <= 0 and all(
            end >= side for end, side in zip(ends, self.resized, strict=True)
        )

    def resize(self, height: int, width: int, filter: Filter) -> None:
        if (height, width) == self.size:
            return
        if self._resized is not None or self._cut is not None:
            raise Unfit
        self._resized = (height, width)

    def flip(self, *, horizontal: bool = False, vertical: bool = False) -> None:
        self.mirrored ^= horizontal
        self.upside_down ^= vertical

    def warp(self, matrix: Matrix, height: int, width: int, filter: WarpFilter, fill: Fill = 0) -> None:
        raise Unfit
