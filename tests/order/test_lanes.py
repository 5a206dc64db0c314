"""Lanes, from the sentence: row q of lane l is number q * lanes + l, of pass number div rows."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from dataflow.order.lanes import below, borders, pass_of

LANES = st.integers(1, 9)


@given(st.integers(0, 200), LANES)
def test_below_counts_the_numbers_of_each_lane(total: int, lanes: int) -> None:
    numbers = [g % lanes for g in range(total)]
    assert [below(total, lane, lanes) for lane in range(lanes)] == [
        numbers.count(lane) for lane in range(lanes)
    ]


@given(st.integers(1, 40), LANES, st.integers(0, 6))
def test_the_runs_of_a_pass_hold_its_numbers_of_each_lane(rows: int, lanes: int, number: int) -> None:
    mine = [g % lanes for g in range(number * rows, (number + 1) * rows)]
    at = borders(rows, number, lanes).tolist()
    assert at[0] == 0
    assert [b - a for a, b in pairwise(at)] == [mine.count(lane) for lane in range(lanes)]


@given(st.integers(1, 40), LANES, st.integers(0, 4))
def test_the_rows_of_a_lane_go_from_pass_to_pass(rows: int, lanes: int, passes: int) -> None:
    for lane in range(lanes):
        numbers = [g for g in range(rows * passes) if g % lanes == lane]
        seen: dict[int, int] = {}
        for row, number in enumerate(numbers):
            of_pass = number // rows
            assert pass_of(row, lane, lanes, rows) == (of_pass, seen.get(of_pass, 0))
            seen[of_pass] = seen.get(of_pass, 0) + 1


def test_the_longer_runs_go_round() -> None:
    runs = [borders(5, number, 4).tolist() for number in range(4)]
    assert runs == [[0, 2, 3, 4, 5], [0, 1, 3, 4, 5], [0, 1, 2, 4, 5], [0, 1, 2, 3, 5]]
