"""Where the rows of a window go: they are read in the order of its spans, and delivered in another one."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

__all__ = ["Places", "places_of"]

Int64s = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Places:
    """Rows that are read are numbered in the order of the spans, those that nobody wants left out.

    `origin`, int64 (rows,), ascending: the row of the window that each delivered row is. `order`, int64 (rows,):
    the read row that each delivered row is; None where they are delivered as they are read. `wanted`, bool (rows
    of the spans,): which of them are read; None for all.
    """

    origin: Int64s
    order: Int64s | None
    wanted: Bools | None

    @property
    def rows(self) -> int:
        """Rows that are read and delivered."""
        return len(self.origin)

    @cached_property
    def to(self) -> Int64s:
        """int64 (rows,): the delivered row that each read row becomes."""
        to = np.arange(self.rows)
        if self.order is not None:
            to[self.order] = np.arange(self.rows)
        return to

    @cached_property
    def _read_before(self) -> Int64s:
        """int64 (rows of the spans + 1,): how many rows in front of each are read."""
        assert self.wanted is not None
        return np.concatenate([np.zeros(1, np.int64), np.cumsum(self.wanted)])

    def read_rows(self, start: int, stop: int) -> tuple[slice, Bools | None]:
        """Rows `start` to `stop` of the spans: which read rows they are, and which of them; None for all."""
        if self.wanted is None:
            return slice(start, stop), None
        first, last = int(self._read_before[start]), int(self._read_before[stop])
        return slice(first, last), None if last - first == stop - start else self.wanted[start:stop]


def places_of(at: Int64s | None, rows: int, wanted: Bools | None, inside: Bools | None) -> Places:
    """The places of those rows of a window that are wanted and whose span is inside.

    Args:
        at: int64 (rows,): the row of all spans that each row of the window is; None: as they lie.
        wanted: bool (rows,), by row of the window; None for all.
        inside: bool (rows of all spans,): which of them are read at all; None for all.
    """
    if wanted is None and inside is None:
        return Places(np.arange(rows), at, None)
    here = np.ones(rows, np.bool_) if wanted is None else wanted
    if inside is not None:
        here = here & (inside if at is None else inside[at])
    origin = np.flatnonzero(here)
    chosen = origin if at is None else at[origin]
    read = np.zeros(rows if inside is None else len(inside), np.bool_)
    read[chosen] = True
    order = None if at is None else (np.cumsum(read) - 1)[chosen]
    return Places(origin, order, read if inside is None else read[inside])
