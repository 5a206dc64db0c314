"""Pixels as the numbers of a tensor, in the layout of a batch."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt

from connectors.bfloat16 import rounded
from dataflow.graph.image_column import Pixels
from dataflow.ops.images.form import Dtype, Layout

__all__ = ["channels_behind", "write_normalized", "write_numbers"]

Values = npt.NDArray[Any]


def channels_behind(image: npt.NDArray[Any], layout: Layout) -> npt.NDArray[Any]:
    """An image of a layout as (height, width, channels), over the same memory."""
    return image.transpose(1, 2, 0) if layout in ("NCHW", "channels_last") else image


def write_numbers(pixels: Pixels, dtype: Dtype, *, scale: bool, layout: Layout, out: Values) -> None:
    """Write pixels (height, width, channels) as numbers of `dtype` to `out`, one image of `layout`.

    `scale`: those of floats are from 0 to 1, and those of uint8 the upper half of 16 bits.
    """
    if dtype == pixels.dtype.name:
        _spread(pixels, out if layout == "NCHW" else channels_behind(out, layout), layout)
    else:
        _write(pixels, _numbers(pixels.dtype.name, pixels.shape[2], dtype, scale), layout, out)


def write_normalized(
    pixels: Pixels, mean: tuple[float, ...], std: tuple[float, ...], dtype: Dtype, layout: Layout, out: Values
) -> None:
    """Write (pixel / its largest value - mean) / std of pixels (height, width, channels) to `out`, as above."""
    _write(pixels, _normalized(pixels.dtype.name, mean, std, dtype), layout, out)


def _levels(source: str, *, scale: bool) -> npt.NDArray[np.float32]:
    """All values of a pixel as float32, from 0 to 1 where it is scaled."""
    most = np.iinfo(source).max
    # Not divided by it: torchvision multiplies, which differs in the last bit.
    return np.arange(most + 1, dtype=np.float32) * np.float32(1 / most if scale else 1)


@lru_cache(maxsize=64)
def _numbers(source: str, channels: int, dtype: Dtype, scale: bool) -> Values:
    """What becomes of each value of a pixel, (channels, values)."""
    if dtype == "uint8":
        one = (np.arange(np.iinfo(source).max + 1) >> 8 * (np.dtype(source).itemsize - 1)).astype(np.uint8)
    else:
        one = _as_dtype(_levels(source, scale=scale), dtype)
    return np.tile(one, (channels, 1))


@lru_cache(maxsize=64)
def _normalized(source: str, mean: tuple[float, ...], std: tuple[float, ...], dtype: Dtype) -> Values:
    """As `_numbers`. A table makes 224 x 224 x 3 pixels in 80 us, exactly; NumPy's arithmetic takes 110."""
    levels = _levels(source, scale=True)
    tables = [(levels - np.float32(m)) / np.float32(s) for m, s in zip(mean, std, strict=True)]
    return _as_dtype(np.stack(tables), dtype)


def _as_dtype(values: npt.NDArray[np.float32], dtype: Dtype) -> Values:
    if dtype == "bfloat16":
        return rounded(values)
    # float16 as its bits, which is all that OpenCV has to move.
    return values.astype(np.float16).view(np.uint16) if dtype == "float16" else values


def _write(pixels: Pixels, tables: Values, layout: Layout, out: Values) -> None:
    numbers = out.view(tables.dtype)
    if layout == "NCHW":
        planes = np.empty(numbers.shape, pixels.dtype)
        _spread(pixels, planes, layout)
        for plane, table, place in zip(planes, tables, numbers, strict=True):
            _look_up(plane, table, place)
    else:
        last = numbers.transpose(1, 2, 0) if layout == "channels_last" else numbers
        _look_up(pixels, np.ascontiguousarray(tables.T)[None], last)


def _spread(pixels: Pixels, out: Values, layout: Layout) -> None:
    """Copy pixels to an image of `layout` and of their dtype, with the channels last for all but NCHW."""
    if layout == "NCHW":
        # Into memory that is there: a split that makes arrays of its own takes three times as long.
        cv2.split(pixels, list(out))
    else:
        np.copyto(out, pixels)


def _look_up(pixels: Pixels, table: Values, out: Values) -> None:
    """Each value's entry in `table` (values,) or, of several channels, (1, values, channels)."""
    if pixels.dtype == np.uint8:
        cv2.LUT(pixels, table, dst=out)
    elif pixels.ndim == 2:
        out[...] = table[pixels]
    else:
        out[...] = table[0, pixels, np.arange(pixels.shape[2])]
