"""What follows an image through its steps: points, boxes and masks as canvases. Coordinates are float32, in pixels."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from dataflow.ops.images.canvas import Fill, Matrix, Padding, Source
from dataflow.ops.images.filters import Filter, WarpFilter
from dataflow.ops.images.pixels.picture import Picture

__all__ = ["Boxes", "Keypoints", "Mask"]

Points = npt.NDArray[np.float32]


class Keypoints:
    """Points (..., 2) as (x, y) of an image of `size` (height, width); some may lie outside."""

    # The last pixel of a row is at width - 1, and mirrors the first one.
    _from_end = 1

    def __init__(self, points: Points, size: tuple[int, int]) -> None:
        self._points, self.size = points, size

    @property
    def values(self) -> Points:
        """Where they are now."""
        return self._points

    def crop(self, top: int, left: int, height: int, width: int) -> None:
        self._points = self._points - np.array([left, top], np.float32)
        self.size = (height, width)

    def pad(
        self, above: int, left: int, below: int, right: int, fill: Fill = 0, mode: Padding = "constant"
    ) -> None:
        height, width = self.size
        self._points = self._points + np.array([left, above], np.float32)
        self.size = (above + height + below, left + width + right)

    def resize(self, height: int, width: int, filter: Filter) -> None:
        self._points = self._points * np.array([width / self.size[1], height / self.size[0]], np.float32)
        self.size = (height, width)

    def flip(self, *, horizontal: bool = False, vertical: bool = False) -> None:
        for axis, flipped in enumerate((horizontal, vertical)):
            if flipped:
                self._points = self._points.copy()
                self._points[..., axis] = self.size[1 - axis] - self._from_end - self._points[..., axis]

    def warp(self, matrix: Matrix, height: int, width: int, filter: WarpFilter, fill: Fill = 0) -> None:
        self._points = (self._points @ matrix[:, :2].T + matrix[:, 2]).astype(np.float32)
        self.size = (height, width)


class Boxes(Keypoints):
    """Boxes (..., 4) as (x1, y1, x2, y2), from the upper left corner of one pixel to the lower right one of another.

    A crop or a turn cuts them off at the edges of what is left; one that lies outside gets an area of 0.
    """

    _from_end = 0

    def __init__(self, boxes: Points, size: tuple[int, int]) -> None:
        super().__init__(boxes.reshape(*boxes.shape[:-1], 2, 2), size)

    @property
    def values(self) -> Points:
        return self._points.reshape(*self._points.shape[:-2], 4)

    def crop(self, top: int, left: int, height: int, width: int) -> None:
        super().crop(top, left, height, width)
        self._cut()

    def flip(self, *, horizontal: bool = False, vertical: bool = False) -> None:
        super().flip(horizontal=horizontal, vertical=vertical)
        for axis, flipped in enumerate((horizontal, vertical)):
            if flipped:
                self._points[..., axis] = self._points[..., ::-1, axis].copy()

    def warp(self, matrix: Matrix, height: int, width: int, filter: WarpFilter, fill: Fill = 0) -> None:
        across = np.stack([self._points[..., [0, 1], 0], self._points[..., [1, 0], 1]], axis=-1)
        self._points = np.concatenate([self._points, across], axis=-2)
        super().warp(matrix, height, width, filter, fill)
        self._points = np.stack([self._points.min(axis=-2), self._points.max(axis=-2)], axis=-2)
        self._cut()

    def _cut(self) -> None:
        height, width = self.size
        self._points = np.clip(self._points, np.float32(0), np.array([width, height], np.float32))


class Mask(Picture):
    """Class numbers (height, width, 1): none are made that were not there, but for `fill` where there was no image."""

    def __init__(self, source: Source, fill: int) -> None:
        super().__init__(source)
        self._fill = fill

    def pad(
        self, above: int, left: int, below: int, right: int, fill: Fill = 0, mode: Padding = "constant"
    ) -> None:
        super().pad(above, left, below, right, self._fill, mode)

    def resize(self, height: int, width: int, filter: Filter) -> None:
        super().resize(height, width, "nearest")

    def warp(self, matrix: Matrix, height: int, width: int, filter: WarpFilter, fill: Fill = 0) -> None:
        super().warp(matrix, height, width, "nearest", self._fill)
