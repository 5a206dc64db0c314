"""Picture: an image on its way through steps, read no sooner and no further than it must be.

Crops, one resize and flips are noted down and done together when pixels are asked for: of a JPEG only the part that
is left is then decoded, at a scale that is just large enough.
"""

from __future__ import annotations

import cv2

from dataflow.graph.image_column import Pixels
from dataflow.ops.images.canvas import Box, Fill, Matrix, Padding, Source
from dataflow.ops.images.filters import SMOOTH, Filter, WarpFilter
from dataflow.ops.images.pixels.resample import resample
from dataflow.ops.images.pixels.warp import padded, warped

__all__ = ["Picture", "Stored"]


class Stored:
    """Pixels in memory (height, width, channels)."""

    def __init__(self, pixels: Pixels) -> None:
        self._pixels = pixels

    @property
    def size(self) -> tuple[int, int]:
        height, width = self._pixels.shape[:2]
        return height, width

    def read(self, part: Box, least: tuple[int, int] | None) -> tuple[Pixels, Box]:
        return self._pixels, part


class Picture:
    """One image, an `Image` over pixels that are read from `source` when they are first asked for."""

    def __init__(self, source: Source) -> None:
        self._begin(source)

    def _begin(self, source: Source) -> None:
        self._source = source
        height, width = source.size
        self._top, self._left, self._height, self._width = 0, 0, height, width
        self._resized: tuple[int, int] | None = None
        self._filter: Filter = "bilinear"
        self._mirrored, self._upside_down = False, False

    @property
    def size(self) -> tuple[int, int]:
        return self._resized or (self._height, self._width)

    def crop(self, top: int, left: int, height: int, width: int) -> None:
        if (top, left, height, width) == (0, 0, *self.size):
            return
        if self._resized is not None:
            self.show(self.pixels()[top : top + height, left : left + width])
            return
        # What is noted down comes before the flips, and this crop behind them.
        left = self._width - left - width if self._mirrored else left
        top = self._height - top - height if self._upside_down else top
        self._top, self._left, self._height, self._width = self._top + top, self._left + left, height, width

    def pad(
        self, above: int, left: int, below: int, right: int, fill: Fill = 0, mode: Padding = "constant"
    ) -> None:
        self.show(padded(self.pixels(), (above, left, below, right), fill, mode))

    def resize(self, height: int, width: int, filter: Filter) -> None:
        if (height, width) == self.size:
            return
        if self._resized is not None:
            self.show(self.pixels())
        self._resized, self._filter = (height, width), filter

    def flip(self, *, horizontal: bool = False, vertical: bool = False) -> None:
        self._mirrored ^= horizontal
        self._upside_down ^= vertical

    def warp(self, matrix: Matrix, height: int, width: int, filter: WarpFilter, fill: Fill = 0) -> None:
        self.show(warped(self.pixels(), matrix, (height, width), filter, fill))

    def show(self, pixels: Pixels) -> None:
        self._begin(Stored(pixels))

    def pixels(self) -> Pixels:
        part = Box(self._top, self._left, self._height, self._width)
        least = self._resized if self._filter in SMOOTH else None
        pixels, part = self._source.read(part, least)
        if self._resized is not None:
            pixels = resample(pixels, part, self._resized, self._filter)
        else:
            top, left, height, width = map(int, part)
            pixels = pixels[top : top + height, left : left + width]
        if self._mirrored or self._upside_down:
            code = (-1 if self._upside_down else 1) if self._mirrored else 0
            pixels = cv2.flip(pixels, code).reshape(pixels.shape)
        return pixels
