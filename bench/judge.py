"""From the figures of all repeats to medians, spreads and bars."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from bench.case import Bar, Figures
from bench.run import Runs

__all__ = ["Judged", "Spread", "judge", "spread"]


@dataclass(frozen=True)
class Spread:
    """The median of some repeats, the lowest and the highest."""

    median: float
    low: float
    high: float


@dataclass(frozen=True)
class Judged:
    """What a bar came to: `met` is None where there is no bar."""

    bar: Bar
    value: Spread
    met: bool | None


def spread(values: Sequence[float]) -> Spread:
    """Median, lowest and highest of at least one value."""
    return Spread(statistics.median(values), min(values), max(values))


def judge(runs: Runs) -> list[Judged]:
    """Every bar of a case, each compared within the same repeat; a side that ran less often pairs its last run.

    Those about a side that was left out are left out.
    """
    judged = []
    for bar in runs.case.bars:
        if not {bar.side, bar.against or bar.side} <= runs.figures.keys():
            continue
        value = spread(_values(bar, runs))
        judged.append(Judged(bar, value, bar.met(value.median)))
    return judged


def _values(bar: Bar, runs: Runs) -> list[float]:
    own = runs.figures[bar.side]
    if bar.against is None:
        return [figures[bar.figure] for figures in own]
    other = runs.figures[bar.against]
    count = max(len(own), len(other))
    pairs = [(_at(own, number)[bar.figure], _at(other, number)[bar.figure]) for number in range(count)]
    if bar.how == "difference":
        return [mine - theirs for mine, theirs in pairs]
    return [mine / theirs if theirs else float("inf") for mine, theirs in pairs]


def _at(figures: Sequence[Figures], number: int) -> Figures:
    return figures[min(number, len(figures) - 1)]
