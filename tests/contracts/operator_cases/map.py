"""By row and by block, with a schema and without, added and in place, drawn and not."""

from __future__ import annotations

from typing import Any

import numpy as np
from operator_case import OperatorCase, dense, gaps

Row = dict[str, Any]


def replaced(row: Row) -> Row:
    return {
        "double": 2 * row["x"],
        "text": row["text"] + "!",
        "image": row["image"] / 2,
        "words": row["words"],
    }


def added(row: Row) -> Row:
    return {"label": int(row["label"]) + 0.5, "size": len(row["words"])}


def written_in_place(row: Row) -> Row:
    row["image"] += 1
    row["words"] *= 2
    return row


def drawn(row: Row, rng: np.random.Generator) -> Row:
    return {"x": row["x"], "drawn": rng.random(2)}


def doubled(columns: Row) -> Row:
    columns["image"] *= 2
    return {"image": columns["image"], "x": columns["x"], "text": columns["text"]}


def block_drawn(columns: Row, rng: np.random.Generator) -> Row:
    return {"drawn": rng.random(len(columns["x"]))}


def of_gaps(row: Row) -> Row:
    return {"known": row["number"] is not None, "text": row["text"]}


TYPES = {"double": "int64", "text": "string", "image": "float32[2,2]", "words": "list<int16>"}

CASES = [
    OperatorCase(operator="map", about="by row", build=lambda f: dense(f).map(replaced)),
    OperatorCase(operator="map", about="schema", build=lambda f: dense(f).map(replaced, schema=TYPES)),
    OperatorCase(operator="map", about="added", build=lambda f: dense(f).map(added, add=True)),
    OperatorCase(operator="map", about="in place", build=lambda f: dense(f).map(written_in_place)),
    OperatorCase(operator="map", about="drawn", build=lambda f: dense(f).map(drawn, rng=True).seed(3)),
    OperatorCase(
        operator="map", about="named draws", build=lambda f: dense(f).map(drawn, rng=True, key="noise").repeat(2)
        .map(drawn, rng=True, key="more"),
    ),
    OperatorCase(operator="map", about="by block", build=lambda f: dense(f).map(doubled, batched=True, batch_size=4)),
    OperatorCase(
        operator="map", about="by block, drawn",
        build=lambda f: dense(f).map(block_drawn, batched=True, batch_size=4, add=True, rng=True),
    ),
    OperatorCase(operator="map", about="nulls", build=lambda f: gaps(f).map(of_gaps)),
]  # fmt: skip
