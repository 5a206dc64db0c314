"""How many lanes each rank reads, against global batches written out row by row."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataflow.order.batches import Batching
from dataflow.order.reads import lane_reads


def lanes_of_ranks(batch: int, lanes: int, world: int) -> list[set[int]]:
    """The lanes of which each rank has rows in one global batch, its rows sorted by lane and dealt out one by one."""
    rows = [row * lanes // batch for row in range(batch)]
    sizes = [batch // world + (rank < batch % world) for rank in range(world)]
    return [{rows.pop(0) for _ in range(size)} for size in sizes]


@given(st.integers(1, 12), st.integers(1, 8), st.data())
def test_each_rank_reads_the_lanes_of_which_it_has_rows(lanes: int, rows: int, data: st.DataObject) -> None:
    batch = lanes * rows
    world = data.draw(st.integers(1, batch))
    expected = tuple(len(found) for found in lanes_of_ranks(batch, lanes, world))
    assert lane_reads(Batching(batch=batch, lanes=lanes), world) == expected


@given(st.integers(1, 12), st.integers(1, 12), st.integers(1, 3))
def test_they_add_up_to_what_the_design_says_where_both_divide_the_batch(
    lanes: int, world: int, times: int
) -> None:
    batching = Batching(batch=math.lcm(lanes, world) * times, lanes=lanes)
    assert sum(lane_reads(batching, world)) == world + lanes - math.gcd(lanes, world)


@pytest.mark.parametrize(
    ("lanes", "world", "reads"),
    [(4, 2, (2, 2)), (4, 3, (2, 2, 2)), (2, 4, (1, 1, 1, 1)), (3, 2, (2, 2)), (1, 3, (1, 1, 1))],
)
def test_the_lanes_of_each_rank(lanes: int, world: int, reads: tuple[int, ...]) -> None:
    assert lane_reads(Batching(batch=12, lanes=lanes), world) == reads
