"""Medians, spreads and bars."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.case import Bar, Case, Figures, Need, Side
from bench.judge import judge, spread
from bench.run import Runs


def runs(bar: Bar, **figures: list[float]) -> Runs:
    def unused(folder: Path, quick: bool) -> Figures:
        raise AssertionError

    sides = tuple(Side(name=name, run=unused) for name in figures)
    case = Case(name="case", summary="", prepare=lambda quick: Path(), sides=sides, bars=(bar,))
    return Runs(case, {name: [{"rate": value} for value in values] for name, values in figures.items()})


@given(st.lists(st.floats(-1e9, 1e9), min_size=1))
def test_the_median_lies_within_the_spread(values: list[float]) -> None:
    found = spread(values)
    assert found.low == min(values)
    assert found.high == max(values)
    assert found.low <= found.median <= found.high
    assert sum(value <= found.median for value in values) * 2 >= len(values)
    assert sum(value >= found.median for value in values) * 2 >= len(values)


@pytest.mark.parametrize(("how", "values"), [("ratio", (2.0, 1.0, 3.0)), ("difference", (10.0, 0.0, 20.0))])
def test_sides_are_compared_within_the_same_repeat(how: str, values: tuple[float, ...]) -> None:
    bar = Bar(label="", figure="rate", side="mine", against="theirs", how=how)  # type: ignore[arg-type]
    (judged,) = judge(runs(bar, mine=[20, 10, 30], theirs=[10, 10, 10]))
    assert (judged.value.median, judged.value.low, judged.value.high) == values
    assert judged.met is None


def test_a_side_that_ran_less_often_is_compared_by_its_last_run() -> None:
    bar = Bar(label="", figure="rate", side="mine", against="theirs", how="ratio")
    (judged,) = judge(runs(bar, mine=[20, 40, 60], theirs=[10, 20]))
    assert (judged.value.low, judged.value.median, judged.value.high) == (2, 2, 3)


@pytest.mark.parametrize(
    ("at_least", "at_most", "value", "met"),
    [
        (0.75, None, 0.75, True),
        (0.75, None, 0.74, False),
        (None, 50.0, 50.0, True),
        (None, 50.0, 50.1, False),
        (1.0, 2.0, 1.5, True),
        (1.0, 2.0, 2.5, False),
        (None, None, 1.5, None),
    ],
)
def test_a_bar_is_met_at_its_bounds_and_between_them(
    at_least: float | None, at_most: float | None, value: float, met: bool | None
) -> None:
    bar = Bar(label="", figure="rate", side="mine", at_least=at_least, at_most=at_most)
    (judged,) = judge(runs(bar, mine=[value, value, value]))
    assert judged.met is met


def test_bars_about_a_side_that_was_left_out_are_left_out() -> None:
    bars = [
        Bar(label="mine", figure="rate", side="mine"),
        Bar(label="theirs", figure="rate", side="theirs"),
        Bar(label="ratio", figure="rate", side="mine", against="theirs", how="ratio", at_least=1),
    ]
    ran = runs(bars[0], mine=[1.0])
    left_out = Runs(replace(ran.case, bars=tuple(bars)), ran.figures, {"theirs": Need("tensorflow", "all")})
    assert [judged.bar.label for judged in judge(left_out)] == ["mine"]
