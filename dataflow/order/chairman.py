"""Tijdeman's rule: which source each row takes, so that every prefix is within one row of the shares.

R. Tijdeman, "The chairman assignment problem", Discrete Mathematics 32 (1980): among the sources that are owed at
least 1/(2S-2) of a row, the one whose next row falls due first. What each row is owed and when it falls due grows
evenly with the rows, so that a source waits in a bucket until it may be taken, and then in a heap until it is: a row
costs the same with a thousand sources as with ten.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from heapq import heapify, heappop, heappush

import numpy as np
import numpy.typing as npt

__all__ = ["Chairman"]

Int64s = npt.NDArray[np.int64]


class Chairman:
    """Goes on row by row; exact, for all of it is arithmetic of whole numbers.

    Args:
        weights: whole numbers, some of them above 0; a source of weight 0 is never taken.
        owed: what each source is owed in front of the first row; the sum over those that have a weight is 0.
    """

    def __init__(self, weights: Sequence[int], owed: Sequence[Fraction]) -> None:
        active = [source for source, weight in enumerate(weights) if weight]
        whole = sum(weights)
        least = Fraction(1, max(1, 2 * len(active) - 2))
        # A row of a source may be taken from row ceil(opens / width) on, and falls due at `due`: everything over common
        # denominators, so that no fraction is reduced at a row.
        unit = math.lcm(least.denominator, *(owed[source].denominator for source in active))
        common = math.lcm(*(weights[source] for source in active))
        self._opens = [int((least - debt) * unit) * whole for debt in owed]
        self._width = [weight * unit for weight in weights]
        self._row = unit * whole
        self._due = [0] * len(weights)
        self._step = [0] * len(weights)
        for source in active:
            scale = common // weights[source]
            self._due[source] = int((1 - least - owed[source]) * unit) * scale
            self._step[source] = unit * scale
        self._waiting: dict[int, list[int]] = {}
        self._ready: list[tuple[int, int]] = []
        self._at = 0
        for source in active:
            opens = -(-self._opens[source] // self._width[source])
            if opens <= 1:
                self._ready.append((self._due[source], source))
            else:
                self._waiting.setdefault(opens, []).append(source)
        heapify(self._ready)

    def take(self, rows: int) -> Int64s:
        """The sources (int64, (rows,)) of the next rows."""
        waiting, ready, due = self._waiting, self._ready, self._due
        opens, width, step, whole = self._opens, self._width, self._step, self._row
        chosen = []
        for row in range(self._at + 1, self._at + rows + 1):
            for source in waiting.pop(row, ()):
                heappush(ready, (due[source], source))
            _, source = heappop(ready)
            chosen.append(source)
            due[source] += step[source]
            opens[source] += whole
            again = -(-opens[source] // width[source])
            if again <= row + 1:
                heappush(ready, (due[source], source))
            elif again in waiting:
                waiting[again].append(source)
            else:
                waiting[again] = [source]
        self._at += rows
        return np.array(chosen, np.int64)
