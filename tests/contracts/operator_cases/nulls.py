from __future__ import annotations

from operator_case import OperatorCase, dense, gaps

CASES = [
    OperatorCase(
        operator="nulls", about="filled", build=lambda f: gaps(f).nulls("number", "words", "pair", value=7)
    ),
    OperatorCase(
        operator="nulls", about="mask",
        build=lambda f: gaps(f).select("x", "text", "pair", "number").nulls("number", "pair", value=1, mask=True),
    ),
    OperatorCase(operator="nulls", about="text", build=lambda f: gaps(f).select("x", "text").nulls("text", value="-")),
    OperatorCase(
        operator="nulls", about="none there", build=lambda f: dense(f).nulls("x", "image", "words", mask=True)
    ),
]  # fmt: skip
