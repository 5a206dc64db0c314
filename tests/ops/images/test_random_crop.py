"""random_crop cuts where torchvision's definition does, of the image with its padding around it."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from photographs import encoded, photograph

import dataflow as flow
from dataflow.errors import DataError, PlanError
from dataflow.ops.images.pixels.picture import Picture, Stored
from dataflow.ops.images.random_crop import RandomCrop

sides = st.integers(1, 40)
words = st.integers(0, 2**32 - 1)


def _defined(
    pixels: npt.NDArray[Any], size: tuple[int, int], padding: tuple[int, ...], draws: list[int], mode: Any
) -> npt.NDArray[Any]:  # fmt: skip
    """torchvision.transforms.v2.RandomCrop.make_params with these words for its draws, padded by NumPy."""
    left, above, right, below = padding
    height, width = pixels.shape[0] + above + below, pixels.shape[1] + left + right
    if height < size[0]:
        above, below, height = above + size[0] - height, below + size[0] - height, 2 * size[0] - height
    if width < size[1]:
        left, right, width = left + size[1] - width, right + size[1] - width, 2 * size[1] - width
    whole = np.pad(pixels, ((above, below), (left, right), (0, 0)), mode)
    top, side = (height - size[0] + 1) * draws[0] >> 32, (width - size[1] + 1) * draws[1] >> 32
    return whole[top : top + size[0], side : side + size[1]]


def _made(step: RandomCrop, pixels: npt.NDArray[Any], draws: list[int]) -> npt.NDArray[Any]:
    planned = step.plan(np.array([pixels.shape[:2]]), np.array([draws], np.uint32))
    picture = Picture(Stored(pixels))
    step.change(picture, planned.params[0])
    assert picture.size == tuple(planned.sizes[0].tolist())
    return picture.pixels()


@given(
    sides, sides, sides, sides, st.tuples(*[st.integers(0, 9)] * 4), words, words,
    st.sampled_from(["constant", "edge", "reflect", "symmetric"]), st.sampled_from([1, 3, 4]),
)  # fmt: skip
def test_a_crop_is_that_of_the_definition(
    height: int, width: int, high: int, wide: int, padding: tuple[int, ...], down: int, across: int,
    mode: Any, channels: int,
) -> None:  # fmt: skip
    pixels = np.random.default_rng(height * 41 + width).integers(0, 256, (height, width, channels), np.uint8)
    step = RandomCrop(
        column="image", size=(high, wide), padding=padding, pad_if_needed=True, padding_mode=mode
    )
    wanted = _defined(pixels, (high, wide), padding, [down, across], mode)
    assert np.array_equal(_made(step, pixels, [down, across]), wanted)


def test_what_is_added_has_the_fill() -> None:
    pixels = photograph(0, 4, 5)
    step = RandomCrop(column="image", size=(8, 9), padding=(2, 2, 2, 2), around=(7, 8, 9))
    made = _made(step, pixels, [0, 0])
    assert made[0, 0].tolist() == made[-1, -1].tolist() == [7, 8, 9]
    assert np.array_equal(made[2:6, 2:7], pixels)


def test_an_image_that_is_too_small_is_a_bad_row_or_is_padded() -> None:
    rows = [encoded(photograph(row, 40 - 10 * (row == 2), 50)) for row in range(4)]
    pipe = flow.from_columns({"image": rows}).decode_image("image")
    small = pipe.random_crop("image", 32).batch(2)
    with pytest.raises(DataError, match="30 x 50") as caught, small.loader() as loader:
        list(loader)
    assert "pad_if_needed" in str(caught.value.hint)
    for padded in (
        pipe.random_crop("image", 32, padding=1),
        pipe.random_crop("image", 32, pad_if_needed=True),
    ):
        with padded.batch(2).loader() as loader:
            assert [batch["image"].shape for batch in loader] == [(2, 32, 32, 3)] * 2


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        ({"size": 0}, "size"),
        ({"size": 65}, "pad_if_needed"),
        ({"size": 70, "padding": 2}, "68 x 68"),
        ({"size": 8, "padding": -1}, "padding"),
        ({"size": 8, "padding": (1, 2, 3)}, "all four"),
        ({"size": 8, "padding": 1.5}, "padding"),
        ({"size": 8, "padding_mode": "refelct"}, "reflect"),
        ({"size": 8, "fill": 256}, "255"),
        ({"size": 8, "fill": (1, 2)}, "each channel"),
        ({"size": 8, "fill": "black"}, "fill"),
    ],
)
def test_arguments_that_make_no_crop_are_an_error(arguments: dict[str, Any], what: str) -> None:
    pipe = flow.from_columns({"image": np.zeros((2, 64, 64, 3), np.uint8)})
    with pytest.raises(PlanError) as caught:
        cast(Any, pipe).random_crop("image", **arguments)
    assert what in f"{caught.value} {caught.value.hint}"


def test_padding_of_two_numbers_is_left_and_right_and_above_and_below() -> None:
    pipe = flow.from_columns({"image": np.full((1, 3, 4, 1), 9, np.uint8)}).random_crop(
        "image", (7, 6), padding=(1, 2)
    )
    with pipe.batch(1).loader(output="numpy") as loader:
        image = next(iter(loader))["image"][0, ..., 0]
    assert image.tolist() == np.pad(np.full((3, 4), 9), ((2, 2), (1, 1))).tolist()
