"""`select`, `drop`, `rename`: wrong names fail when they are written, and name what is near."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from gathered import rows

import dataflow as flow
from dataflow.errors import PlanError


def _source() -> flow.Pipeline:
    return flow.from_columns({"image": [1, 2], "label": [3, 4], "name": ["a", "b"]})


def test_columns_come_in_the_order_asked_for() -> None:
    assert [list(row) for row in rows(_source().select("name", "image"))] == [["name", "image"]] * 2
    assert [list(row) for row in rows(_source().drop("image"))] == [["label", "name"]] * 2
    renamed = _source().rename({"image": "label", "label": "image"})
    assert rows(renamed) == [{"label": 1, "image": 3, "name": "a"}, {"label": 2, "image": 4, "name": "b"}]
    assert rows(renamed.rename({"label": "image", "image": "label"}).select("image")) == [
        {"image": 1},
        {"image": 2},
    ]


def test_names_may_change_places_wherever_the_columns_come_from_and_whichever_are_asked_for() -> None:
    swap = {"image": "label", "label": "image"}
    for pipe in (_source().nulls("image", "label"), _source().map(dict)):
        assert rows(pipe.rename(swap).select("label")) == [{"label": 1}, {"label": 2}]
    other = flow.from_columns({"words": [5, 6], "kind": [7, 8]}).nulls("words", "kind")
    zipped = flow.zip(other, _source().nulls("label").rename({"label": "kind_of_image"}))
    assert rows(zipped.select("kind", "name")) == [{"kind": 7, "name": "a"}, {"kind": 8, "name": "b"}]
    zipped = flow.zip(_source(), other.rename({"words": "more"}), other.select("words"))
    assert rows(zipped.select("name")) == [{"name": "a"}, {"name": "b"}]


@pytest.mark.parametrize(
    ("step", "named", "hint"),
    [
        (lambda pipe: pipe.select("lable"), "no column 'lable'", "'label'"),
        (lambda pipe: pipe.drop("imgae"), "no column 'imgae'", "'image'"),
        (lambda pipe: pipe.rename({"nam": "x"}), "no column 'nam'", "'name'"),
        (lambda pipe: pipe.cast({"labels": "int64"}), "no column 'labels'", "'label'"),
        (lambda pipe: pipe.nulls("labels"), "no column 'labels'", "'label'"),
        (lambda pipe: pipe.pad({"labels": 3}), "no column 'labels'", "'label'"),
        (lambda pipe: pipe.select("label", "label"), "named twice", "once"),
        (lambda pipe: pipe.select(3), "not a column name", "strings"),
        (lambda pipe: pipe.rename({"image": "label"}), "two columns would be called 'label'", "drop"),
        (lambda pipe: pipe.rename({"image": "__id__"}), "'__id__' is kept", "another name"),
        (lambda pipe: pipe.drop("image", "label", "name"), "leaves no column", "at least one"),
        (lambda pipe: pipe.cast({"label": "int65"}), "int65", "int64"),
        (lambda pipe: pipe.pad({"label": 3}), "label", ""),
        (lambda pipe: pipe.pad({"label": 0}), "length 0", "from 1 to"),
    ],
)
def test_wrong_columns_fail_when_written(step: Any, named: str, hint: str) -> None:
    with pytest.raises(PlanError, match=named) as caught:
        step(_source())
    assert hint in caught.value.hint
    assert caught.value.hint


def test_a_column_that_a_step_in_front_took_away_is_not_there() -> None:
    for pipe in (_source().select("image"), _source().drop("label"), _source().rename({"label": "class"})):
        with pytest.raises(PlanError, match="no column 'label'"):
            pipe.select("label")


@pytest.mark.parametrize(
    ("step", "left"),
    [
        (lambda pipe: pipe.map(lambda row: {"c": 7}, add=True, schema={"c": "int64"}).drop("label"),
         {"image": 1, "name": "a", "c": 7}),
        (lambda pipe: pipe.map(lambda row: {"c": 7}, add=True, schema={"c": "int64"}).drop("c", "label"),
         {"image": 1, "name": "a"}),
        (lambda pipe: pipe.map(lambda row: {"c": 7, "d": 8}, schema={"c": "int64", "d": "int64"}).drop("d"),
         {"c": 7}),
        (lambda pipe: pipe.nulls("label", mask=True).drop("label__mask"), {"image": 1, "label": 3, "name": "a"}),
        (lambda pipe: pipe.nulls("label", mask=True).drop("label", "name"), {"image": 1, "label__mask": True}),
        (lambda pipe: pipe.cast({"label": "int32"}).drop("image", "label"), {"name": "a"}),
        (lambda pipe: flow.zip(pipe, flow.from_columns({"c": [7, 8]}).map(dict, schema={"c": "int64"})).drop("c"),
         {"image": 1, "label": 3, "name": "a"}),
        (lambda pipe: flow.concat(
            pipe.drop("name"), pipe.drop("name").map(dict, schema={"image": "int64", "label": "int64"}))
         .drop("label"), {"image": 1}),
        (lambda pipe: pipe.flat_map(lambda row: [{"c": 7, "d": 8}], schema={"c": "int64", "d": "int64"}).drop("d"),
         {"c": 7}),
    ],
)  # fmt: skip
def test_a_column_that_a_step_made_can_be_dropped_behind_it(step: Any, left: dict[str, Any]) -> None:
    pipe = step(_source())
    found = rows(pipe)[0]
    assert list(found) == list(left)
    # What stands beside a null is null or false, as the step says.
    assert {name: value for name, value in found.items() if name != "label__mask"} == {
        name: value for name, value in left.items() if name != "label__mask"
    }
    assert pipe.batch(1).explain()


@pytest.mark.parametrize("name", ["__id__", "__valid__", "__replaced_by__"])
def test_a_source_column_with_a_name_of_a_batch_is_refused_unless_left_out(tmp_path: Path, name: str) -> None:
    pq.write_table(pa.table({name: [7, 8, 9], "x": [1, 2, 3]}), tmp_path / "a.parquet")
    url = tmp_path / "a.parquet"
    refused: list[Callable[[], flow.Pipeline]] = [
        lambda: flow.read(url).batch(2),
        lambda: flow.read(url).rename({name: "y"}),
        lambda: flow.read(url, columns=[name, "x"]),
        lambda: flow.from_columns({name: [1]}).batch(1),
    ]
    for written in refused:
        with pytest.raises(PlanError, match=name) as caught:
            written()
        assert "columns=" in caught.value.hint
    assert rows(flow.read(url, columns=["x"])) == [{"x": 1}, {"x": 2}, {"x": 3}]
    odd = flow.read(url, columns=["x"], filter=lambda row: bool(row["x"] % 2))
    assert rows(odd) == [{"x": 1}, {"x": 3}]
    again = flow.load_spec(flow.read(url, columns=["x"]).to_spec())
    assert rows(again) == [{"x": 1}, {"x": 2}, {"x": 3}]


def test_a_pipeline_is_not_iterated_itself() -> None:
    with pytest.raises(TypeError, match=r"not iterable: call \.loader\(\)"):
        list(_source().batch(2))
