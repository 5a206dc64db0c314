"""What steps do to an image without asking where its pixels are, and where these come from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from dataflow.graph.image_column import Pixels
from dataflow.ops.images.filters import Filter, WarpFilter

__all__ = ["Box", "Canvas", "Fill", "Image", "Matrix", "Padding", "Planned", "Source", "Stage"]

# What a step works on: files; pixels; "tensor": pixels, or the tensor that they have become; "write" makes that.
Stage = Literal["open", "pixels", "write", "tensor"]
# What stands where there was no image: one value for all channels, or one for each.
Fill = int | tuple[int, ...]
# What is added around an image: a fill, its outermost pixels again, or it mirrored, without and with these pixels.
Padding = Literal["constant", "edge", "reflect", "symmetric"]
# float64 (2, 3): from a place (x, y, 1) in an image to its place (x, y) in another. Places are in pixels from the upper
# left corner, so that the middle of the first pixel is (0.5, 0.5).
Matrix = npt.NDArray[np.float64]


class Planned(NamedTuple):
    """What a step will do to each image of a block.

    `params` has one entry an image, for `change`; `sizes` is int64 (images, 2): heights and widths behind the step.
    """

    params: Sequence[Any]
    sizes: npt.NDArray[np.int64]


class Box(NamedTuple):
    """A part of an image, in pixels from its upper left corner; not always whole ones."""

    top: float
    left: float
    height: float
    width: float


class Source(Protocol):
    """Where the pixels of an image come from."""

    @property
    def size(self) -> tuple[int, int]:
        """Height and width."""

    def read(self, part: Box, least: tuple[int, int] | None) -> tuple[Pixels, Box]:
        """Pixels that show `part` of the image, and where in them it lies.

        They may be fewer than the image has, but show the part at least `least` (height, width) large; None: as it
        is.

        Raises:
            Exception: whatever a decoder raises for a broken file.
        """


class Canvas(Protocol):
    """An image, or what follows it: masks, boxes, keypoints. Lengths are in pixels."""

    @property
    def size(self) -> tuple[int, int]:
        """Height and width."""

    def crop(self, top: int, left: int, height: int, width: int) -> None:
        """Keep this part, which lies inside."""

    def pad(
        self, above: int, left: int, below: int, right: int, fill: Fill = 0, mode: Padding = "constant"
    ) -> None:
        """Add so many rows and columns on each side."""

    def resize(self, height: int, width: int, filter: Filter) -> None:
        """Stretch to this size."""

    def flip(self, *, horizontal: bool = False, vertical: bool = False) -> None:
        """Mirror left and right, or up and down."""

    def warp(self, matrix: Matrix, height: int, width: int, filter: WarpFilter, fill: Fill = 0) -> None:
        """Make an image of this size, to which `matrix` leads, by "nearest" or "bilinear" pixels."""


class Image(Canvas, Protocol):
    """A canvas that has pixels."""

    def pixels(self) -> Pixels:
        """The image as it is now (height, width, channels); not to be written to."""

    def show(self, pixels: Pixels) -> None:
        """Go on with these pixels (height, width, channels)."""
