"""What becomes of a pixel by its value alone, whatever lies around it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt

from dataflow.graph.image_column import Pixels
from dataflow.ops.images.alpha import colours

__all__ = ["autocontrast", "equalize", "levels", "look_up", "posterize", "solarize"]

Table = npt.NDArray[Any]


def levels(pixels: Pixels) -> npt.NDArray[np.int64]:
    """All values that pixels of this dtype can have, lowest first."""
    return np.arange(int(np.iinfo(pixels.dtype).max) + 1)


def look_up(pixels: Pixels, tables: Sequence[Table]) -> Pixels:
    """Pixels whose colours are what `tables` have for their values: one table for each colour, or one for all.

    What a table has is cut to a whole number that the dtype holds.
    """
    channels = pixels.shape[2]
    values = levels(pixels)
    whole = [np.clip(table, 0, values[-1]).astype(pixels.dtype) for table in tables]
    count = colours(channels)
    if len(whole) < count:
        whole = whole * count
    whole += [values.astype(pixels.dtype)] * (channels - count)
    if pixels.dtype == np.uint8:
        return np.asarray(cv2.LUT(pixels, np.stack(whole, axis=-1)[None])).reshape(pixels.shape)
    return np.stack([table[pixels[..., channel]] for channel, table in enumerate(whole)], axis=-1)


def posterize(pixels: Pixels, bits: int) -> Pixels:
    """Only the highest `bits` of each value are kept."""
    width = 8 * pixels.dtype.itemsize
    kept = max(0, width - bits)
    return look_up(pixels, [levels(pixels) >> kept << kept])


def solarize(pixels: Pixels, share: float) -> Pixels:
    """Values from this share of the highest on are inverted."""
    values = levels(pixels)
    # A share of 2/3 is 170, though the product is not quite.
    return look_up(pixels, [np.where(values >= values[-1] * share - 1e-6, values[-1] - values, values)])


def autocontrast(pixels: Pixels) -> Pixels:
    """Each colour is stretched so that its lowest value becomes 0, and its highest the highest that there is."""
    values = levels(pixels)
    tables = []
    for channel in range(colours(pixels.shape[2])):
        plane = pixels[..., channel]
        low, high = int(plane.min()), int(plane.max())
        tables.append((values - low) * values[-1] // (high - low) if high > low else values)
    return look_up(pixels, tables)


def equalize(pixels: Pixels) -> Pixels:
    """The histogram of each colour is made as even as can be, in 256 steps."""
    return look_up(pixels, [_evened(pixels, channel) for channel in range(colours(pixels.shape[2]))])


def _evened(pixels: Pixels, channel: int) -> Table:
    values = levels(pixels)
    # A third of the time of NumPy's bincount; exact up to 2**24 pixels of one value.
    found = cv2.calcHist([pixels], [channel], None, [256], [0, len(values)])
    counts = np.asarray(found).reshape(-1).astype(np.int64)
    step = (counts.sum() - counts[np.flatnonzero(counts)[-1]]) // 255
    if step == 0:
        return values
    below = np.concatenate([[0], np.cumsum(counts)[:-1]])
    even = np.minimum((below + step // 2) // step, 255)
    return np.repeat(even * (values[-1] // 255), len(values) // 256)
