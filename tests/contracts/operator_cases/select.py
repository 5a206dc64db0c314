from __future__ import annotations

from operator_case import OperatorCase, dense

CASES = [
    OperatorCase(operator="select", about="some", build=lambda f: dense(f).select("words", "x", "image")),
    OperatorCase(
        operator="select", about="twice", build=lambda f: dense(f).select("x", "label").select("label")
    ),
]
