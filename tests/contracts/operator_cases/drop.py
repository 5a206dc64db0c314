from __future__ import annotations

from operator_case import OperatorCase, dense

CASES = [OperatorCase(operator="drop", about="some", build=lambda f: dense(f).drop("words", "image"))]
