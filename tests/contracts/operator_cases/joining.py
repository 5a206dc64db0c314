"""Concat and zip, which have several inputs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from operator_case import OperatorCase, dense, gaps

import dataflow as flow

Row = dict[str, Any]


def copied(row: Row) -> list[Row]:
    return [{"x": row["x"], "text": row["text"]}] * int(row["x"] % 3)


def _zipped(folder: Path) -> flow.Pipeline:
    filled = gaps(folder).select("number", "words").nulls("number", "words").rename({"words": "levels"})
    return flow.zip(dense(folder), filled)


CASES = [
    OperatorCase(operator="concat", about="alike", build=lambda f: flow.concat(dense(f), dense(f).take(4))),
    OperatorCase(
        operator="concat", about="of other types",
        build=lambda f: flow.concat(
            dense(f).select("x", "text"), gaps(f).select("x", "text").cast({"x": "float64"})
        ),
    ),
    OperatorCase(
        operator="concat", about="one input makes several rows of one",
        build=lambda f: flow.concat(
            dense(f).select("x", "text"),
            gaps(f).select("x", "text").flat_map(copied, schema={"x": "int64", "text": "string"}),
        ),
    ),
    OperatorCase(operator="zip", about="side by side", build=_zipped),
]  # fmt: skip
