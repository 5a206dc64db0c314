"""Whole numbers among the values that users give."""

from __future__ import annotations

import pytest

from dataflow.given import is_whole


@pytest.mark.parametrize("value", [3, 4, 1 << 70])
def test_a_whole_number_from_the_least_up_is_one(value: object) -> None:
    assert is_whole(value, 3)


@pytest.mark.parametrize("value", [2, -3, 3.0, "3", None, [3]])
def test_a_smaller_one_and_what_is_no_whole_number_is_none(value: object) -> None:
    assert not is_whole(value, 3)


@pytest.mark.parametrize("value", [True, False])
def test_a_truth_value_is_no_number(value: bool) -> None:
    assert not is_whole(value, 0)
