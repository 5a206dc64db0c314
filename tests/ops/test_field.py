"""`field`: one field of a column of structs."""

from __future__ import annotations

import pyarrow as pa
import pytest
from gathered import values

import dataflow as flow
from dataflow.errors import PlanError

ROWS = pa.table({"x": [{"a": 1, "b": "one"}, None, {"a": None, "b": "three"}], "y": [1, 2, 3]})


def test_a_field_stands_in_the_place_of_its_struct() -> None:
    pipe = flow.from_arrow(ROWS).field("x", "b")
    assert pipe.schema is not None
    assert pipe.schema.names == ["x", "y"]
    assert pipe.schema.field("x").type == pa.string()
    assert values(pipe) == ["one", None, "three"]


def test_a_field_of_a_field_is_had_by_two_steps() -> None:
    deep = pa.table({"x": [{"a": {"b": 1}}, {"a": {"b": 2}}]})
    assert values(flow.from_arrow(deep).field("x", "a").field("x", "b")) == [1, 2]


def test_numbers_come_out_as_a_tensor() -> None:
    pipe = flow.from_arrow(pa.table({"x": [{"a": 1}, {"a": 2}]})).field("x", "a").batch(2)
    with pipe.loader() as loader:
        assert next(iter(loader))["x"].tolist() == [1, 2]


@pytest.mark.parametrize(
    ("column", "name", "said", "hint"),
    [
        ("x", "c", "column 'x' has no field 'c'", "'a', 'b'"),
        ("y", "a", "column 'y' is int64, no struct", "that has fields"),
        ("z", "a", "there is no column 'z'", "'x'"),
    ],
)
def test_what_is_no_field_is_an_error_on_its_line(column: str, name: str, said: str, hint: str) -> None:
    with pytest.raises(PlanError) as caught:
        flow.from_arrow(ROWS).field(column, name)
    assert said in caught.value.message
    assert hint in caught.value.hint


def test_files_inside_of_structs_are_told_to_those_who_decode_them() -> None:
    rows = pa.table({"image": [{"bytes": b"", "path": ""}]})
    with pytest.raises(PlanError) as caught:
        flow.from_arrow(rows).decode_image("image")
    assert ".field('image', 'bytes')" in caught.value.hint
