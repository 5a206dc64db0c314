"""The lanes that a rank may read from: none that it ever needs is missing, and there are few of them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from dataflow.order.batches import split
from dataflow.order.deal import Dealt, deal
from dataflow.order.reach import reach

worlds = st.integers(1, 9).flatmap(lambda world: st.tuples(st.just(world), st.integers(0, world - 1)))


@given(st.integers(1, 12), st.integers(1, 60), worlds)
def test_a_rank_reads_from_exactly_the_lanes_in_its_reach_whoever_begins(
    lanes: int, rows: int, ranks: tuple[int, int]
) -> None:
    world, rank = ranks
    read: set[int] = set()
    for turn in range(lanes):
        settled = deal([rows + 1] * lanes, [False] * lanes, turn, rows)
        assert isinstance(settled, Dealt)
        share = split(settled.counts, [0] * lanes, rows, rank, world)
        read |= {part.lane for part in share.parts}
    assert set(reach(lanes, rows, rank, world)) == read


def test_ranks_that_divide_the_lanes_reach_only_their_own() -> None:
    assert [reach(8, 24, rank, 4) for rank in range(4)] == [range(2 * r, 2 * r + 2) for r in range(4)]


def test_a_lane_on_the_border_of_two_ranks_is_in_the_reach_of_both() -> None:
    assert [reach(3, 12, rank, 2) for rank in range(2)] == [range(2), range(1, 3)]


def test_one_lane_is_in_the_reach_of_every_rank() -> None:
    assert [reach(1, 12, rank, 3) for rank in range(3)] == [range(1)] * 3
