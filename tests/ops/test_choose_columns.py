"""`select`, `drop`, `rename`: wrong names fail when they are written, and name what is near."""

from __future__ import annotations

from typing import Any

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
        (lambda pipe: pipe.pad({"label": 0}), "length 0", "over 0"),
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
