"""The schedule of a mixture: shares within one row, and changes without loss."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataflow.errors import PlanError
from dataflow.order.mixture import Change, Schedule, whole_weights

WEIGHTS = st.lists(st.integers(1, 30), min_size=1, max_size=6)


def rows_of(schedule: Schedule, count: int) -> list[int]:
    return [int(source) for source in schedule.run(schedule.zero, count)[0]]


@st.composite
def changed(draw: st.DrawFn) -> Schedule:
    """A schedule whose weights change a few times, each time behind the furthest lane."""
    weights = draw(WEIGHTS)
    schedule, counts = Schedule.fresh(weights), (0,) * len(weights)
    for _ in range(draw(st.integers(0, 3))):
        counts = schedule.behind(counts, draw(st.integers(0, 40)))
        again = draw(st.lists(st.integers(1, 30), min_size=len(weights), max_size=len(weights)))
        schedule = schedule.changed(counts, again)
    return schedule


@given(WEIGHTS)
def test_every_prefix_is_within_tijdemans_bound_of_the_shares(weights: list[int]) -> None:
    whole, sources = sum(weights), len(weights)
    bound = 1 - Fraction(1, 2 * sources - 2) if sources > 1 else Fraction(0)
    counts = [0] * sources
    for index, source in enumerate(rows_of(Schedule.fresh(weights), 2 * whole)):
        counts[source] += 1
        for count, weight in zip(counts, weights, strict=True):
            assert abs(count - Fraction(weight * (index + 1), whole)) <= bound


@given(WEIGHTS)
def test_the_schedule_has_the_period_of_its_weights(weights: list[int]) -> None:
    whole = sum(weights)
    order = rows_of(Schedule.fresh(weights), 2 * whole)
    assert order[:whole] == order[whole:]
    assert [order[:whole].count(source) for source in range(len(weights))] == weights


def test_the_largest_deficit_rule_would_be_off_here_and_this_is_not() -> None:
    weights = [100, 100, 3, 1, 1]
    counts, worst = [0] * 5, Fraction(0)
    for index, source in enumerate(rows_of(Schedule.fresh(weights), 500)):
        counts[source] += 1
        shares = (Fraction(w * (index + 1), 205) for w in weights)
        worst = max(worst, *(abs(c - s) for c, s in zip(counts, shares, strict=True)))
    assert worst <= Fraction(7, 8)


@given(changed(), st.integers(0, 60), st.integers(0, 60))
def test_the_schedule_goes_on_from_any_counts(schedule: Schedule, first: int, then: int) -> None:
    counts = schedule.behind(schedule.zero, first)
    order = rows_of(schedule, first + then)
    assert counts == tuple(order[:first].count(s) for s in range(len(counts)))
    assert schedule.run(counts, then)[0].tolist() == order[first:]


@given(changed())
def test_shares_stay_within_one_row_over_all_changes(schedule: Schedule) -> None:
    counts = schedule.zero
    due = [Fraction(0)] * len(counts)
    for index in range(150):
        weights = next(c.weights for c in reversed(schedule.changes) if c.index <= index)
        counts = schedule.behind(counts, 1)
        due = [d + Fraction(w, sum(weights)) for d, w in zip(due, weights, strict=True)]
        assert all(abs(d - c) < 1 for d, c in zip(due, counts, strict=True))
        assert schedule.owed(counts) == tuple(d - c for d, c in zip(due, counts, strict=True))


@given(WEIGHTS, st.integers(0, 50), st.data())
def test_a_change_leaves_the_past_of_the_furthest_lane_as_it_was(
    weights: list[int], index: int, data: st.DataObject
) -> None:
    schedule = Schedule.fresh(weights)
    again = data.draw(st.lists(st.integers(1, 30), min_size=len(weights), max_size=len(weights)))
    new = schedule.changed(schedule.behind(schedule.zero, index), again)
    assert rows_of(new, index + 1) == rows_of(schedule, index + 1)
    assert (new is schedule) == (again == weights)


@given(changed(), st.integers(0, 120))
def test_changes_that_all_lanes_have_passed_are_not_needed(schedule: Schedule, index: int) -> None:
    counts = schedule.behind(schedule.zero, index)
    short = schedule.since(counts)
    assert short.run(counts, 80)[0].tolist() == schedule.run(counts, 80)[0].tolist()
    assert short.changes[0] == schedule.changes[0]
    assert len(short.changes) <= 1 + sum(c.index > index for c in schedule.changes[1:]) + 1


def test_a_schedule_stays_what_it_was() -> None:
    assert rows_of(Schedule.fresh([7, 3]), 10) == [0, 1, 0, 0, 0, 1, 0, 0, 1, 0]
    assert rows_of(Schedule.fresh([5, 3, 2]), 10) == [0, 1, 0, 2, 0, 1, 0, 2, 1, 0]


@pytest.mark.parametrize(
    ("weights", "whole"),
    [
        ([0.7, 0.3], (7, 3)),
        ([0.1, 0.2], (1, 2)),
        ([1e-3, 1], (1, 1000)),
        ([2, 4], (1, 2)),
        (["1/3", Fraction(1, 6)], (2, 1)),
        ([0, 3, 1.5], (0, 2, 1)),
    ],
)
def test_weights_are_taken_as_they_are_written(
    weights: list[float | int | str | Fraction], whole: tuple[int, ...]
) -> None:
    assert whole_weights(weights) == whole


@pytest.mark.parametrize("weight", [-1, -0.5, float("nan"), float("inf"), "much", "1/0"])
def test_a_weight_that_is_none_is_an_error(weight: float | str) -> None:
    with pytest.raises(PlanError, match="hint: use numbers above 0"):
        whole_weights([1, weight])


def test_weights_that_are_all_0_are_an_error() -> None:
    with pytest.raises(PlanError, match=r"the weights \[0, 0.0\] are all 0.*\n  hint: use numbers above 0"):
        whole_weights([0, 0.0])


@given(changed(), st.integers(0, 40), st.data())
def test_a_source_whose_weight_becomes_0_is_not_taken_again_and_the_others_keep_their_shares(
    schedule: Schedule, index: int, data: st.DataObject
) -> None:
    counts = schedule.behind(schedule.zero, index)
    sources = len(counts)
    weights = data.draw(st.lists(st.integers(0, 9), min_size=sources, max_size=sources).filter(any))
    change = Change.carrying(counts, schedule.owed(counts), weights)
    assert sum(change.debt) == 0
    after = Schedule((*(c for c in schedule.changes if c.index < change.index), change))
    taken = after.run(counts, 60)[0].tolist()
    for source, weight in enumerate(weights):
        rows = taken.count(source)
        assert abs(rows - Fraction(60 * weight, sum(weights))) < 1 + sources if weight else rows == 0
