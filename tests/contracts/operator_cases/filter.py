from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow.compute as pc
from operator_case import OperatorCase, dense, gaps

Row = dict[str, Any]


def short(row: Row) -> bool:
    return len(row["words"]) < 3


def low(columns: Row) -> npt.NDArray[np.bool_]:
    kept: npt.NDArray[np.bool_] = columns["label"] < 3
    return kept


def labelled(row: Row) -> Row:
    return {"x": row["x"], "odd": row["x"] % 2}


CASES = [
    OperatorCase(operator="filter", about="terms", build=lambda f: dense(f).filter([("label", ">", 1)])),
    OperatorCase(
        operator="filter", about="expression",
        build=lambda f: dense(f).filter((pc.field("label") > 2) | (pc.field("text") == "row ")),
    ),
    OperatorCase(operator="filter", about="by row", build=lambda f: dense(f).filter(short)),
    OperatorCase(operator="filter", about="by block", build=lambda f: dense(f).filter(low, batched=True, batch_size=4)),
    OperatorCase(operator="filter", about="counted", build=lambda f: dense(f).filter(short).counted()),
    OperatorCase(
        operator="filter", about="behind a map", build=lambda f: dense(f).map(labelled).filter([("odd", "=", 1)])
    ),
    OperatorCase(
        operator="filter", about="nulls",
        build=lambda f: gaps(f).select("text", "x", "number").nulls("number").filter([("text", "!=", None)]),
    ),
]  # fmt: skip
