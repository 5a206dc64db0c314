"""What a benchmark case is: sides that do the same work, their figures, and the bars for them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

__all__ = ["Bar", "Case", "Figures", "Prepare", "Run", "Side"]

Figures = Mapping[str, float]
# Makes the data of a case, quick (small) or not, and says in which folder it is.
Prepare = Callable[[bool], Path]
# Does one side's work on that data, and says what it has measured.
Run = Callable[[Path, bool], Figures]


@dataclass(frozen=True, kw_only=True)
class Side:
    """One way to do the work of a case.

    `imports` are loaded before the work begins, so that neither time nor memory counts them. `memory` lets the
    peak memory of the process and its children be sampled; sampling costs time, so rates are not taken then.
    `repeats`, where given, is how often at most this side runs, because it is slow or does not vary.
    """

    name: str
    run: Run
    imports: tuple[str, ...] = ()
    memory: bool = False
    repeats: int | None = None


@dataclass(frozen=True, kw_only=True)
class Bar:
    """One figure to report: of a side, or of a side beside another one in the same repeat.

    `how` is "value" (of `side` alone), "ratio" (`side` over `against`) or "difference" (`side` minus `against`).
    Without `at_least` and `at_most` it is shown and not judged.
    """

    label: str
    figure: str
    side: str
    against: str | None = None
    how: Literal["value", "ratio", "difference"] = "value"
    unit: str = ""
    at_least: float | None = None
    at_most: float | None = None

    def met(self, value: float) -> bool | None:
        """Whether `value` reaches the bar; None where there is none."""
        if self.at_least is None and self.at_most is None:
            return None
        low = self.at_least is None or value >= self.at_least
        return low and (self.at_most is None or value <= self.at_most)


@dataclass(frozen=True, kw_only=True)
class Case:
    """Some sides on the same data, and the bars. `name` is that of its file in bench/cases/."""

    name: str
    summary: str
    prepare: Prepare
    sides: tuple[Side, ...]
    bars: tuple[Bar, ...]

    def side(self, name: str) -> Side:
        """The side of that name."""
        return next(side for side in self.sides if side.name == name)
