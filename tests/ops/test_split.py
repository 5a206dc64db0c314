"""`split`: parts that are apart, whole together, and the same whatever is done to them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from gathered import numbers, rows, values
from hypothesis import given, settings
from hypothesis import strategies as st

import dataflow as flow
from connectors.folder import Folder
from dataflow.errors import PlanError

HALVES = {"a": 0.5, "b": 0.5}


@given(st.lists(st.floats(0.05, 0.5), min_size=1, max_size=4))
@settings(max_examples=25)
def test_parts_are_apart_and_as_large_as_asked_for(shares: list[float]) -> None:
    total = sum(shares)
    parts = {str(place): share / max(1.0, total) for place, share in enumerate(shares)}
    found = {name: set(values(pipe)) for name, pipe in numbers(2000).split(parts).items()}
    assert sum(map(len, found.values())) == len(set().union(*found.values()))
    for name, share in parts.items():
        assert abs(len(found[name]) / 2000 - share) < 0.06
    if total >= 1:
        assert set().union(*found.values()) == set(range(2000))


def test_neither_seed_nor_shuffle_nor_a_filter_changes_the_part_of_a_row() -> None:
    part = set(values(numbers(200).split(HALVES)["a"]))
    assert set(values(numbers(200).seed(9).split(HALVES)["a"].shuffle(7))) == part
    assert set(values(numbers(200).split(HALVES)["a"].filter([("x", ">", 50)]))) == {
        x for x in part if x > 50
    }
    assert set(values(numbers(200).filter([("x", ">", 50)]).split(HALVES)["a"])) == {
        x for x in part if x > 50
    }
    assert set(values(numbers(200).skip(100).split(HALVES)["a"])) == {x for x in part if x >= 100}


def test_rows_of_one_value_of_a_column_stay_together() -> None:
    pipe = flow.from_columns({"x": np.arange(300), "user": np.arange(300) % 17})
    parts = pipe.split({"a": 0.6, "b": 0.4}, by="user")
    users = [{row["user"] for row in rows(part)} for part in parts.values()]
    assert not users[0] & users[1]
    assert users[0] | users[1] == set(range(17))


def test_lengths_of_parts_are_known() -> None:
    parts = numbers(100).split(HALVES)
    with parts["a"].batch(1).loader() as a, parts["b"].batch(1).loader() as b:
        assert len(a) + len(b) == 100


def test_a_split_behind_a_counted_filter_and_by_a_mapped_column_work() -> None:
    even = numbers().filter(lambda row: row["x"] % 2 == 0).counted()
    assert sorted(x for part in even.split(HALVES).values() for x in values(part)) == list(range(0, 20, 2))
    kinds = numbers().map(lambda row: {"x": row["x"], "kind": int(row["x"]) % 3})
    assert sorted(x for part in kinds.split(HALVES, by="kind").values() for x in values(part)) == list(
        range(20)
    )


@pytest.mark.parametrize(
    "rows_", [lambda: numbers().filter(lambda row: True), lambda: numbers().flat_map(lambda row: [row, row])]
)
def test_a_split_behind_operators_that_change_rows_is_a_plan_error(rows_: Any) -> None:
    with pytest.raises(PlanError, match="split") as caught:
        rows_().split(HALVES)["a"].batch(1).loader()
    assert caught.value.hint


@pytest.mark.parametrize(
    ("parts", "by", "named"),
    [
        ({}, None, "over 0"),
        ({"a": 0}, None, "over 0"),
        ({"a": -0.1, "b": 0.5}, None, "over 0"),
        ({"a": 0.7, "b": 0.7}, None, "add up to 1.4"),
        ({"a": "half"}, None, "over 0"),
        (HALVES, "user", "no column 'user'"),
    ],
)
def test_wrong_shares_and_columns_fail_when_written(parts: Any, by: str | None, named: str) -> None:
    with pytest.raises(PlanError, match=named) as caught:
        numbers().split(parts, by=by)
    assert caught.value.hint


@pytest.mark.parametrize(
    "behind",
    [
        lambda pipe: pipe.select("x"),
        lambda pipe: pipe.drop("user"),
        lambda pipe: pipe.rename({"user": "who"}).select("x"),
        lambda pipe: pipe.filter([("y", ">=", 0)]).select("x"),
        lambda pipe: pipe.map(lambda row: {"x": row["x"]}, schema={"x": "int64"}),
        lambda pipe: pipe.split(HALVES)["a"].select("x"),
    ],
)
def test_the_column_that_splits_need_not_be_delivered(behind: Any) -> None:
    rows_ = np.arange(300)
    pipe = flow.from_columns({"x": rows_, "user": rows_ % 17, "y": rows_ % 2})
    part = pipe.split({"a": 0.6, "b": 0.4}, by="user")["a"]
    whole = {row["x"]: row["user"] for row in rows(part)}
    found = values(behind(part))
    assert found
    assert found == [x for x in whole if x in set(found)]
    assert {x % 17 for x in found} <= set(whole.values())
    assert not {"user", "who"} & rows(behind(part))[0].keys()


def test_a_column_called_id_is_not_what_splits_by_default() -> None:
    few = flow.from_columns({"x": np.arange(200), "id": np.arange(200) % 2})
    named = flow.from_columns({"x": np.arange(200), "key": np.arange(200) % 2})
    for name, part in few.split(HALVES).items():
        assert values(part) == values(named.split(HALVES)[name])
        assert {row["id"] for row in rows(part)} == {0, 1}


def test_by_id_is_the_sample_where_no_column_has_that_name() -> None:
    for name, part in numbers(100).split(HALVES, by="id").items():
        assert values(part) == values(numbers(100).split(HALVES)[name])


def test_by_id_beside_a_column_of_that_name_is_an_error_that_says_how_to_say_each() -> None:
    pipe = flow.from_columns({"x": np.arange(100), "id": np.arange(100) // 10})
    with pytest.raises(PlanError, match="is the sample or the column 'id'") as caught:
        pipe.split(HALVES, by="id")
    assert "leave out by=" in caught.value.hint
    assert ".rename({'id': 'key'}).split(..., by='key')" in caught.value.hint
    parts = pipe.rename({"id": "key"}).split(HALVES, by="key").values()
    keys = [{row["key"] for row in rows(part)} for part in parts]
    assert keys[0] | keys[1] == set(range(10))
    assert not keys[0] & keys[1]


@pytest.mark.parametrize(
    ("by", "named"), [("id", "is the sample or the column 'id'"), ("usr", "no column 'usr'")]
)
def test_columns_that_are_not_known_when_a_split_is_written_fail_when_they_are(by: str, named: str) -> None:
    pipe = numbers().map(lambda row: {"x": row["x"], "id": row["x"], "user": row["x"]})
    part = pipe.split(HALVES, by=by)["a"]
    for ask in (part.count, part.batch(1).loader, lambda: part.select("x")[0]):
        with pytest.raises(PlanError, match=named) as caught:
            ask()
        assert caught.value.hint


def test_the_part_of_a_row_is_the_same_for_ever() -> None:
    table = pa.table({"x": range(12), "user": [f"user-{row // 2}" for row in range(12)]})
    source = flow.from_arrow(table)
    assert values(source.split(HALVES)["a"]) == [2, 3, 4, 5, 7, 8, 11]
    assert values(source.split(HALVES, by="user")["a"]) == [2, 3, 6, 7]
    assert values(source.split(HALVES, by="x")["a"]) == [1, 3, 7, 10, 11]


@pytest.mark.parametrize(
    "kind",
    [
        pa.timestamp("ns"), pa.timestamp("s", "UTC"), pa.date32(), pa.time64("us"), pa.duration("ms"), pa.bool_(),
        pa.float16(), pa.decimal128(21, 2), pa.large_string(), pa.binary(), pa.dictionary(pa.int8(), pa.string()),
        pa.list_(pa.int8()), pa.list_(pa.float32(), 2), pa.struct([("a", pa.string())]),
        pa.fixed_shape_tensor(pa.int8(), [2, 1]),
    ],
    ids=str,
)  # fmt: skip
@pytest.mark.parametrize("nulls", [False, True])
def test_rows_of_one_value_stay_together_whatever_its_type(kind: Any, nulls: bool) -> None:
    numbers = [k % 10 if nulls and k % 4 else None if nulls else k % 40 for k in range(80)]
    column = distinct(kind, 40).take(pa.array(numbers))
    table = pa.table({"x": range(80), "key": pa.chunked_array([column[:7], column[7:]])})
    names = [number if number is None or not pa.types.is_boolean(kind) else number > 0 for number in numbers]
    parts = [values(part.select("x")) for part in flow.from_arrow(table).split(HALVES, by="key").values()]
    assert sorted(x for part in parts for x in part) == list(range(80))
    assert not {names[x] for x in parts[0]} & {names[x] for x in parts[1]}
    assert pa.types.is_boolean(kind) or all(parts)


def distinct(kind: Any, count: int) -> Any:
    """Values of a type, different ones as far as it has them."""
    whole = pa.array(range(count), pa.int64())
    if isinstance(kind, pa.FixedShapeTensorType):
        return pa.ExtensionArray.from_storage(
            kind, pa.array([[k, 0] for k in range(count)], kind.storage_type)
        )
    if pa.types.is_nested(kind):
        made = [{"a": str(k)} if pa.types.is_struct(kind) else [k, k] for k in range(count)]
        return pa.array(made, kind)
    if pa.types.is_dictionary(kind):
        return whole.cast(pa.string()).dictionary_encode().cast(kind)
    if pa.types.is_temporal(kind):
        return whole.cast(pa.int64() if kind.bit_width == 64 else pa.int32()).view(kind)
    if pa.types.is_binary(kind) or pa.types.is_float16(kind):
        return pa.array(
            [np.float16(k) if pa.types.is_float16(kind) else bytes([k]) for k in range(count)], kind
        )
    return whole.cast(kind)


def test_files_of_other_suffixes_move_no_row_to_the_other_part(tmp_path: Path) -> None:
    def kept() -> set[str]:
        parts = flow.read(tmp_path, format=Folder()).split(HALVES, by="id")
        return {str(row["path"]) for row in rows(parts["a"])}

    for number in range(8):
        (tmp_path / f"{number}.jpg").write_bytes(b"x")
        (tmp_path / f"{number}.txt").write_bytes(b"a caption")
    before = kept()
    assert before
    (tmp_path / "00.jpg").write_bytes(b"x")
    assert kept() - {"00.jpg"} == before


@pytest.mark.parametrize("by", [None, "user"])
def test_a_part_is_split_again_into_shares_of_itself(by: str | None) -> None:
    source = flow.from_columns({"x": np.arange(4000), "user": np.arange(4000)})
    part = source.split(HALVES, by=by)["a"]
    again = part.rename({"user": "person"}).split(HALVES, by=by and "person")
    found = {name: set(values(pipe)) for name, pipe in again.items()}
    assert found["a"] | found["b"] == set(values(part))
    assert not found["a"] & found["b"]
    assert 0.4 < len(found["a"]) / len(set(values(part))) < 0.6
