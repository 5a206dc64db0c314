from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from operator_case import OperatorCase, dense

Row = dict[str, Any]


def copies(row: Row) -> list[Row]:
    return [{"x": row["x"], "copy": copy, "image": row["image"]} for copy in range(int(row["x"]) % 3)]


def drawn(row: Row, rng: np.random.Generator) -> Iterator[Row]:
    for word in row["words"]:
        yield {"word": word, "text": row["text"], "drawn": rng.random()}


CASES = [
    OperatorCase(operator="flat_map", about="by row", build=lambda f: dense(f).flat_map(copies)),
    OperatorCase(operator="flat_map", about="drawn", build=lambda f: dense(f).flat_map(drawn, rng=True)),
    OperatorCase(
        operator="flat_map", about="nested", build=lambda f: dense(f).flat_map(copies).flat_map(copies)
    ),
]
