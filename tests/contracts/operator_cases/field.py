from __future__ import annotations

from operator_case import OperatorCase, nested

CASES = [
    OperatorCase(operator="field", about="with nulls", build=lambda f: nested(f).field("file", "bytes")),
    OperatorCase(
        operator="field", about="numbers and lists",
        build=lambda f: nested(f).field("pair", "left").field("file", "path"),
    ),
]  # fmt: skip
