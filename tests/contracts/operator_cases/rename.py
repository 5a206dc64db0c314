from __future__ import annotations

from typing import Any

from operator_case import OperatorCase, dense, gaps

Row = dict[str, Any]


def numbered(row: Row) -> Row:
    return {"x": row["x"], "label": row["label"], "text": row["text"]}


CASES = [
    OperatorCase(operator="rename", about="some", build=lambda f: dense(f).rename({"x": "number", "image": "pixels"})),
    OperatorCase(
        operator="rename", about="two for each other", build=lambda f: dense(f).rename({"x": "label", "label": "x"})
    ),
    OperatorCase(
        operator="rename", about="again",
        build=lambda f: dense(f).rename({"x": "a", "label": "b"}).rename({"a": "b", "b": "x"}),
    ),
    OperatorCase(
        operator="rename", about="what a step below needs",
        build=lambda f: gaps(f).select("x", "number").nulls("number").rename({"x": "number", "number": "x"}),
    ),
    OperatorCase(
        operator="rename", about="what a function made",
        build=lambda f: dense(f).map(numbered).rename({"x": "label", "label": "x"}),
    ),
]  # fmt: skip
