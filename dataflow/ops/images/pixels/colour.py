"""Brightness, contrast, saturation and hue."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

import cv2
import numpy as np

from dataflow.graph.image_column import Pixels
from dataflow.ops.images.alpha import colours, on_colours
from dataflow.ops.images.pixels.levels import levels, look_up

__all__ = ["adjust", "blend", "brighten", "contrast", "grey", "grey_in_place", "saturate", "shift_hue"]

# OpenCV rounds, and torchvision cuts off: that is rounding of a number half a level lower. What float32 puts a trace
# below a whole number stays that number.
_CUT = -0.499


def blend(one: Pixels, other: Pixels, share: float) -> Any:
    """`share` of one and the rest of the other, cut to whole numbers; over 1 it is away from the other."""
    return cv2.addWeighted(one, share, other, 1 - share, _CUT)


def adjust(pixels: Pixels, changes: Iterable[tuple[str, float]]) -> Pixels:
    """Brightness, contrast and saturation times a factor, and hue by so many turns, in the order given."""
    for name, amount in changes:
        pixels = _ADJUST[name](pixels, amount)
    return pixels


def grey(pixels: Pixels) -> Any:
    """How light each pixel is, (height, width): 0.299 red + 0.587 green + 0.114 blue, rounded (ITU-R BT.601)."""
    if colours(pixels.shape[2]) == 1:
        return pixels[..., 0]
    return cv2.cvtColor(pixels[..., :3], cv2.COLOR_RGB2GRAY)


def grey_in_place(pixels: Pixels) -> Pixels:
    """The same without colour, of as many channels."""
    if colours(pixels.shape[2]) == 1:
        return pixels
    return on_colours(pixels, _three_greys)


def _three_greys(rgb: Pixels) -> Pixels:
    return np.asarray(cv2.cvtColor(grey(rgb), cv2.COLOR_GRAY2RGB))


def brighten(pixels: Pixels, factor: float) -> Pixels:
    """Every value times `factor`."""
    return look_up(pixels, [levels(pixels).astype(np.float32) * np.float32(factor)])


def contrast(pixels: Pixels, factor: float) -> Pixels:
    """How far values are from the mean of the image's grey, times `factor`."""
    mean = cv2.mean(grey(pixels))[0]
    values = levels(pixels)
    return look_up(pixels, [values + (factor - 1) * (values - mean)])


def saturate(pixels: Pixels, factor: float) -> Pixels:
    """How far colours are from the pixel's grey, times `factor`."""
    if colours(pixels.shape[2]) == 1:
        return pixels
    return on_colours(pixels, lambda rgb: blend(rgb, _three_greys(rgb), factor))


def shift_hue(pixels: Pixels, turns: float) -> Pixels:
    """Colours moved round the circle of hues by so many turns."""
    if colours(pixels.shape[2]) == 1:
        return pixels
    return on_colours(pixels, lambda rgb: _turned(rgb, turns))


def _turned(rgb: Pixels, turns: float) -> Pixels:
    # Of 32 bits: hue in whole degrees, as 8 bits have it, is up to 5 levels off.
    hsv: Any = cv2.cvtColor(rgb.astype(np.float32), cv2.COLOR_RGB2HSV)
    hsv[..., 0] += np.float32(360 * (turns % 1))
    made = cv2.cvtColor(hsv, cv2.COLOR_HSV2RGB)
    top = float(np.iinfo(rgb.dtype).max)
    # From [0, 1] to whole numbers as torchvision.transforms.v2.functional.to_dtype has it.
    scale = (top + 1 - 1e-3) / top
    depth = cv2.CV_8U if rgb.dtype == np.uint8 else cv2.CV_16U
    return np.asarray(cv2.addWeighted(made, scale, made, 0, _CUT, dtype=depth))


_ADJUST: Final[dict[str, Callable[[Pixels, float], Pixels]]] = {
    "brightness": brighten,
    "contrast": contrast,
    "saturation": saturate,
    "hue": shift_hue,
}
