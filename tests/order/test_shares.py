"""Shares as they are asked for: fixed ones, by size, and those that change with the samples of an epoch."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataflow.order.shares import Between, Shares

F = Fraction


def test_shares_by_size_are_the_sizes() -> None:
    assert Shares().schedule([30, 20, 0], lanes=2).changes[0].weights == (3, 2, 0)


@given(st.lists(st.integers(1, 10**9), min_size=2, max_size=5), st.sampled_from([F(2), F(10, 3), F(100)]))
def test_a_temperature_brings_shares_closer(sizes: list[int], temperature: Fraction) -> None:
    (_, heated), *_ = Shares(temperature=temperature).by_sample(sizes)
    roots = [size ** (1 / float(temperature)) for size in sizes]
    for weight, root in zip(heated, roots, strict=True):
        assert float(weight / sum(heated)) == pytest.approx(root / sum(roots), abs=2e-6)


def test_points_hold_until_the_next_and_are_found_by_lane() -> None:
    shares = Shares(((0, (F(1), F(1))), (1000, (F(3), F(1))), (1001, (F(1), F(3)))))
    schedule = shares.schedule([5, 5], lanes=4)
    assert schedule.changes[0].weights == (1, 1)
    assert schedule.planned == ((250, (3, 1)), (251, (1, 3)))
    assert shares.schedule([5, 5], lanes=4, samples=8).planned == ((2000, (3, 1)), (2002, (1, 3)))


@pytest.mark.parametrize("between", ["linear", "cosine"])
def test_weights_go_from_point_to_point(between: Between) -> None:
    shares = Shares(((0, (F(1), F(0))), (6400, (F(1), F(3)))), between)
    made = dict(shares.by_sample([1, 1]))
    assert len(made) == 65
    assert made[0] == (F(1), F(0))
    assert made[6400] == (F(1), F(3))
    for number, (one, _) in list(made.items())[:-1]:
        way = number / 6400
        way = way if between == "linear" else (1 - math.cos(math.pi * way)) / 2
        assert float(one) == pytest.approx(1 - 0.75 * way, abs=1e-4)


def test_points_close_to_one_another_make_fewer_steps() -> None:
    shares = Shares(((0, (F(1), F(0))), (3, (F(0), F(1)))), "linear")
    assert [number for number, _ in shares.by_sample([1, 1])] == [0, 1, 2, 3]
    assert [index for index, _ in shares.schedule([1, 1], lanes=2).planned] == [1, 2]


def test_a_point_within_the_first_row_of_the_lanes_is_the_first() -> None:
    shares = Shares(((0, (F(1), F(0))), (1, (F(0), F(1)))))
    assert shares.schedule([1, 1], lanes=1).planned == ((1, (0, 1)),)
