"""Where the windows of one lane begin in one pass: a fixed grid, or a list of first rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

__all__ = ["Borders", "Grid", "Starts"]

Int64s = npt.NDArray[np.int64]


class Borders(Protocol):
    """Where the windows of one lane and pass begin, in rows of that lane's pass."""

    @property
    def count(self) -> int:
        """How many windows."""

    def first(self, index: int) -> int:
        """The first row of window `index`; of window `count`, the lane's rows in the pass."""

    def find(self, row: int) -> int:
        """The window that holds `row`."""


@dataclass(frozen=True, slots=True)
class Grid:
    """Windows of `step` rows each, the last one shorter."""

    rows: int
    step: int

    @property
    def count(self) -> int:
        """How many windows."""
        return -(-self.rows // self.step)

    def first(self, index: int) -> int:
        """The first row of window `index`."""
        return min(index * self.step, self.rows)

    def find(self, row: int) -> int:
        """The window that holds `row`."""
        return row // self.step


@dataclass(frozen=True, slots=True)
class Starts:
    """Windows with a list of first rows, the lane's rows behind the last."""

    rows: Int64s

    @property
    def count(self) -> int:
        """How many windows."""
        return len(self.rows) - 1

    def first(self, index: int) -> int:
        """The first row of window `index`."""
        return int(self.rows[index])

    def find(self, row: int) -> int:
        """The window that holds `row`."""
        return int(np.searchsorted(self.rows, row, "right")) - 1
