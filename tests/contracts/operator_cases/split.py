from __future__ import annotations

from operator_case import OperatorCase, dense

SHARES = {"train": 0.6, "val": 0.4}

CASES = [
    OperatorCase(operator="split", about="by place", build=lambda f: dense(f).split(SHARES)["train"]),
    OperatorCase(operator="split", about="by value", build=lambda f: dense(f).split(SHARES, by="x")["train"]),
    OperatorCase(
        operator="split",
        about="again",
        build=lambda f: dense(f).split(SHARES)["train"].split(SHARES)["train"],
    ),
]
