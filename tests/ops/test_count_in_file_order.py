"""`take`, `skip`, `repeat`: rows counted in file order."""

from __future__ import annotations

from typing import Any

import pytest
from gathered import numbers, values
from hypothesis import given
from hypothesis import strategies as st

import dataflow as flow
from dataflow.errors import PlanError


@given(st.lists(st.tuples(st.sampled_from(["take", "skip"]), st.integers(0, 25)), max_size=4))
def test_take_and_skip_are_slices(steps: list[tuple[str, int]]) -> None:
    pipe, want = flow.concat(numbers(12), numbers(8, first=12)), list(range(20))
    for verb, count in steps:
        pipe = getattr(pipe, verb)(count)
        want = want[:count] if verb == "take" else want[count:]
    assert pipe.count() == len(want)
    if want:
        assert values(pipe) == want
        assert sorted(values(pipe.shuffle(3))) == want


def test_take_counts_behind_a_filter_by_expression() -> None:
    odd = numbers().filter([("x", "in", list(range(1, 20, 2)))])
    assert values(odd.take(3)) == [1, 3, 5]
    assert values(odd.skip(8)) == [17, 19]
    assert values(odd.take(3).filter([("x", ">", 1)])) == [3, 5]


def test_take_of_a_shuffle_and_shuffle_of_a_take_differ() -> None:
    assert sorted(values(numbers().take(5).shuffle(3))) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    "pipe",
    [
        lambda: numbers().shuffle(3).take(5),
        lambda: numbers().repeat(2).skip(5),
        lambda: numbers().filter(lambda row: True).take(5),
        lambda: numbers().shuffle(3).shuffle(4),
        lambda: numbers().repeat(2).shuffle(4),
    ],
)
def test_steps_that_do_not_go_behind_one_another_are_plan_errors_with_a_hint(pipe: Any) -> None:
    with pytest.raises(PlanError) as caught:
        pipe().batch(1).loader()
    assert caught.value.hint


@pytest.mark.parametrize("count", [-1, 1.5, "3", None, True])
@pytest.mark.parametrize("verb", ["take", "skip", "repeat"])
def test_what_is_no_number_of_rows_or_passes_is_a_plan_error_when_written(verb: str, count: Any) -> None:
    with pytest.raises(PlanError, match=verb) as caught:
        getattr(numbers(), verb)(count)
    assert "whole number" in caught.value.hint


def test_repeat_goes_through_all_rows_in_another_order_each_time() -> None:
    found = values(numbers().shuffle(20).repeat(3))
    passes = [found[at : at + 20] for at in (0, 20, 40)]
    assert all(sorted(part) == list(range(20)) for part in passes)
    assert len({tuple(part) for part in passes}) == 3


def test_passes_count_on_over_epochs() -> None:
    # Pass p of epoch e is pass e * n + p of one long row of passes.
    twice = [values(numbers().shuffle(20).repeat(2), epoch=epoch) for epoch in range(2)]
    once = [values(numbers().shuffle(20), epoch=epoch) for epoch in range(4)]
    assert [*twice[0], *twice[1]] == [value for epoch in once for value in epoch]


def test_repeats_of_repeats_multiply() -> None:
    assert numbers().repeat(2).repeat(3).count() == 120
    assert values(numbers(3).repeat(2).repeat(2)) == [0, 1, 2] * 4


def test_repeat_zero_is_a_plan_error() -> None:
    with pytest.raises(PlanError, match="repeat"):
        numbers().repeat(0)


def test_an_empty_take_has_no_batch() -> None:
    with pytest.raises(PlanError, match="0 rows"):
        numbers().take(0).batch(1).loader()
