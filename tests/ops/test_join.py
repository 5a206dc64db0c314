"""`concat` and `zip`: rows behind and beside one another."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from gathered import numbers, rows, values
from hypothesis import given, settings
from hypothesis import strategies as st

import dataflow as flow
from dataflow.errors import PlanError


def test_concat_gives_the_rows_of_each_input_in_turn() -> None:
    assert values(flow.concat(numbers(3), numbers(2, first=10), numbers(1, first=20))) == [
        0,
        1,
        2,
        10,
        11,
        20,
    ]
    assert values(flow.concat(numbers(3))) == [0, 1, 2]


def test_sources_are_numbered_by_first_appearance_and_one_used_twice_is_one_source() -> None:
    one, two = numbers(2), numbers(2, first=10)
    with flow.concat(one, two, one).batch(1).loader(output="numpy", ids=True) as loader:
        ids = [int(batch["__id__"][0]) for batch in loader]
    assert ids == [0, 1, 1 << 40, 1 << 40 | 1, 0, 1]


@given(window=st.integers(1, 60), sizes=st.lists(st.integers(1, 20), min_size=2, max_size=4))
@settings(max_examples=25)
def test_a_shuffle_behind_concat_mixes_the_fragments_of_all(window: int, sizes: list[int]) -> None:
    pipe = flow.concat(*(numbers(size, first=100 * place) for place, size in enumerate(sizes)))
    want = [100 * place + row for place, size in enumerate(sizes) for row in range(size)]
    assert values(pipe) == want
    assert sorted(values(pipe.shuffle(window))) == want


def test_columns_and_types_of_concat_are_brought_together_or_refused() -> None:
    whole, half = numbers(2), flow.from_columns({"x": np.array([0.5])})
    assert flow.concat(whole, half).schema == pa.schema([("x", pa.float64())])
    assert values(flow.concat(whole, half)) == [0.0, 1.0, 0.5]
    with pytest.raises(PlanError, match=r"columns \['x', 'y'\]"):
        flow.concat(whole, numbers(2, column="y"))
    with pytest.raises(PlanError, match="types"):
        flow.concat(whole, flow.from_columns({"x": ["text"]}))


def test_parts_may_be_made_by_different_functions() -> None:
    plus = numbers(10).map(lambda row: {"x": row["x"] + 100}, schema={"x": "int64"})
    odd = numbers(10).filter([("x", "in", [1, 3, 5])])
    found = values(flow.concat(plus, odd).shuffle(4))
    assert sorted(found) == [1, 3, 5, *range(100, 110)]


def test_zip_puts_row_i_beside_row_i_whatever_the_fragments_and_the_order() -> None:
    left = flow.concat(numbers(3), numbers(9, first=3), numbers(8, first=12))
    right = flow.concat(numbers(11, column="y"), numbers(9, first=11, column="y"))
    for pipe in (flow.zip(left, right), flow.zip(left, right).shuffle(6), flow.zip(left, right).repeat(2)):
        assert all(row["x"] == row["y"] for row in rows(pipe))
    assert sorted(values(flow.zip(left, right).shuffle(6))) == list(range(20))


def test_zip_of_filtered_cut_and_mapped_inputs() -> None:
    left = numbers().filter([("x", ">", 14)])
    middle = numbers(column="y").skip(2).take(5)
    right = numbers(5).map(lambda row: {"z": row["x"] * 10}, schema={"z": "int64"})
    want = [{"x": 15 + row, "y": 2 + row, "z": 10 * row} for row in range(5)]
    assert rows(flow.zip(left, middle, right)) == want
    assert sorted(rows(flow.zip(left, middle, right).shuffle(3)), key=lambda row: row["x"]) == want
    assert rows(flow.zip(flow.zip(left, middle), right)) == want
    assert rows(flow.zip(left, middle, right).filter([("y", ">", 4)])) == want[3:]


@pytest.mark.parametrize(
    ("pipe", "named"),
    [
        (lambda: flow.zip(numbers(3), numbers(4, column="y")), "3.*4"),
        (lambda: flow.zip(numbers(3), numbers(3)), "two columns would be called 'x'"),
        (lambda: flow.zip(numbers(3), numbers(3, column="y").shuffle(2)), "zip"),
        (lambda: flow.zip(numbers(3), numbers(3, column="y").filter(lambda row: True)), "zip"),
        (lambda: flow.concat(numbers(3).shuffle(2), numbers(3)), r"concat\(\.\.\.\)\.shuffle"),
        (lambda: flow.concat(numbers(3), numbers(3).repeat(2)), "repeat"),
        (lambda: flow.concat(numbers(3), numbers(3).seed(4)), "seed"),
        (lambda: flow.concat(numbers(3).batch(2), numbers(3)), "batch"),
        (lambda: flow.concat(), "nothing"),
        (lambda: flow.zip(), "nothing"),
    ],
)
def test_inputs_that_do_not_fit_are_plan_errors_that_say_what_to_do(pipe: Any, named: str) -> None:
    with pytest.raises(PlanError, match=f"(?s){named}") as caught:
        pipe().batch(1).loader()
    assert caught.value.hint


def _large_group(folder: Path) -> flow.Pipeline:
    """A row group that is read in many parts, each going on with the decoder of the part before."""
    rows_ = np.arange(600)
    table = pa.table({"a": rows_, "b": rows_ * 2, "c": rows_ * 3})
    pq.write_table(table, folder / "a.parquet", row_group_size=600)
    return flow.read(folder / "a.parquet")


@pytest.mark.parametrize("lanes", [1, 3])
def test_one_source_zipped_with_itself_may_give_other_columns_each_time(tmp_path: Path, lanes: int) -> None:
    source = _large_group(tmp_path)
    pipe = flow.zip(
        source.select("a"), source.select("b"), source.select("c"), source.select("a").rename({"a": "d"})
    )
    with pipe.shuffle(20).batch(30, lanes=lanes).loader(output="numpy", threads=2) as loader:
        batches = list(loader)
    whole = {name: np.concatenate([batch[name] for batch in batches]) for name in batches[0]}
    assert sorted(whole["a"].tolist()) == list(range(600))
    assert (whole["b"] == 2 * whole["a"]).all()
    assert (whole["c"] == 3 * whole["a"]).all()
    assert (whole["d"] == whole["a"]).all()


@pytest.mark.parametrize("lanes", [1, 2])
def test_one_source_behind_itself_may_give_other_columns_each_time(tmp_path: Path, lanes: int) -> None:
    source = _large_group(tmp_path)
    plain = source.select("a")
    made = source.select("b").map(lambda row: {"a": row["b"] + 10_000}, schema={"a": "int64"})
    pipe = flow.concat(plain, made).shuffle(20).batch(24, lanes=lanes)
    with pipe.loader(output="numpy", threads=2) as loader:
        found = sorted(value for batch in loader for value in batch["a"].tolist())
    assert found == [*range(600), *range(10_000, 11_200, 2)]


@pytest.mark.parametrize(
    "choose",
    [lambda pipe: pipe.select("a"), lambda pipe: pipe.drop("b"), lambda pipe: pipe.shuffle(3).select("a")],
)
@pytest.mark.parametrize(
    "step",
    [
        lambda pipe: pipe.map(dict, schema={"a": "int64", "b": "int64"}),
        lambda pipe: pipe.flat_map(lambda row: [row], schema={"a": "int64", "b": "int64"}),
        lambda pipe: pipe.nulls("b", mask=True).drop("b__mask"),
    ],
)
def test_columns_are_chosen_behind_inputs_of_which_one_needs_them_all(step: Any, choose: Any) -> None:
    source = flow.from_columns({"a": [1, 2], "b": [3, 4]})
    for pipe in (flow.concat(source, step(source)), flow.concat(step(source), source)):
        found = rows(choose(pipe))
        assert sorted(row["a"] for row in found) == [1, 1, 2, 2]
        assert all(row.keys() == {"a"} for row in found)


@pytest.mark.parametrize("function", [False, True])
def test_zip_gives_a_rank_nothing_of_a_window_whose_rows_all_go_to_others(function: bool) -> None:
    pipe = flow.zip(numbers(400), numbers(400, first=1000, column="y"))
    if function:
        pipe = pipe.map(lambda row: row)
    pipe = pipe.batch(global_size=200, lanes=1)
    seen = []
    for rank in range(2):
        with pipe.loader(rank=rank, world_size=2, output="numpy") as loader:
            for batch in loader:
                assert (batch["y"] == batch["x"] + 1000).all()
                seen += batch["x"].tolist()
    assert sorted(seen) == list(range(400))


@pytest.mark.parametrize("on_error", ["skip", "replace"])
def test_zip_goes_on_where_all_rows_of_a_range_are_bad(on_error: Any) -> None:
    def fails(row: dict[str, Any]) -> dict[str, Any]:
        if 64 <= row["x"] < 192:
            raise ValueError("bad")
        return row

    left = numbers(400).map(fails, schema={"x": "int64"})
    pipe = flow.zip(left, numbers(400, first=1000, column="y")).batch(8)
    with pipe.loader(output="numpy", on_error=on_error, threads=1) as loader:
        found = [
            pair for batch in loader for pair in zip(batch["x"].tolist(), batch["y"].tolist(), strict=True)
        ]
    assert all(y == x + 1000 for x, y in found)
    assert len(found) == (272 if on_error == "skip" else 400)
