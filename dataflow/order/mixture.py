"""The schedule of a mixture: which shares hold from which row on, and what each source is owed there.

It is one sequence of sources for all lanes; `chairman.py` is its rule, and `sigma.py` works it out.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from dataflow.errors import PlanError
from dataflow.order.chairman import Chairman

__all__ = ["Change", "Counts", "Schedule", "whole_weights"]

Int64s = npt.NDArray[np.int64]
Counts = tuple[int, ...]
Weights = tuple[int, ...]


@dataclass(frozen=True)
class Change:
    """From `counts` (rows of each source so far) on shares are `weights`; `debt` is what was owed then."""

    counts: Counts
    debt: tuple[Fraction, ...]
    weights: Weights

    @classmethod
    def carrying(cls, counts: Sequence[int], owed: Sequence[Fraction], weights: Sequence[int]) -> Change:
        """Other weights, what was owed carried over; what is owed a source that has none now goes to the others."""
        whole = sum(weights)
        left = sum(debt for debt, weight in zip(owed, weights, strict=True) if not weight)
        debts = [
            debt + Fraction(left * weight, whole) if weight else Fraction(0)
            for debt, weight in zip(owed, weights, strict=True)
        ]
        return cls(tuple(counts), tuple(debts), tuple(weights))

    @property
    def index(self) -> int:
        """The index of the first row under it."""
        return sum(self.counts)

    def owed(self, counts: Sequence[int]) -> tuple[Fraction, ...]:
        """What each source is owed behind `counts`, which are at or behind this change; the sum is 0."""
        rows, whole = sum(counts) - self.index, sum(self.weights)
        return tuple(
            debt + Fraction(weight * rows, whole) - (now - then)
            for debt, weight, now, then in zip(self.debt, self.weights, counts, self.counts, strict=True)
        )

    def with_sources(self, places: Sequence[int], sources: int) -> Change:
        """The same change where its source s is number `places[s]` of so many sources."""
        counts, debt, weights = [0] * sources, [Fraction(0)] * sources, [0] * sources
        for place, values in zip(places, zip(self.counts, self.debt, self.weights, strict=True), strict=True):
            counts[place], debt[place], weights[place] = values
        return Change(tuple(counts), tuple(debt), tuple(weights))


@dataclass(frozen=True)
class Schedule:
    """The changes of weights of one epoch, by rising index; the first is at index 0 with nothing owed.

    `planned` are further ones, as (index, weights), whose counts follow from those in front of them.
    """

    changes: tuple[Change, ...]
    planned: tuple[tuple[int, Weights], ...] = ()

    @classmethod
    def fresh(cls, weights: Sequence[int], planned: Sequence[tuple[int, Weights]] = ()) -> Schedule:
        """Weights from the first row on, and others from later ones on."""
        sources = len(weights)
        first = Change((0,) * sources, (Fraction(0),) * sources, tuple(weights))
        return cls((first,), tuple(planned))

    @property
    def zero(self) -> Counts:
        """The counts in front of the first row."""
        return (0,) * len(self.changes[0].weights)

    def owed(self, counts: Counts) -> tuple[Fraction, ...]:
        """What each source is owed behind `counts`: its due share minus its rows; the sum is 0."""
        return self._at(sum(counts)).owed(counts)

    def run(self, counts: Counts, rows: int) -> tuple[Int64s, Counts]:
        """The sources (int64, (rows,)) of the next `rows` rows, and the counts behind them; planned changes apart."""
        sources, now, left = [], list(counts), rows
        while left:
            index = sum(now)
            change = self._at(index)
            behind = min((c.index for c in self.changes if c.index > index), default=index + left)
            step = min(left, behind - index)
            sources.append(Chairman(change.weights, change.owed(now)).take(step))
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
        if tuple(weights) == self._at(sum(furthest) + 1).weights:
            return self
        counts = self.behind(furthest, 1)
        return Schedule((*self.changes, Change.carrying(counts, self.owed(counts), weights)))

    def since(self, counts: Counts) -> Schedule:
        """Without the changes that all lanes have passed; `counts` are those of the last lane.

        The first stays: the lanes' starts and the windows' shares come from it.
        """
        first, *rest = self.changes
        passed = sum(change.index <= sum(counts) for change in rest)
        return Schedule((first, *rest[max(0, passed - 1) :]), self.planned)

    def begun_at(self, counts: Counts) -> Schedule:
        """The same schedule, which need not be run from its start to be known from `counts` on."""
        at = self._at(sum(counts))
        if at.index == sum(counts):
            return self
        here = Change(counts, at.owed(counts), at.weights)
        known = sorted((*self.changes, here), key=lambda change: change.index)
        return Schedule(tuple(known), self.planned)

    def _at(self, index: int) -> Change:
        return next(change for change in reversed(self.changes) if change.index <= index)


def whole_weights(weights: Sequence[float | int | Fraction | str]) -> Weights:
    """The least whole numbers in the ratio of `weights`, taken as written: 0.7 is 7/10.

    Raises:
        PlanError: a weight is not a finite number from 0 up, or none is above 0.
    """
    exact = []
    for weight in weights:
        try:
            exact.append(Fraction(repr(weight)) if isinstance(weight, float) else Fraction(weight))
        except (ValueError, OverflowError, ZeroDivisionError, TypeError):
            raise PlanError(f"the weight {weight!r} is not a number.", hint="use numbers above 0") from None
        if exact[-1] < 0:
            raise PlanError(f"the weight {weight!r} is below 0.", hint="use numbers above 0")
    if not any(exact):
        raise PlanError(f"the weights {list(weights)} are all 0.", hint="use numbers above 0")
    unit = math.lcm(*(weight.denominator for weight in exact))
    whole = [int(weight * unit) for weight in exact]
    common = math.gcd(*whole)
    return tuple(weight // common for weight in whole)
