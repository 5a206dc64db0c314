"""The deal, against taking rows one by one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataflow.errors import InternalError
from dataflow.order.deal import Deal, Dealt, Stopped, deal, share

LENGTHS = st.lists(st.integers(0, 12), min_size=1, max_size=7)


def one_by_one(lengths: list[int]) -> list[int]:
    """The lane of every row, in the order (row of the lane, lane)."""
    return [lane for _, lane in sorted((row, lane) for lane, n in enumerate(lengths) for row in range(n))]


@given(LENGTHS)
def test_rows_taken_are_those_of_a_deal_row_by_row(lengths: list[int]) -> None:
    known, order = Deal(lengths), one_by_one(lengths)
    assert known.total == len(order)
    for rows in range(len(order) + 1):
        taken = [order[:rows].count(lane) for lane in range(len(lengths))]
        assert known.taken(rows).tolist() == taken


@st.composite
def offers(draw: st.DrawFn) -> tuple[list[int], list[bool], int, int]:
    lanes = draw(st.integers(1, 6))
    give = draw(st.lists(st.integers(0, 6), min_size=lanes, max_size=lanes))
    ended = draw(st.lists(st.booleans(), min_size=lanes, max_size=lanes))
    return give, ended, draw(st.integers(0, lanes - 1)), draw(st.integers(0, 20))


@given(offers())
def test_a_deal_of_offers_goes_round_from_the_turn(case: tuple[list[int], list[bool], int, int]) -> None:
    give, ended, turn, size = case
    counts, lane, passed = [0] * len(give), turn, 0
    stopped: int | None = None
    while sum(counts) < size and passed < len(give) and stopped is None:
        if counts[lane] < give[lane]:
            counts[lane] += 1
            passed = 0
        else:
            stopped = None if ended[lane] else lane
            passed += 1
        lane = (lane + 1) % len(give)
    if stopped is not None:
        assert deal(give, ended, turn, size) == Stopped(stopped)
    else:
        assert deal(give, ended, turn, size) == Dealt(tuple(counts), lane if sum(counts) == size else 0)


@given(LENGTHS, st.lists(st.integers(1, 9), min_size=1, max_size=30))
def test_the_order_of_a_deal_does_not_depend_on_the_batch_size(lengths: list[int], sizes: list[int]) -> None:
    left, turn, rows = list(lengths), 0, 0
    for size in sizes:
        dealt = deal(left, [True] * len(left), turn, size)
        assert isinstance(dealt, Dealt)
        counts, turn = dealt
        left = [n - count for n, count in zip(left, counts, strict=True)]
        rows = min(rows + size, sum(lengths))
        assert [n - rest for n, rest in zip(lengths, left, strict=True)] == Deal(lengths).taken(rows).tolist()


def test_a_lane_that_may_have_more_keeps_the_deal_open_until_it_says_so() -> None:
    assert deal([3, 1], [False, False], 0, 4) == Stopped(1)
    assert deal([3, 1], [False, True], 0, 4) == Dealt((3, 1), 1)
    assert deal([3, 1], [True, False], 0, 3) == Dealt((2, 1), 1)
    assert deal([2, 1], [True, True], 0, 9) == Dealt((2, 1), 0)


@given(st.integers(0, 50), st.integers(1, 9))
def test_shares_are_contiguous_equal_within_one_row_and_the_first_ranks_are_longer(
    size: int, world: int
) -> None:
    parts = [share(size, rank, world) for rank in range(world)]
    assert [a for a, _ in parts] == [0, *(b for _, b in parts[:-1])]
    assert parts[-1][1] == size
    lengths = [b - a for a, b in parts]
    assert lengths == sorted(lengths, reverse=True)
    assert max(lengths) - min(lengths) <= 1


def test_a_deal_without_a_lane_is_an_internal_error() -> None:
    with pytest.raises(InternalError, match="at least one lane"):
        Deal([])
