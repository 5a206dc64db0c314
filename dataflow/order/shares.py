"""The shares of a mixture as they are asked for: fixed, by size, or changing with the samples of an epoch."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from dataflow.order.mixture import Schedule, whole_weights

__all__ = ["BETWEEN", "Between", "Shares"]

Between = Literal["hold", "linear", "cosine"]
BETWEEN = ("hold", "linear", "cosine")

# Steps in which weights go from one point to the next, and in how many parts a share is counted on the way.
_STAGES = 64
_PARTS = 10_000
# A temperature makes roots of sizes: so many parts in all.
_HEATED_PARTS = 1_000_000
# Half a turn, to more digits than the parts need.
_PI = Fraction("3.14159265358979323846")


@dataclass(frozen=True)
class Shares:
    """Weights of the sources at sample numbers of an epoch, those of one before the next.

    `points` are (sample number, weights), the first at 0; none where shares go by size, to the power 1 / `temperature`.
    `between` two points weights stay ("hold"), or go from one to the other in 64 steps, evenly or along a half cosine.
    """

    points: tuple[tuple[int, tuple[Fraction, ...]], ...] = ()
    between: Between = "hold"
    temperature: Fraction = Fraction(1)

    def by_sample(self, sizes: Sequence[int]) -> list[tuple[int, tuple[Fraction, ...]]]:
        """The shares from each sample number on at which they change, of sources of so many rows."""
        if not self.points:
            return [(0, self._by_size(sizes))]
        made = []
        for (start, one), (stop, other) in zip(self.points, self.points[1:], strict=False):
            if self.between == "hold":
                made.append((start, one))
                continue
            for stage in range(_STAGES):
                at = start + (stop - start) * stage // _STAGES
                if not made or at > made[-1][0]:
                    made.append((at, self._amid(_shared(one), _shared(other), Fraction(stage, _STAGES))))
        return [*made, self.points[-1]]

    def _by_size(self, sizes: Sequence[int]) -> tuple[Fraction, ...]:
        if self.temperature == 1:
            return tuple(map(Fraction, sizes))
        most = max(sizes, default=1) or 1
        heated = [(size / most) ** (1 / float(self.temperature)) for size in sizes]
        parts = _HEATED_PARTS / sum(heated)
        # A source that has rows has a share.
        return tuple(
            Fraction(max(1, round(part * parts)) if size else 0)
            for part, size in zip(heated, sizes, strict=True)
        )

    def _amid(
        self, one: Sequence[Fraction], other: Sequence[Fraction], way: Fraction
    ) -> tuple[Fraction, ...]:
        if self.between == "cosine":
            way = (1 - _cosine(_PI * way)) / 2
        mixed = [a + (b - a) * way for a, b in zip(one, other, strict=True)]
        return tuple(Fraction(round(share * _PARTS), _PARTS) for share in mixed)

    def schedule(self, sizes: Sequence[int], lanes: int, samples: int = 1) -> Schedule:
        """The schedule of an epoch.

        Args:
            samples: those of one unit of the points: 1, or B where points are steps.
        """
        first, *later = self.by_sample(sizes)
        planned: dict[int, tuple[int, ...]] = {}
        now = whole_weights(first[1])
        for number, weights in later:
            # Row k of lane l is sample k * lanes + l, or near it, and at index k + l.
            planned[-(-number * samples // lanes)] = whole_weights(weights)
        starts = Schedule.fresh(now, [(at, weights) for at, weights in planned.items() if at])
        return Schedule.fresh(planned[0], starts.planned) if 0 in planned else starts


def _shared(weights: Sequence[Fraction]) -> tuple[Fraction, ...]:
    return tuple(Fraction(weight, sum(weights)) for weight in weights)


def _cosine(angle: Fraction) -> Fraction:
    """Of an angle from 0 to pi, by its series: the same on every machine."""
    terms = [(-1) ** k * angle ** (2 * k) / math.factorial(2 * k) for k in range(14)]
    return Fraction(round(sum(terms) * 10**9), 10**9)
