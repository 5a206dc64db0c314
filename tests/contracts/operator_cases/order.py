"""Shuffle and repeat, which change the order."""

from __future__ import annotations

from typing import Any

import numpy as np
from operator_case import OperatorCase, dense

Row = dict[str, Any]


def several(row: Row) -> list[Row]:
    return [{"x": row["x"], "word": word} for word in row["words"]]


def drawn(row: Row, rng: np.random.Generator) -> Row:
    return {"x": row["x"], "drawn": rng.random()}


CASES = [
    OperatorCase(operator="shuffle", about="rows", build=lambda f: dense(f).shuffle(6)),
    OperatorCase(operator="shuffle", about="bytes", build=lambda f: dense(f).shuffle("64MB").seed(5)),
    OperatorCase(
        operator="shuffle",
        about="behind a filter",
        build=lambda f: dense(f).filter([("label", ">", 0)]).shuffle(5),
    ),
    OperatorCase(
        operator="shuffle", about="behind flat_map", build=lambda f: dense(f).flat_map(several).shuffle(8)
    ),
    OperatorCase(operator="repeat", about="in order", build=lambda f: dense(f).repeat(2)),
    OperatorCase(operator="repeat", about="shuffled", build=lambda f: dense(f).shuffle(6).repeat(2)),
    OperatorCase(operator="repeat", about="drawn", build=lambda f: dense(f).map(drawn, rng=True).repeat(2)),
]
