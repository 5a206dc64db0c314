"""Arrow expressions as text: what is written is read back equal, and nothing is evaluated."""

from __future__ import annotations

import datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataflow.errors import PlanError
from dataflow.graph.expression import read_expression, written_expression

columns = st.sampled_from(["x", "long_name", "a.b", "_1"]).map(pc.field)
values = (
    st.integers(-(2**62), 2**62)
    | st.text(max_size=6)
    | st.booleans()
    | st.dates(datetime.date(1, 1, 1)).map(lambda day: day)
    | st.integers(-99, 99).map(lambda n: n / 4 + 0.125)
)


def joined(parts: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return (
        st.tuples(parts, parts).map(lambda two: two[0] & two[1])
        | st.tuples(parts, parts).map(lambda two: two[0] | two[1])
        | parts.map(lambda one: ~one)
    )


compared = (
    st.tuples(columns, values).map(lambda two: two[0] > two[1])
    | st.tuples(columns, values).map(lambda two: two[0] == two[1])
    | columns.map(lambda column: column.is_valid())
    | st.tuples(columns, st.booleans()).map(lambda two: two[0].is_null(nan_is_null=two[1]))
    | st.tuples(columns, st.lists(st.integers(-9, 9), min_size=1, max_size=5)).map(lambda two: two[0].isin(two[1]))
)  # fmt: skip


@given(st.recursive(compared, joined, max_leaves=6))
def test_what_filters_use_comes_back_equal(expression: Any) -> None:
    text = written_expression(expression)
    assert read_expression(text).equals(expression)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "expression",
    [
        pc.field("with space") == 1,
        pc.field("x") == pa.scalar(3, pa.int8()),
        pc.field("x") == b"bytes",
        pc.field("s", "inner") == 1,
        pc.field("x").cast(pa.int32()) == 1,
        pc.field("true") == 1,
        pc.field("x").isin(list(range(100))),
        pc.field("x") > pa.scalar(None, pa.int64()),
    ],
)
def test_what_would_not_come_back_equal_is_refused(expression: pc.Expression) -> None:
    with pytest.raises(PlanError, match="cannot be written") as caught:
        written_expression(expression)
    assert "terms" in caught.value.hint


@pytest.mark.parametrize(
    "text",
    ["", "(x > 3", "x > 3", "(x > 3))", "system(x)", "__import__(x)", "(x ** 3)", "(x > 3; y)", "(" * 5000, "(x > $)"],
)  # fmt: skip
def test_what_is_no_expression_is_an_error(text: str) -> None:
    with pytest.raises(PlanError, match="no Arrow expression") as caught:
        read_expression(text)
    assert "terms" in caught.value.hint
