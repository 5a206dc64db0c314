"""Sizes of resize and places of center_crop are those of torchvision's definitions."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dataflow as flow
from dataflow.errors import PlanError
from dataflow.ops.images.center_crop import CenterCrop
from dataflow.ops.images.pixels.picture import Picture, Stored
from dataflow.ops.images.resize import Resize

sides = st.integers(1, 2000)


def _size(height: int, width: int, **arguments: Any) -> tuple[int, int]:
    planned = Resize(column="image", **arguments).plan(
        np.array([[height, width]]), np.zeros((1, 0), np.uint32)
    )
    made: tuple[int, int] = tuple(planned.sizes[0].tolist())
    assert tuple(planned.params[0]) == made
    return made


# Made by torchvision 0.29.1: sizes for shorter=256, also with max_size=300, and for longer=256.
@pytest.mark.parametrize(
    ("size", "shorter", "most", "longer"),
    [
        ((480, 640), (256, 341), (225, 300), (192, 256)),
        ((640, 480), (341, 256), (300, 225), (256, 192)),
        ((333, 1000), (256, 768), (100, 300), (85, 256)),
        ((7, 1500), (256, 54857), (1, 300), (1, 256)),
        ((500, 500), (256, 256), (256, 256), (256, 256)),
        ((1, 1), (256, 256), (256, 256), (256, 256)),
    ],
)
def test_sizes_are_those_of_torchvision(
    size: tuple[int, int], shorter: tuple[int, int], most: tuple[int, int], longer: tuple[int, int]
) -> None:
    assert _size(*size, shorter=256) == shorter
    assert _size(*size, shorter=256, max_size=300) == most
    assert _size(*size, longer=256) == longer


@given(sides, sides, st.integers(1, 500), st.integers(1, 500))
def test_sizes_are_those_of_the_definition(height: int, width: int, side: int, more: int) -> None:
    """torchvision.transforms.functional._compute_resized_output_size; no side becomes 0."""
    short, long = sorted((height, width))
    new_short, new_long = side, int(side * long / short)
    if new_long > side + more:
        new_short, new_long = int((side + more) * new_short / new_long), side + more
    wanted = [max(1, new_short), new_long]
    made = _size(height, width, shorter=side, max_size=side + more)
    assert sorted(made) == wanted
    assert (made[0] <= made[1]) == (height <= width) or made[0] == made[1]


@given(st.integers(1, 40), st.integers(1, 40), st.integers(1, 40), st.integers(1, 40))
def test_the_middle_is_that_of_the_definition(height: int, width: int, high: int, wide: int) -> None:
    """torchvision.transforms.v2.functional.center_crop: padded to the size, then cut from round(half of the rest)."""
    pixels = np.random.default_rng(height).integers(1, 256, (height, width, 2), np.uint8)
    padded = np.pad(pixels, [
        (max(0, size - side) // 2, (max(0, size - side) + 1) // 2) for size, side in ((high, height), (wide, width))
    ] + [(0, 0)])  # fmt: skip
    top, left = (round((have - want) / 2) for have, want in zip(padded.shape, (high, wide), strict=False))
    step = CenterCrop(column="image", size=(high, wide))
    picture = Picture(Stored(pixels))
    step.change(picture, step.plan(np.array([[height, width]]), np.zeros((1, 0), np.uint32)).params[0])
    assert np.array_equal(picture.pixels(), padded[top : top + high, left : left + wide])


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        ({"size": 8, "max_size": 9}, "shorter="),
        ({"longer": 8, "max_size": 9}, "shorter="),
        ({"shorter": 8, "max_size": 8}, "larger"),
        ({"shorter": 8, "max_size": 9.5}, "larger"),
    ],
)
def test_a_size_that_cannot_hold_is_an_error(arguments: dict[str, Any], what: str) -> None:
    pipe = flow.from_columns({"image": np.zeros((1, 8, 8, 3), np.uint8)})
    with pytest.raises(PlanError) as caught:
        cast(Any, pipe).resize("image", **arguments)
    assert what in str(caught.value.hint)


def test_the_size_of_images_of_one_size_is_known_beforehand() -> None:
    pipe = flow.from_columns({"image": np.zeros((1, 60, 100, 3), np.uint8)})
    assert "shape=[30,50,3]" in str(pipe.resize("image", shorter=40, max_size=50).schema)
