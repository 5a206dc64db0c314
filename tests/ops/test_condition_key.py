"""Keys of conditions: those of today are those of tomorrow, and no two conditions have one."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from dataflow.ops.condition_key import condition_key
from dataflow.ops.filter import Filter

DAY = datetime.date(2024, 12, 31)


@pytest.mark.parametrize(
    ("condition", "key"),
    [
        ([("x", ">", 3)], "a79377bd72deffcdec327f6191045c68"),
        (
            [[("x", "=", None)], [("y", "in", {"a", "b"}), ("d", "<=", DAY)]],
            "06e64633ed74c0db1fae663849d5d808",
        ),
        (pc.field("x") > 3, "1bde5f7bd884137e114d4cf7a7603bfd"),
        ((pc.field("x") > 3) & pc.field("y").isin(["a", "b"]), "197281fbccfd3fe893c08a5e4b400b95"),
    ],
)
def test_the_key_of_a_condition_stays_what_it_is(condition: Any, key: str) -> None:
    assert condition_key(condition) == key
    assert Filter(condition=condition).selection_key == f"filter {key}"


def test_one_condition_has_one_key_however_it_is_written() -> None:
    ways: list[list[Any]] = [
        [[("x", "==", 3)], [("x", "=", 3)], [[("x", "==", 3)]], [["x", "==", np.int32(3)]],
         [("x", "==", pa.scalar(3))]],
        [[("x", "in", [1, 2])], [("x", "in", (2, 1))], [("x", "in", {1, 2})], [("x", "in", np.array([2, 1, 2]))]],
        [[("x", "<", np.datetime64("2024-12-31", "s"))], [("x", "<", datetime.datetime(2024, 12, 31))]],
    ]  # fmt: skip
    for same in ways:
        assert len({condition_key(condition) for condition in same}) == 1


def test_other_conditions_have_other_keys() -> None:
    many = list(range(1000))
    others: list[Any] = [
        [("x", "<", 3)], [("x", "<=", 3)], [("y", "<", 3)], [("x", "<", 3.0)], [("x", "<", "3")], [("x", "<", b"3")],
        [("x", "<", Decimal(3))], [("x", "==", None)], [("x", "==", DAY)], [("x", "==", True)],
        [("x", "in", [3])], [("x", "not in", [3])], [("x", "in", many)], [("x", "in", many[:500] + many[501:])],
        [("x", "<", 3), ("y", "<", 3)], [[("x", "<", 3)], [("y", "<", 3)]],
        pc.field("x") < 3, pc.field("x") < pa.scalar(3, pa.int8()), pc.field("x").isin(many),
        pc.field("x").isin(many[:500] + many[501:]), pc.field("x", "y") < 3,
    ]  # fmt: skip
    assert len({condition_key(condition) for condition in others}) == len(others)
