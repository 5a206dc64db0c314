"""`map`: what functions get, what they may return, and what is enforced."""

from __future__ import annotations

import json
from itertools import groupby
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch
from gathered import numbers, rows, values
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

import dataflow as flow
from dataflow.errors import DataflowError, PlanError, StageError
from dataflow.ops.cast import data_type, type_name

Row = dict[str, Any]


def test_a_row_function_gets_numpy_scalars_arrays_str_and_bytes() -> None:
    seen: list[Row] = []

    def look(row: Row) -> Row:
        seen.append(dict(row))
        return {"x": 1}

    table = pa.table(
        {"whole": pa.array([7], pa.int16()), "flag": [True], "text": ["a"], "raw": [b"b"],
         "none": pa.array([None], pa.int8()), "fixed": pa.array([[1, 2]], pa.list_(pa.float32(), 2)),
         "ragged": pa.array([[1, 2, 3]], pa.list_(pa.int64()))}
    )  # fmt: skip
    values(flow.from_arrow(table).map(look, schema={"x": "int64"}))
    row = seen[0]
    assert row["whole"].dtype == np.int16
    assert row["flag"] == np.bool_(True)
    assert (row["text"], row["raw"], row["none"]) == ("a", b"b", None)
    assert row["fixed"].dtype == np.float32
    assert row["fixed"].tolist() == [1, 2]
    assert row["ragged"].tolist() == [1, 2, 3]


def test_the_returned_dict_replaces_the_row_or_adds_to_it() -> None:
    source = flow.from_columns({"x": [1, 2], "y": ["a", "b"]})
    assert rows(source.map(lambda row: {"z": row["x"] * 2})) == [{"z": 2}, {"z": 4}]
    added = source.map(lambda row: {"z": row["x"] * 2, "x": 0}, add=True)
    assert rows(added) == [{"x": 0, "y": "a", "z": 2}, {"x": 0, "y": "b", "z": 4}]


def test_functions_may_return_tensors_arrays_lists_and_text() -> None:
    def make(row: Row) -> Row:
        x = int(row["x"])
        return {
            "t": torch.full((2,), x),
            "a": np.full((2, 2), x, np.float32),
            "l": list(range(x % 3)),
            "s": str(x),
        }

    found = rows(numbers(4).map(make))
    assert [row["t"] for row in found] == [[x, x] for x in range(4)]
    assert [row["l"] for row in found] == [[], [0], [0, 1], []]
    assert [row["s"] for row in found] == list("0123")


@pytest.mark.parametrize("batched", [False, True])
def test_a_declared_schema_is_known_when_written_and_enforced_when_run(batched: bool) -> None:
    def wrong(row: Row) -> Row:
        return {"x": row["x"] + 0.5}

    pipe = numbers().map(wrong, batched=batched, schema={"x": "int64"})
    assert pipe.schema == pa.schema([("x", pa.int64())])
    with pytest.raises(StageError, match="x"):
        values(pipe)
    assert values(numbers(3).map(wrong, batched=batched, schema={"x": "float64"})) == [0.5, 1.5, 2.5]


def test_without_a_schema_nothing_runs_when_the_pipeline_is_written() -> None:
    calls: list[int] = []

    def count(row: Row) -> Row:
        calls.append(1)
        return row

    pipe = numbers().map(count).shuffle(4).batch(2)
    assert pipe.schema is None
    assert calls == []


def test_the_schema_of_the_first_rows_is_enforced_afterwards() -> None:
    def drifting(row: Row) -> Row:
        return {"x": row["x"]} if row["x"] < 17 else {"y": row["x"]}

    with pytest.raises(StageError, match="no 'x'"):
        values(numbers().map(drifting))
    with pytest.raises(StageError, match="does not have"):
        values(numbers().map(lambda row: {"x": row["x"]} if row["x"] < 17 else {"x": row["x"], "y": 1}))


@pytest.mark.parametrize("window", [None, 7, "full"])
@pytest.mark.parametrize("size", [1, 3, 8, 100])
def test_a_batched_function_gets_fixed_blocks_of_a_window(window: Any, size: int) -> None:
    def mark(columns: Row, rng: np.random.Generator) -> Row:
        return {"x": columns["x"], "block": np.full(len(columns["x"]), rng.integers(1 << 60))}

    def blocks(threads: int, prefetch: int) -> list[list[int]]:
        pipe = numbers(40) if window is None else numbers(40).shuffle(window)
        schema = {"x": "int64", "block": "int64"}
        pipe = pipe.map(mark, batched=True, batch_size=size, rng=True, schema=schema)
        with pipe.batch(4).loader(output="numpy", threads=threads, prefetch=prefetch) as loader:
            pairs = [
                pair
                for batch in loader
                for pair in zip(batch["x"].tolist(), batch["block"].tolist(), strict=True)
            ]
        return [[x for x, _ in group] for _, group in groupby(pairs, key=lambda pair: pair[1])]

    alone = blocks(1, 1)
    assert blocks(3, 64) == alone
    assert sorted(value for block in alone for value in block) == list(range(40))
    whole = [7] * 4 + [6] * 2 if window == 7 else [40]  # the fewest slices, equal to one row
    want = [min(size, rows_ - at) for rows_ in whole for at in range(0, rows_, size)]
    assert sorted(map(len, alone)) == sorted(want)


@pytest.mark.parametrize("shuffled", [False, True])
def test_a_batched_function_behind_flat_map_gets_at_most_its_number_of_rows(shuffled: bool) -> None:
    def several(row: Row) -> list[Row]:
        return [{"x": 10 * int(row["x"]) + copy} for copy in range(int(row["x"]) % 7)]

    def mark(columns: Row, rng: np.random.Generator) -> Row:
        return {"x": columns["x"], "block": np.full(len(columns["x"]), rng.integers(1 << 60))}

    def blocks(threads: int) -> list[list[int]]:
        pipe = numbers(40).flat_map(several, schema={"x": "int64"})
        pipe = pipe.shuffle(40) if shuffled else pipe
        pipe = pipe.map(
            mark, batched=True, batch_size=4, rng=True, schema={"x": "int64", "block": "int64"}
        ).batch(4, remainder="keep")
        with pipe.loader(output="numpy", threads=threads) as loader:
            pairs = [
                pair
                for batch in loader
                for pair in zip(batch["x"].tolist(), batch["block"].tolist(), strict=True)
            ]
        return [[x for x, _ in group] for _, group in groupby(pairs, key=lambda pair: pair[1])]

    found = blocks(1)
    assert sum(map(len, found)) == sum(number % 7 for number in range(40))
    assert max(map(len, found)) == 4
    assert blocks(3) == found
    if not shuffled:
        # Of 4 rows each that are read, whatever became of them.
        assert found[:4] == [[10, 20, 21, 30], [31, 32], [40, 41, 42, 43], [50, 51, 52, 53]]


def test_a_batched_function_gets_arrays_or_lists_of_values() -> None:
    seen: list[Row] = []

    def look(columns: Row) -> Row:
        seen.append(columns)
        return {"n": list(range(len(columns["text"])))}

    table = pa.table(
        {"x": [1, 2], "text": ["a", None], "ragged": pa.array([[1], [2, 3]], pa.list_(pa.int32()))}
    )
    assert values(flow.from_arrow(table).map(look, batched=True, schema={"n": "int64"}), "n") == [0, 1]
    assert seen[0]["x"].tolist() == [1, 2]
    assert seen[0]["text"] == ["a", None]
    assert [item.tolist() for item in seen[0]["ragged"]] == [[1], [2, 3]]


@pytest.mark.parametrize(
    "returned",
    [
        lambda c: {"x": c["x"][:-1]},
        lambda c: {"x": c["x"], "y": c["x"][:3]},
        lambda c: {"x": 5},
        lambda c: [1],
    ],
)
def test_columns_of_unequal_length_are_an_error_that_names_the_function(returned: Any) -> None:
    with pytest.raises(StageError, match=r"test_map:.*lambda") as caught:
        values(numbers().map(returned, batched=True))
    assert caught.value.hint


@given(seed=st.integers(0, 5), rows_=st.integers(1, 30), size=st.integers(1, 9))
@settings(max_examples=25)
def test_draws_of_a_row_do_not_depend_on_order_lanes_or_blocks(seed: int, rows_: int, size: int) -> None:
    def draw(row: Row, rng: np.random.Generator) -> Row:
        return {"x": row["x"], "drawn": rng.integers(1 << 40)}

    pipe = numbers(rows_).map(draw, rng=True, schema={"x": "int64", "drawn": "int64"}).seed(seed)
    plain = {row["x"]: row["drawn"] for row in rows(pipe)}
    mixed = (
        numbers(rows_).shuffle(size).map(draw, rng=True, schema={"x": "int64", "drawn": "int64"}).seed(seed)
    )
    assert {row["x"]: row["drawn"] for row in rows(mixed)} == plain
    assert {row["x"]: row["drawn"] for row in rows(mixed, epoch=1)} != plain


def test_two_random_operators_draw_apart_unless_they_have_one_key() -> None:
    def draw(name: str) -> Any:
        return lambda row, rng: {**row, name: rng.integers(1 << 60)}

    found = rows(numbers().map(draw("a"), rng=True).map(draw("b"), rng=True))
    assert all(row["a"] != row["b"] for row in found)
    same = rows(numbers().map(draw("a"), rng=True, key="k").map(draw("b"), rng=True, key="k"))
    assert all(row["a"] == row["b"] for row in same)


def test_a_key_keeps_its_draws_when_other_operators_come_and_go() -> None:
    def draw(row: Row, rng: np.random.Generator) -> Row:
        return {**row, "drawn": rng.integers(1 << 60)}

    base = values(numbers().map(draw, rng=True, key="crop"), "drawn")
    assert values(numbers().map(draw, rng=True).map(draw, rng=True, key="crop"), "drawn") == base


def test_an_exception_names_operator_line_and_row_and_keeps_its_cause() -> None:
    def divide(row: Row) -> Row:
        return {"x": 1 // (int(row["x"]) - 13)}

    with pytest.raises(StageError, match=r"ZeroDivisionError.*sample 0:13") as caught:
        values(numbers().map(divide, schema={"x": "int64"}))
    assert isinstance(caught.value.__cause__, ZeroDivisionError)
    assert caught.value.location.rpartition(":")[0] == __file__
    assert "on_error" in caught.value.hint


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"function": 3}, "no function"),
        ({"function": dict, "batch_size": 0, "batched": True}, "batch_size"),
        ({"function": dict, "schema": {"x": "int65"}}, "int65"),
        ({"function": dict, "schema": {"__id__": "int64"}}, "__id__"),
    ],
)
def test_a_wrong_argument_fails_when_written(arguments: dict[str, Any], named: str) -> None:
    with pytest.raises(PlanError, match=named) as caught:
        numbers().map(**arguments)
    assert caught.value.hint


def test_a_function_that_gets_no_row_says_to_give_a_schema() -> None:
    pipe = numbers().filter(lambda row: False).map(dict).batch(1)
    with pytest.raises(PlanError, match="gets no row") as caught:
        pipe.loader()
    assert "schema" in caught.value.hint


@pytest.mark.parametrize("batched", [False, True])
def test_a_tensor_of_several_axes_is_declared_by_its_shape(batched: bool) -> None:
    def image(row: Row) -> Row:
        return {"image": np.full((*np.shape(row["x"]), 2, 4, 3), 7, np.uint8)}

    pipe = numbers().map(image, schema={"image": "uint8[2,4,3]"}, batched=batched)
    assert pipe.schema == pa.schema({"image": pa.fixed_shape_tensor(pa.uint8(), (2, 4, 3))})
    with pipe.batch(4).loader(output="numpy") as loader:
        batch = next(iter(loader))
    assert batch["image"].shape == (4, 2, 4, 3)
    assert (batch["image"] == 7).all()


@pytest.mark.parametrize(
    "kind",
    [
        pa.fixed_shape_tensor(pa.uint8(), (32, 32, 3)),
        pa.fixed_shape_tensor(pa.float16(), (2, 2)),
        pa.list_(pa.list_(pa.uint8(), 3), 2),
    ],
)
def test_the_name_of_a_type_and_what_arrow_prints_give_the_type(kind: pa.DataType) -> None:
    assert data_type(type_name(kind)) == kind
    assert data_type(str(kind)) == kind


def test_an_exception_from_inside_a_library_names_the_users_line() -> None:
    def broken(row: Row) -> Row:
        return {"x": json.loads("{")}

    def shaped(row: Row) -> Row:
        return {"x": np.stack([])}

    for function in (broken, shaped):
        with pytest.raises(StageError) as caught:
            values(numbers().map(function, schema={"x": "int64"}))
        line = function.__code__.co_firstlineno + 1
        assert caught.value.location == f"{__file__}:{line}"


@pytest.mark.parametrize(
    ("function", "hint"),
    [
        (lambda row: 3, "{'name': ...}"),
        (lambda row: Image.new("RGB", (2, 2)), "{'name': np.asarray(...)}"),
        (lambda row: np.zeros(3), "{'name': np.asarray(...)}"),
        (lambda row: {"image": Image.new("RGB", (2, 2))}, "{'image': np.asarray(image)}"),
    ],
)
def test_what_is_no_dict_of_values_is_an_error_that_shows_one(function: Any, hint: str) -> None:
    with pytest.raises(DataflowError) as caught:
        rows(flow.from_columns({"x": [1]}).map(function))
    assert hint in caught.value.hint


@pytest.mark.parametrize("verb", ["map", "flat_map"])
def test_a_function_that_does_not_take_what_it_is_given_is_an_error_on_its_line(verb: str) -> None:
    pipe: Any = flow.from_columns({"x": [1]})
    with pytest.raises(PlanError, match=r"is called with \(row, rng\), which it does not take") as caught:
        getattr(pipe, verb)(lambda row: row, rng=True)
    assert "def f(row, rng), or leave rng=True out" in caught.value.hint
    with pytest.raises(PlanError, match=r"is called with \(row\)") as caught:
        getattr(pipe, verb)(lambda row, rng: row)
    assert "rng=True" in caught.value.hint
    getattr(pipe, verb)(lambda row, other=None: row)
    getattr(pipe, verb)(lambda *given: given, rng=True)
    getattr(pipe, verb)(dict)
