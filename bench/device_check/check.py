"""Check: one figure of a device with its bar; and the verdict on it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

__all__ = ["Check", "Noted", "Verdict", "run_checks"]


class Noted(NamedTuple):
    """A figure, and a word on it."""

    figure: float
    note: str


@dataclass(frozen=True, kw_only=True)
class Check:
    """`measure` takes the figure, in `unit`; without `at_least` and `at_most` it is shown and not judged."""

    name: str
    measure: Callable[[], float | Noted]
    unit: str = ""
    at_least: float | None = None
    at_most: float | None = None


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What a check came to; `measured` is None where there is no figure, and `note` says why."""

    check: Check
    measured: float | None = None
    note: str = ""

    @property
    def ok(self) -> bool:
        """Whether there is a figure, and it reaches its bar."""
        if self.measured is None:
            return False
        low, high = self.check.at_least, self.check.at_most
        # Written so that what is not a number reaches no bar.
        return (low is None or self.measured >= low) and (high is None or self.measured <= high)


def run_checks(checks: Sequence[Check]) -> Iterator[Verdict]:
    """Run checks one by one; an exception in one is its verdict, and the next one runs."""
    for check in checks:
        try:
            found = check.measure()
        except Exception as error:  # whatever it is, the other checks are to be heard
            yield Verdict(check=check, note=f"{type(error).__name__}: {error}")
            continue
        figure, note = found if isinstance(found, Noted) else (found, "")
        yield Verdict(check=check, measured=figure, note=note)
