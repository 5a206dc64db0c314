"""Rows of a batch mixed in place, each with the one before it, the first with the last: a batch rolled by one."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from connectors.bfloat16 import rounded, widened

__all__ = ["Part", "blend", "part_of", "paste"]

Int64s = npt.NDArray[np.int64]
Values = npt.NDArray[Any]


class Part(NamedTuple):
    """Lines `top` to `bottom` and columns `left` to `right` of an image, in pixels."""

    top: int
    bottom: int
    left: int
    right: int


def blend(values: Values, rows: Int64s, share: float, *, bfloat16: bool = False) -> None:
    """These rows become `share` of themselves and the rest of the one before, computed in float32 (float64).

    `bfloat16`: the values are the bits of such numbers. Row by row from the last on, so that no second batch is made.
    """
    if not len(rows):
        return
    dtype: Any = np.float64 if values.dtype == np.float64 else np.float32
    own, other = dtype(share), dtype(1.0 - share)

    def numbers(row: Values) -> Values:
        return widened(row) if bfloat16 else row.astype(dtype, copy=False)

    last = values[rows[-1]].copy(order="K")
    for place in range(len(rows) - 1, -1, -1):
        before = values[rows[place - 1]] if place else last
        mixed = numbers(before) * other
        mixed += numbers(values[rows[place]]) * own
        values[rows[place]] = rounded(mixed) if bfloat16 else mixed


def paste(images: Values, rows: Int64s, part: Part, *, channels_first: bool) -> None:
    """A part of these images becomes that of the one before."""
    lines, columns = slice(part.top, part.bottom), slice(part.left, part.right)
    place = images[:, :, lines, columns] if channels_first else images[:, lines, columns]
    place[rows] = place[np.roll(rows, 1)]


def part_of(height: int, width: int, share: float, middle: tuple[int, int]) -> tuple[Part, float]:
    """The part around `middle` (line, column) that leaves `share` of an image, and what it really leaves.

    What of it would lie outside is cut off.
    """
    radius = 0.5 * math.sqrt(1.0 - share)
    down, across = int(radius * height), int(radius * width)
    line, column = middle
    part = Part(
        max(line - down, 0), min(line + down, height), max(column - across, 0), min(column + across, width)
    )
    return part, 1.0 - (part.bottom - part.top) * (part.right - part.left) / (height * width)
