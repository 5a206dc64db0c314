"""How good a shuffle is: how far the order still follows the file, and how far rows have moved."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

__all__ = ["Quality", "shuffle_quality"]

Int64s = npt.NDArray[np.int64]


class Quality(NamedTuple):
    """Two numbers about an order of n rows.

    `rank_correlation` is Spearman's between position in the file and place of delivery: 1 for file order, -1
    for the reverse, near 0 (mostly within 2 / sqrt(n)) for a full shuffle. `distance` is the mean of
    |place - position| as a part of what a full shuffle has on average, (n - 1/n) / 3: 0 for file order, near
    1 for a full shuffle.
    """

    rank_correlation: float
    distance: float


def shuffle_quality(positions: Int64s) -> Quality:
    """Measure an order.

    Args:
        positions: the position in the file of each delivered row, int64 of shape (n,), distinct. Only their
            ranks count, so that an even sample of a long order serves too.
    """
    rows = len(positions)
    if rows < 2:
        return Quality(1.0, 0.0)
    rank = np.empty(rows, np.int64)
    rank[np.argsort(positions, kind="stable")] = np.arange(rows)
    moved = np.abs(rank - np.arange(rows)).astype(np.float64)
    correlation = 1.0 - 6.0 * float(np.square(moved).sum()) / (rows * (float(rows) ** 2 - 1.0))
    return Quality(correlation, float(moved.mean()) / ((rows - 1.0 / rows) / 3.0))
