"""The operations of augmentation policies, by name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import cos, radians, sin
from typing import Final

import numpy as np

from dataflow.graph.image_column import Pixels
from dataflow.ops.images.canvas import Fill, Matrix
from dataflow.ops.images.filters import WarpFilter
from dataflow.ops.images.pixels.blur import sharpen
from dataflow.ops.images.pixels.colour import brighten, contrast, saturate
from dataflow.ops.images.pixels.levels import autocontrast, equalize, posterize, solarize
from dataflow.ops.images.pixels.warp import warped

__all__ = ["augment"]


def augment(pixels: Pixels, name: str, magnitude: float, filter: WarpFilter, fill: Fill) -> Pixels:
    """The image after one operation.

    Args:
        magnitude: a slope for shears, pixels for translations, degrees for "Rotate", bits that stay for "Posterize",
            the share of the highest value from which "Solarize" inverts; else what is added to a factor of 1.
        filter, fill: see `warped`.
    """
    if name in _COLOUR:
        return _COLOUR[name](pixels, magnitude)
    height, width = pixels.shape[:2]
    return warped(pixels, _MAP[name](magnitude, height, width), (height, width), filter, fill)


_COLOUR: Final[dict[str, Callable[[Pixels, float], Pixels]]] = {
    "Identity": lambda pixels, _: pixels,
    "Brightness": lambda pixels, more: brighten(pixels, 1 + more),
    "Color": lambda pixels, more: saturate(pixels, 1 + more),
    "Contrast": lambda pixels, more: contrast(pixels, 1 + more),
    "Sharpness": lambda pixels, more: sharpen(pixels, 1 + more),
    "Posterize": lambda pixels, bits: posterize(pixels, int(bits)),
    "Solarize": solarize,
    "AutoContrast": lambda pixels, _: autocontrast(pixels),
    "Equalize": lambda pixels, _: equalize(pixels),
}


def _map(*rows: Sequence[float]) -> Matrix:
    return np.array(rows, np.float64)


def _turn(degrees: float, height: int, width: int) -> Matrix:
    """Counter-clockwise about the middle."""
    c, s, x, y = cos(radians(degrees)), sin(radians(degrees)), width / 2, height / 2
    return _map((c, s, x - c * x - s * y), (-s, c, y + s * x - c * y))


# From places in the image to places in the result; a shear leaves the upper left corner where it is.
_MAP: Final[dict[str, Callable[[float, int, int], Matrix]]] = {
    "ShearX": lambda slope, *_: _map((1, -slope, 0), (0, 1, 0)),
    "ShearY": lambda slope, *_: _map((1, 0, 0), (-slope, 1, 0)),
    "TranslateX": lambda right, *_: _map((1, 0, right), (0, 1, 0)),
    "TranslateY": lambda down, *_: _map((1, 0, 0), (0, 1, down)),
    "Rotate": _turn,
}
