"""YAML and JSON become plain data as YAML 1.2 and JSON say, and nothing but plain data."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataflow.errors import PlanError
from dataflow.spec.document import parse

plain: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=8),
    lambda part: st.lists(part, max_size=3)
    | st.dictionaries(st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=8), part, max_size=3),
    max_leaves=12,
)  # fmt: skip


@given(plain, st.sampled_from([None, 2, "\t"]), st.booleans())
def test_json_is_read_as_json(data: Any, indent: int | str | None, ascii_only: bool) -> None:
    text = json.dumps(data, indent=indent, ensure_ascii=ascii_only)
    assert parse(text, "file", json=True).data == data


def test_words_that_older_yaml_takes_for_something_else_are_texts() -> None:
    text = "[no, yes, on, off, y, n, 12:30:00, 2024-01-01, 010, 1_000, <<, =]"
    found = parse(text, "file").data
    assert found == ["no", "yes", "on", "off", "y", "n", "12:30:00", "2024-01-01", 10, "1_000", "<<", "="]


def test_numbers_are_those_of_yaml_1_2() -> None:
    assert parse("[1e-3, 1E5, .5, -2., 0x1f, 0o17, +7, .inf, -.INF, null, ~, true, FALSE]", "file").data == [
        0.001, 1e5, 0.5, -2.0, 31, 15, 7, math.inf, -math.inf, None, None, True, False,
    ]  # fmt: skip
    nan = parse(".nan", "file").data
    assert isinstance(nan, float)
    assert math.isnan(nan)


def test_keys_are_texts_as_they_are_written() -> None:
    assert parse("{1: a, true: b, null: c}", "file").data == {"1": "a", "true": "b", "null": "c"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: 1\nb: 2\na: 3", "file:3: 'a' is there twice, first on line 1"),
        ("a:\n  ? [1]\n  : 2", "file:2: a key is no text"),
        ("a: !!python/name:os.system ''", "file:1: the tag"),
        ("a: !thing {}", "file:1: the tag '!thing'"),
        ("a: !!int x", "file:1: 'x' is no int"),
        ("a: &b [*b]", "file:1: it grows without end"),
        ("a: 1\n---\na: 2", "file:2: "),
        ("a: *b", "file:1: found undefined alias 'b'"),
        ("a: 'x\nb: 2", "file:2: "),
        ("\n\n\x07", "file:3: "),
        ("[" * 3000, "file: it is nested too deeply"),
    ],
)
def test_what_is_no_plain_data_is_an_error_with_its_line(text: str, message: str) -> None:
    with pytest.raises(PlanError) as caught:
        parse(text, "file")
    assert caught.value.message.startswith(message)
    assert caught.value.hint


def test_aliases_that_multiply_are_stopped() -> None:
    lines = ["a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]"]
    lines += [f"a{k}: &a{k} [{', '.join([f'*a{k - 1}'] * 10)}]" for k in range(1, 9)]
    with pytest.raises(PlanError, match="grows without end") as caught:
        parse("\n".join(lines), "file")
    assert "aliases" in caught.value.hint


def test_aliases_that_save_writing_are_read() -> None:
    assert parse("a: &part {x: 1}\nb: [*part, *part]", "file").data == {
        "a": {"x": 1},
        "b": [{"x": 1}, {"x": 1}],
    }


def test_a_part_is_found_by_its_path_and_else_what_is_around_it() -> None:
    document = parse("a:\n  - x: 1\n  -\n    y:\n      z: 2\n", "file")
    assert document.where(("a", 0, "x")) == "file:2"
    assert document.where(("a", 1, "y", "z")) == "file:5"
    assert document.where(("a", 1, "w")) == "file:4"
    assert document.where(("a", 7)) == "file:1"
    assert parse("", "file").where(("a",)) == "file"
