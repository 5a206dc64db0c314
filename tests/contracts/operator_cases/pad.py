from __future__ import annotations

from operator_case import OperatorCase, dense, gaps

CASES = [
    OperatorCase(operator="pad", about="filled", build=lambda f: dense(f).pad({"words": 5}, value=-1)),
    OperatorCase(
        operator="pad",
        about="cut",
        build=lambda f: dense(f).pad({"words": 2, "pair": 3}, truncate=True, mask=True),
    ),
    OperatorCase(
        operator="pad",
        about="nulls",
        build=lambda f: gaps(f).select("words", "pair").pad({"words": 3, "pair": 2}).nulls("words", "pair"),
    ),
]
