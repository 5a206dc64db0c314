"""The factors of color_jitter and their order are those of torchvision's definition."""

from __future__ import annotations

from collections import Counter
from itertools import permutations
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dataflow as flow
from dataflow.errors import PlanError
from dataflow.ops.images.color_jitter import ColorJitter

words = st.lists(st.integers(0, 2**32 - 1), min_size=5, max_size=5)
NAMES = ("brightness", "contrast", "saturation", "hue")


def drawn(step: ColorJitter, *rows: list[int]) -> list[list[tuple[str, float]]]:
    planned = step.plan(np.full((len(rows), 2), 8), np.array(rows, np.uint32))
    return list(planned.params)


@given(words)
def test_factors_lie_in_their_ranges_and_come_in_the_drawn_order(row: list[int]) -> None:
    step = ColorJitter(column="image", brightness=0.4, contrast=(0.5, 0.7), saturation=1.5, hue=0.1)
    (made,) = drawn(step, row)
    ranges = {"brightness": (0.6, 1.4), "contrast": (0.5, 0.7), "saturation": (0.0, 2.5), "hue": (-0.1, 0.1)}
    assert tuple(name for name, _ in made) == list(permutations(NAMES))[24 * row[4] >> 32]
    for name, factor in made:
        low, high = ranges[name]
        assert factor == pytest.approx(low + (high - low) * row[NAMES.index(name)] / 2**32)


def test_all_orders_are_equally_likely() -> None:
    rows = np.random.default_rng(0).integers(0, 2**32, (24_000, 5), np.uint32)
    step = ColorJitter(column="image", brightness=1, contrast=1, saturation=1, hue=0.5)
    found = Counter(tuple(name for name, _ in image) for image in drawn(step, *rows.tolist()))
    assert len(found) == 24
    assert min(found.values()) > 850
    assert max(found.values()) < 1150


@given(words)
def test_what_is_not_asked_for_is_not_done(row: list[int]) -> None:
    assert drawn(ColorJitter(column="image"), row) == [[]]
    assert drawn(ColorJitter(column="image", brightness=(1, 1), hue=(0, 0)), row) == [[]]
    ((only,),) = drawn(ColorJitter(column="image", contrast=(0.25, 0.25)), row)
    assert only == ("contrast", 0.25)


@pytest.mark.parametrize(
    "wrong",
    [
        {"brightness": -0.1}, {"brightness": (0.9, 0.1)}, {"contrast": (-0.1, 1)}, {"saturation": "much"},
        {"hue": 0.6}, {"hue": (-0.6, 0)}, {"hue": True}, {"contrast": (1, 2, 3)}, {"brightness": float("inf")},
        {"brightness": None}, {"brightness": np.arange(2)}, {"saturation": float("nan")},
    ],
)  # fmt: skip
def test_a_strength_that_is_none_is_an_error(wrong: dict[str, Any]) -> None:
    (name,) = wrong
    with pytest.raises(PlanError, match=f"color_jitter: {name}=") as caught:
        flow.from_columns({"image": [b""]}).decode_image("image").color_jitter("image", **wrong)
    assert "(low, high)" in caught.value.hint
