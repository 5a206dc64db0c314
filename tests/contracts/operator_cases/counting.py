"""Take and skip, which count rows in file order."""

from __future__ import annotations

from operator_case import OperatorCase, dense

CASES = [
    OperatorCase(operator="take", about="some rows", build=lambda f: dense(f).take(11)),
    OperatorCase(
        operator="take", about="of those kept", build=lambda f: dense(f).filter([("label", ">", 0)]).take(7)
    ),
    OperatorCase(operator="take", about="all rows", build=lambda f: dense(f).take(1000)),
    OperatorCase(operator="skip", about="some rows", build=lambda f: dense(f).skip(4)),
    OperatorCase(operator="skip", about="twice", build=lambda f: dense(f).skip(2).take(12).skip(3)),
]
