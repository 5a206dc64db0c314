"""The boxes of random_resized_crop are those that torchvision's definition gives."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dataflow as flow
from dataflow.errors import PlanError
from dataflow.ops.images.random_resized_crop import crop_boxes

SCALE, RATIO = (0.08, 1.0), (3 / 4, 4 / 3)
sides = st.integers(1, 5000)


def _defined(height: int, width: int, words: list[int]) -> tuple[int, int, int, int]:
    """torchvision.transforms.v2.RandomResizedCrop.make_params with these words for its draws."""
    for area_word, ratio_word, top_word, left_word in zip(*[iter(words)] * 4, strict=True):
        area = height * width * (SCALE[0] + (SCALE[1] - SCALE[0]) * area_word / 2**32)
        low, high = math.log(RATIO[0]), math.log(RATIO[1])
        ratio = math.exp(low + (high - low) * ratio_word / 2**32)
        w, h = round(math.sqrt(area * ratio)), round(math.sqrt(area / ratio))
        if 0 < w <= width and 0 < h <= height:
            return (height - h + 1) * top_word >> 32, (width - w + 1) * left_word >> 32, h, w
    if width / height < RATIO[0]:
        w, h = width, round(width / RATIO[0])
    elif width / height > RATIO[1]:
        h, w = height, round(height * RATIO[1])
    else:
        h, w = height, width
    return (height - h) // 2, (width - w) // 2, h, w


@given(sides, sides, st.lists(st.integers(0, 2**32 - 1), min_size=40, max_size=40))
def test_a_box_is_that_of_the_definition(height: int, width: int, words: list[int]) -> None:
    made = crop_boxes(np.array([[height, width]]), np.array([words], np.uint32), SCALE, RATIO)
    assert tuple(made[0].tolist()) == _defined(height, width, words)


@given(sides, sides, st.integers(0, 2**32 - 1))
def test_a_box_lies_inside_its_image(height: int, width: int, seed: int) -> None:
    words = np.random.default_rng(seed).integers(0, 2**32, (8, 40), np.uint32)
    top, left, h, w = crop_boxes(np.full((8, 2), (height, width)), words, SCALE, RATIO).T
    assert min(top.min(), left.min()) >= 0
    assert min(h.min(), w.min()) > 0
    assert (top + h).max() <= height
    assert (left + w).max() <= width


def test_an_image_far_too_long_gives_its_middle() -> None:
    words = np.random.default_rng(0).integers(0, 2**32, (1, 40), np.uint32)
    assert crop_boxes(np.array([[10, 5000]]), words, (0.9, 1.0), RATIO).tolist() == [[0, 2493, 10, 13]]


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        ({"size": 0}, "size"),
        ({"size": (3, 4, 5)}, "size"),
        ({"size": 8, "scale": (0.5, 0.1)}, "scale"),
        ({"size": 8, "scale": (0.5, 1.5)}, "scale"),
        ({"size": 8, "ratio": (0, 1)}, "ratio"),
        ({"size": 8, "filter": "bilinar"}, "bilinear"),
    ],
)
def test_arguments_that_make_no_box_are_an_error(arguments: dict[str, object], what: str) -> None:
    with pytest.raises(PlanError, match=what):
        flow.from_columns({"image": [b""]}).decode_image("image").random_resized_crop("image", **arguments)  # type: ignore[arg-type]
