"""What becomes of a pixel by those around it: blur, and its opposite."""

from __future__ import annotations

import cv2
import numpy as np

from dataflow.graph.image_column import Pixels
from dataflow.ops.images.alpha import on_colours
from dataflow.ops.images.pixels.colour import blend

__all__ = ["gaussian_blur", "sharpen"]

# A 3 x 3 mean in which the pixel itself counts five times (Pillow's SMOOTH).
_SMOOTH = np.array([[1, 1, 1], [1, 5, 1], [1, 1, 1]], np.float32) / 13


def gaussian_blur(pixels: Pixels, size: tuple[int, int], sigma: float) -> Pixels:
    """Colours averaged under a Gaussian of `sigma` pixels over `size` (height, width), odd; mirrored at the edges."""
    height, width = size
    down, along = cv2.getGaussianKernel(height, sigma), cv2.getGaussianKernel(width, sigma)
    return on_colours(
        pixels,
        lambda c: np.asarray(cv2.sepFilter2D(c, -1, along, down, borderType=cv2.BORDER_REFLECT_101)),
    )


def sharpen(pixels: Pixels, factor: float) -> Pixels:
    """How far colours are from the mean around them, times `factor`; the outermost pixels stay."""
    if min(pixels.shape[:2]) <= 2:
        return pixels
    return on_colours(pixels, lambda c: _sharpened(c, factor))


def _sharpened(pixels: Pixels, factor: float) -> Pixels:
    smooth = np.asarray(cv2.filter2D(pixels, -1, _SMOOTH)).reshape(pixels.shape)
    smooth[[0, -1]] = pixels[[0, -1]]
    smooth[:, [0, -1]] = pixels[:, [0, -1]]
    return np.asarray(blend(pixels, smooth, factor))
