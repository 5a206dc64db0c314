"""Pixels with others around them, and pixels under an affine map."""

from __future__ import annotations

from typing import Any, Final

import cv2
import numpy as np

from dataflow.graph.image_column import Pixels
from dataflow.ops.images.canvas import Fill, Matrix, Padding
from dataflow.ops.images.check import each_channel
from dataflow.ops.images.filters import WarpFilter

__all__ = ["padded", "warped"]

_BORDERS: Final = {
    "constant": cv2.BORDER_CONSTANT,
    "edge": cv2.BORDER_REPLICATE,
    "reflect": cv2.BORDER_REFLECT_101,
    "symmetric": cv2.BORDER_REFLECT,
}


def padded(pixels: Pixels, sides: tuple[int, int, int, int], fill: Fill, mode: Padding) -> Pixels:
    """Pixels (height, width, channels) with so many rows and columns above, left, below and right.

    Raises:
        DataError: `fill` has another number of channels.
    """
    above, left, below, right = sides
    value = each_channel("fill", fill, pixels.shape[2])
    made: Any = cv2.copyMakeBorder(pixels, above, below, left, right, _BORDERS[mode], value=value)
    return np.asarray(made).reshape(*made.shape[:2], pixels.shape[2])


def warped(
    pixels: Pixels, matrix: Matrix, size: tuple[int, int], filter: WarpFilter, fill: Fill = 0
) -> Pixels:
    """An image of `size` (height, width) in which what `pixels` show at (x, y) is at `matrix` @ (x, y, 1).

    Args:
        pixels: (height, width, channels).
        filter: "nearest" takes the pixel in which the place lies, "bilinear" blends the four around it.
        fill: what lies outside, one number or one for each channel; "bilinear" blends it in at the edges.

    Raises:
        DataError: `fill` has another number of channels.
    """
    # OpenCV counts places from the middle of the first pixel.
    shifted = matrix.copy()
    shifted[:, 2] += matrix[:, :2].sum(axis=1) / 2 - 0.5
    made: Any = cv2.warpAffine(
        pixels,
        shifted,
        size[::-1],
        flags=cv2.INTER_NEAREST if filter == "nearest" else cv2.INTER_LINEAR,
        borderMode=cv2.BORDER_CONSTANT,
        borderValue=each_channel("fill", fill, pixels.shape[2]),
    )
    return np.asarray(made).reshape(*size, pixels.shape[2])
