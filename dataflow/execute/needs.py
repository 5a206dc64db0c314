"""`Needs`: which rows of a lane a rank delivers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

__all__ = ["ALL_ROWS", "Needs"]

Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Needs:
    """Which rows of a lane a rank delivers in one epoch.

    Of every `stride` rows from lane row `first` up to `until`, `count` (those of one step); and the ranges of
    `extra`, which are the steps at the end.
    """

    first: int
    count: int
    stride: int
    until: int
    extra: tuple[tuple[int, int], ...] = ()

    def mask(self, start: int, stop: int) -> Bools | None:
        """bool (stop - start,): which of these lane rows are delivered; None where all are."""
        if self.count == self.stride and self.first <= start and stop <= self.until:
            return None
        row = np.arange(start, stop)
        regular = (row >= self.first) & (row < self.until)
        regular &= (row - self.first) % self.stride < self.count if self.stride else False
        for low, high in self.extra:
            regular |= (row >= low) & (row < high)
        return None if regular.all() else regular


ALL_ROWS = Needs(0, 1, 1, 1 << 62)
