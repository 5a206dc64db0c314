"""Lanes: number g of a stream (counted over all its passes) is row g div lanes of lane g mod lanes."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

__all__ = ["below", "borders", "pass_of"]

Int64s = npt.NDArray[np.int64]


def below(number: int, lane: int, lanes: int) -> int:
    """How many numbers g < `number` have g mod lanes = lane."""
    return (number + lanes - 1 - lane) // lanes


def borders(rows: int, number: int, lanes: int) -> Int64s:
    """Where the lanes' runs begin and end in the `rows` rows of pass `number`: int64 (lanes + 1,).

    The longer runs go round from pass to pass, so that a source may be smaller than `lanes`.
    """
    lane = np.arange(lanes, dtype=np.int64)
    stop = ((number + 1) * rows + lanes - 1 - lane) // lanes
    start = (number * rows + lanes - 1 - lane) // lanes
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(stop - start)])


def pass_of(row: int, lane: int, lanes: int, rows: int) -> tuple[int, int]:
    """The pass (of `rows` rows each) of row `row` of a lane, and its row within the lane's pass."""
    number = (row * lanes + lane) // rows
    return number, row - below(number * rows, lane, lanes)
