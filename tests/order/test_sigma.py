"""σ as it is kept: the same sequence whatever is asked of it first, in periods and through changes of weights."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dataflow.order.mixture import Change, Schedule
from dataflow.order.sigma import Sigma

WEIGHTS = st.lists(st.integers(1, 30), min_size=1, max_size=6)


@st.composite
def schedules(draw: st.DrawFn) -> Schedule:
    """Weights that change at a few planned rows, to 0 as well."""
    weights = draw(WEIGHTS)
    some = st.lists(st.integers(0, 9), min_size=len(weights), max_size=len(weights)).filter(any)
    at = sorted(draw(st.sets(st.integers(1, 90), max_size=3)))
    return Schedule.fresh(weights, [(index, tuple(draw(some))) for index in at])


def in_full(schedule: Schedule, rows: int) -> list[int]:
    """The sequence by the rule alone, change by change."""
    sequence: list[int] = []
    points = [*schedule.planned, (rows, schedule.changes[0].weights)]
    change = schedule.changes[0]
    for index, weights in points:
        part = Schedule((change,)).run(change.counts, max(0, min(index, rows) - change.index))
        sequence += part[0].tolist()
        change = Change.carrying(part[1], change.owed(part[1]), weights)
    return sequence[:rows]


@given(schedules(), st.lists(st.tuples(st.integers(0, 300), st.integers(0, 60)), min_size=1, max_size=5))
def test_whatever_is_asked_first_the_sequence_is_that_of_the_rule(
    schedule: Schedule, asked: list[tuple[int, int]]
) -> None:
    whole = in_full(schedule, 360)
    sigma = Sigma(schedule)
    for start, rows in asked:
        assert sigma.run(start, start + rows).tolist() == whole[start : start + rows]
        assert sigma.counts(start).tolist() == np.bincount(whole[:start], minlength=sigma.sources).tolist()


@given(schedules(), st.data())
def test_the_rows_of_each_source_are_found(schedule: Schedule, data: st.DataObject) -> None:
    whole = in_full(schedule, 300)
    sigma = Sigma(schedule)
    for source in data.draw(st.permutations(range(sigma.sources))):
        places = [index for index, taken in enumerate(whole) if taken == source]
        for number in data.draw(st.permutations(range(len(places)))):
            assert sigma.nth(source, number) == places[number]


def test_a_source_without_a_weight_at_the_end_has_a_last_row() -> None:
    sigma = Sigma(Schedule.fresh([1, 1], [(10, (1, 0))]))
    assert sigma.nth(1, 4) == 9
    assert sigma.nth(1, 5) is None


@given(schedules(), st.integers(0, 120))
def test_it_goes_on_from_counts_in_the_middle(schedule: Schedule, index: int) -> None:
    whole = Sigma(schedule)
    known = Schedule(whole.changes(index), schedule.planned)
    counts = tuple(whole.counts(index).tolist())
    later = Sigma(known.begun_at(counts))
    assert later.run(index, index + 200).tolist() == whole.run(index, index + 200).tolist()
    assert later.run(0, 5).tolist() == whole.run(0, 5).tolist() or index < 5
    change = known.changes[-1]
    assert all(abs(debt) < 1 for debt in change.owed(counts)) or len(known.changes) > 1


def test_planned_changes_are_told_with_their_counts() -> None:
    sigma = Sigma(Schedule.fresh([1, 1], [(10, (3, 1)), (1000, (1, 3))]))
    assert [change.counts for change in sigma.changes(500)] == [(0, 0), (5, 5)]
    assert sigma.changes(500)[1].weights == (3, 1)


def test_weights_of_a_long_period_are_worked_out_row_by_row() -> None:
    weights = [10**15 + 7, 3 * 10**15 + 1, 10**12]
    sigma = Sigma(Schedule.fresh(weights))
    rows = sigma.run(20_000, 20_400)
    counts = sigma.counts(20_400)
    assert (counts - sigma.counts(20_000)).tolist() == np.bincount(rows, minlength=3).tolist()
    for count, weight in zip(counts.tolist(), weights, strict=True):
        assert abs(count - Fraction(weight * 20_400, sum(weights))) < 1


def test_a_thousand_sources_of_one_weight_each_come_once_in_a_thousand_rows() -> None:
    sigma = Sigma(Schedule.fresh([1] * 1000))
    assert sorted(sigma.run(5000, 6000).tolist()) == list(range(1000))
    assert sigma.counts(10**9 + 1).sum() == 10**9 + 1
