from __future__ import annotations

from operator_case import OperatorCase, dense

CASES = [
    OperatorCase(operator="batch", about="drop", build=lambda f: dense(f).batch(global_size=6, lanes=3)),
    OperatorCase(
        operator="batch",
        about="pad",
        build=lambda f: dense(f).shuffle(6).batch(global_size=6, lanes=2, remainder="pad"),
    ),
    OperatorCase(
        operator="batch",
        about="keep",
        build=lambda f: dense(f).batch(global_size=6, lanes=1, remainder="keep"),
    ),
]
