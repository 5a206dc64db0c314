"""The schedule of a mixture: which source each row takes, every prefix within one row of the shares.

Rule: R. Tijdeman, "The chairman assignment problem", Discrete Mathematics 32 (1980): among the sources that
are owed at least 1/(2S-2) of a row, the one whose next row falls due first.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from dataflow.errors import PlanError

__all__ = ["Change", "Counts", "Schedule", "whole_weights"]

Int64s = npt.NDArray[np.int64]
Counts = tuple[int, ...]


@dataclass(frozen=True)
class Change:
    """From `counts` (rows of each source so far) on shares are `weights`; `debt` is what was owed then."""

    counts: Counts
    debt: tuple[Fraction, ...]
    weights: tuple[int, ...]

    @property
    def index(self) -> int:
        """The index of the first row under it."""
        return sum(self.counts)


@dataclass(frozen=True)
class Schedule:
    """The changes of weights of one epoch, by rising index; the first is at index 0 with nothing owed."""

    changes: tuple[Change, ...]

    @classmethod
    def fresh(cls, weights: Sequence[int]) -> Schedule:
        """One set of whole weights from the first row on."""
        sources = len(weights)
        return cls((Change((0,) * sources, (Fraction(0),) * sources, tuple(weights)),))

    @property
    def zero(self) -> Counts:
        """The counts in front of the first row."""
        return (0,) * len(self.changes[0].weights)

    def owed(self, counts: Counts) -> tuple[Fraction, ...]:
        """What each source is owed behind `counts`: its due share minus its rows; the sum is 0."""
        change = self._at(sum(counts))
        rows, whole = sum(counts) - change.index, sum(change.weights)
        return tuple(
            debt + Fraction(weight * rows, whole) - (now - then)
            for debt, weight, now, then in zip(
                change.debt, change.weights, counts, change.counts, strict=True
            )
        )

    def run(self, counts: Counts, rows: int) -> tuple[Int64s, Counts]:
        """The sources (int64, (rows,)) of the next `rows` rows, and the counts behind them."""
        sources, now, left = [], list(counts), rows
        while left:
            index = sum(now)
            change = self._at(index)
            behind = min((c.index for c in self.changes if c.index > index), default=index + left)
            step = min(left, behind - index)
            sources.append(_chosen(change.weights, self.owed(tuple(now)), step))
            for source, count in enumerate(np.bincount(sources[-1], minlength=len(now)).tolist()):
                now[source] += count
            left -= step
        return np.concatenate([np.zeros(0, np.int64), *sources]), tuple(now)

    def behind(self, counts: Counts, rows: int) -> Counts:
        """The counts `rows` rows behind `counts`."""
        return self.run(counts, rows)[1]

    def changed(self, furthest: Counts, weights: Sequence[int]) -> Schedule:
        """Other weights from one index behind `furthest` (the counts of the furthest lane) on.

        What the sources are owed there is carried over, so that shares stay within one row over any number of
        changes.
        """
        if tuple(weights) == self.changes[-1].weights:
            return self
        counts = self.behind(furthest, 1)
        return Schedule((*self.changes, Change(counts, self.owed(counts), tuple(weights))))

    def since(self, counts: Counts) -> Schedule:
        """Without the changes that all lanes have passed; `counts` are those of the last lane.

        The first stays: the lanes' starts and the windows' shares come from it.
        """
        first, *rest = self.changes
        passed = sum(change.index <= sum(counts) for change in rest)
        return Schedule((first, *rest[max(0, passed - 1) :]))

    def _at(self, index: int) -> Change:
        return next(change for change in reversed(self.changes) if change.index <= index)


def _chosen(weights: Sequence[int], owed: Sequence[Fraction], rows: int) -> Int64s:
    """The sources of `rows` rows, from what is owed in front of them."""
    sources, whole = len(weights), sum(weights)
    least = Fraction(1, max(1, 2 * sources - 2))
    # Everything over one denominator, so that the loop is whole-number arithmetic: exact, and no reduction of
    # fractions at every row.
    unit = math.lcm(whole, least.denominator, *(debt.denominator for debt in owed))
    due = [int(debt * unit) for debt in owed]
    share = [weight * (unit // whole) for weight in weights]
    floor = int(least * unit)
    # (1 - least - due) / weight is compared by cross-multiplication: over the product of all weights.
    product = math.prod(weights)
    scale = [product // weight for weight in weights]
    room = unit - floor
    out = np.empty(rows, np.int64)
    each = range(sources)
    for row in range(rows):
        best, chosen = 0, -1
        for source in each:
            due[source] += share[source]
            if due[source] >= floor:
                wait = (room - due[source]) * scale[source]
                if chosen < 0 or wait < best:
                    best, chosen = wait, source
        due[chosen] -= unit
        out[row] = chosen
    return out


def whole_weights(weights: Sequence[float | int | Fraction | str]) -> tuple[int, ...]:
    """The least whole numbers in the ratio of `weights`, taken as written: 0.7 is 7/10.

    Raises:
        PlanError: a weight is not a finite number above 0.
    """
    exact = []
    for weight in weights:
        try:
            exact.append(Fraction(repr(weight)) if isinstance(weight, float) else Fraction(weight))
        except (ValueError, OverflowError, ZeroDivisionError, TypeError):
            raise PlanError(f"the weight {weight!r} is not a number.", hint="use numbers above 0") from None
        if exact[-1] <= 0:
            raise PlanError(f"the weight {weight!r} is not above 0.", hint="leave the source out of the mix")
    unit = math.lcm(*(weight.denominator for weight in exact))
    whole = [int(weight * unit) for weight in exact]
    common = math.gcd(*whole)
    return tuple(weight // common for weight in whole)
