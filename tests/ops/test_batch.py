"""`batch`: sizes, lanes, remainders, and what may stand behind it."""

from __future__ import annotations

from typing import Any

import pytest
from gathered import numbers

import dataflow as flow
from dataflow.errors import PlanError


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"size": 0}, "size=0"),
        ({"size": -4}, "size=-4"),
        ({"size": 2.5}, "size=2.5"),
        ({"size": True}, "size=True"),
        ({"global_size": 0}, "global_size=0"),
        ({"size": 4, "global_size": 8}, "exactly one"),
        ({}, "exactly one"),
        ({"size": 4, "lanes": 0}, "lanes=0"),
        ({"size": 4, "remainder": "wrap"}, "wrap"),
    ],
)
def test_a_wrong_size_is_a_plan_error_when_written(arguments: dict[str, Any], named: str) -> None:
    with pytest.raises(PlanError, match=named) as caught:
        numbers().batch(**arguments)
    assert caught.value.hint


@pytest.mark.parametrize(
    "step",
    [
        lambda pipe: pipe.map(dict), lambda pipe: pipe.filter(lambda row: True), lambda pipe: pipe.shuffle(3),
        lambda pipe: pipe.take(3), lambda pipe: pipe.skip(3), lambda pipe: pipe.repeat(2),
        lambda pipe: pipe.flat_map(lambda row: [row]),
        lambda pipe: pipe.split({"a": 0.5})["a"],
    ],
)  # fmt: skip
def test_steps_on_rows_behind_batch_are_plan_errors_when_written(step: Any) -> None:
    with pytest.raises(PlanError, match="behind batch") as caught:
        step(numbers().batch(4))
    assert "before .batch" in caught.value.hint


def test_columns_may_still_be_chosen_and_named_behind_batch() -> None:
    pipe = flow.from_columns({"x": [1, 2], "y": [3, 4], "z": [5, 6]}).batch(2)
    with pipe.drop("z").rename({"x": "a"}).select("y", "a").loader(output="numpy") as loader:
        (batch,) = list(loader)
    assert {name: column.tolist() for name, column in batch.items()} == {"y": [3, 4], "a": [1, 2]}


@pytest.mark.parametrize(("remainder", "sizes"), [("drop", [8, 8]), ("keep", [8, 8, 4]), ("pad", [8, 8, 8])])
def test_remainders(remainder: Any, sizes: list[int]) -> None:
    with numbers(20).batch(8, remainder=remainder).loader(output="numpy") as loader:
        assert len(loader) == len(sizes)
        assert [len(batch["x"]) for batch in loader] == sizes


def test_pad_marks_real_rows_in_every_batch() -> None:
    with numbers(20).batch(8, remainder="pad").loader(output="numpy") as loader:
        batches = list(loader)
    assert [batch["__valid__"].sum() for batch in batches] == [8, 8, 4]
    assert batches[-1]["x"].tolist() == [16, 16, 17, 17, 18, 18, 19, 19]


def test_pad_with_nothing_left_adds_no_batch() -> None:
    with numbers(16).batch(8, remainder="pad").loader(output="numpy") as loader:
        assert [batch["x"].tolist() for batch in loader] == [list(range(8)), list(range(8, 16))]


def test_a_second_batch_is_an_error_that_says_there_is_one() -> None:
    with pytest.raises(PlanError, match="stands behind batch") as caught:
        flow.from_columns({"x": [1]}).batch(8).batch(8)
    assert caught.value.hint == "leave one of the two out: a pipeline has one size of batches"
