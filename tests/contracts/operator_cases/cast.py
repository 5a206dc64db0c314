from __future__ import annotations

from operator_case import OperatorCase, dense, gaps

CASES = [
    OperatorCase(operator="cast", about="numbers", build=lambda f: dense(f).cast({"x": "float32", "label": "int8"})),
    OperatorCase(
        operator="cast", about="lists",
        build=lambda f: dense(f).cast({"words": "list<int64>", "pair": "float32[2]", "x": "string"}),
    ),
    OperatorCase(operator="cast", about="cut off", build=lambda f: dense(f).cast({"level": "int32"}, safe=False)),
    OperatorCase(
        operator="cast", about="nulls",
        build=lambda f: gaps(f).select("number", "text").cast({"number": "string", "text": "large_string"}),
    ),
]  # fmt: skip
