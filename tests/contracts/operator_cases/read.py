from __future__ import annotations

from operator_case import OperatorCase, dense

import dataflow as flow

CASES = [
    OperatorCase(operator="read", about="a file", build=dense),
    OperatorCase(
        operator="read", about="a pattern", build=lambda f: flow.read(f / "den*.arrow", format="arrow")
    ),
]
