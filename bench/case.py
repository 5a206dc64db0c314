"""What a benchmark case is: sides that do the same work, their figures, and the bars for them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

__all__ = ["Bar", "Case", "Figures", "Need", "Prepare", "Run", "Side"]

Figures = Mapping[str, float]
# Makes the data of a case, quick (small) or not, and says in which folder it is.
Prepare = Callable[[bool], Path]
# Does one side's work on that data, and says what it has measured.
Run = Callable[[Path, bool], Figures]


@dataclass(frozen=True)
class Need:
    """A module that not everybody has installed, and the extra of ours that brings it."""

    module: str
    extra: str

    @property
    def met(self) -> bool:
        """Whether it is installed."""
        try:
            return find_spec(self.module) is not None
        except ModuleNotFoundError:
            return False  # the package that it lies in is not


@dataclass(frozen=True, kw_only=True)
class Side:
    """One way to do the work of a case.

    `imports` are loaded before the work begins, so that neither time nor memory counts them. `memory` lets the
    peak memory of the process and its children be sampled; sampling costs time, so rates are not taken then.
    `repeats`, where given, is how often at most this side runs, because it is slow or does not vary. A side is left
    out, and so are the bars about it, where one of its `needs` is not installed.
    """

    name: str
    run: Run
    imports: tuple[str, ...] = ()
    memory: bool = False
    repeats: int | None = None
    needs: tuple[Need, ...] = ()


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
    """Some sides on the same data, and the bars. `name` is that of its file in bench/cases/.

    `needs` are those of the data, and so of every side.
    """

    name: str
    summary: str
    prepare: Prepare
    sides: tuple[Side, ...]
    bars: tuple[Bar, ...]
    needs: tuple[Need, ...] = ()

    def side(self, name: str) -> Side:
        """The side of that name."""
        return next(side for side in self.sides if side.name == name)

    def lacking(self, side: Side) -> Need | None:
        """What is not installed and this side needs."""
        return next((need for need in (*self.needs, *side.needs) if not need.met), None)
