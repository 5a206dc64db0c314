"""random_rotate turns as torchvision's definition does."""

from __future__ import annotations

import math
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from photographs import photograph

import dataflow as flow
from dataflow.errors import PlanError
from dataflow.ops.images.filters import WarpFilter
from dataflow.ops.images.pixels.picture import Picture, Stored
from dataflow.ops.images.random_rotate import RandomRotate, turned

Pixels = npt.NDArray[Any]
TURNS: list[tuple[float, bool, tuple[float, float] | None]] = [
    (30, False, None), (-75.5, True, None), (90, True, None), (180, False, None), (20, False, (10.0, 5.0)),
    (0, True, None), (359, False, None),
]  # fmt: skip


def _made(pixels: Pixels, degrees: float, filter: WarpFilter, expand: bool = False, **more: Any) -> Pixels:
    step = RandomRotate(column="image", degrees=(degrees, degrees), filter=filter, expand=expand, **more)
    planned = step.plan(np.array([pixels.shape[:2]]), np.zeros((1, 1), np.uint32))
    picture = Picture(Stored(pixels))
    step.change(picture, planned.params[0])
    assert picture.size == tuple(planned.sizes[0].tolist())
    return picture.pixels()


def _defined(
    pixels: Pixels, degrees: float, size: tuple[int, int], center: tuple[float, float] | None, fill: int
) -> Pixels:
    """Every pixel of a turned image is where the turn back leads from its middle, bilinear; `fill` lies around."""
    height, width = pixels.shape
    around = np.full((height + 2, width + 2), float(fill))
    around[1:-1, 1:-1] = pixels
    cos, sin = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
    x0, y0 = center or (width / 2, height / 2)
    x1, y1 = center or (size[1] / 2, size[0] / 2)
    out = np.full(size, float(fill))
    for row in range(size[0]):
        for column in range(size[1]):
            dx, dy = column + 0.5 - x1, row + 0.5 - y1
            x, y = cos * dx - sin * dy + x0 + 0.5, sin * dx + cos * dy + y0 + 0.5
            left, top = math.floor(x), math.floor(y)
            if 0 <= left <= width and 0 <= top <= height:
                part, a, b = around[top : top + 2, left : left + 2], x - left, y - top
                out[row, column] = np.array([1 - b, b]) @ part @ np.array([1 - a, a])
    return out


@pytest.mark.parametrize(("degrees", "expand", "center"), TURNS)
def test_bilinear_pixels_are_those_of_the_definition(
    degrees: float, expand: bool, center: tuple[float, float] | None
) -> None:
    pixels = photograph(3, 30, 50)[..., :1]
    made = _made(pixels, degrees, "bilinear", expand, center=center, around=100)
    wanted = _defined(pixels[..., 0], degrees, made.shape[:2], center, 100)
    # OpenCV may know places to 1/32 of a pixel.
    slope = max(np.abs(np.diff(pixels.astype(int), axis=axis)).max() for axis in (0, 1))
    assert np.abs(made[..., 0] - wanted).max() <= 1 + max(slope, 155) / 32
    assert np.abs(made[..., 0] - wanted).mean() < 0.6


# Made by torchvision 0.29.1: rotate(arange(7 * 9) * 4 as (1, 7, 9), 30, NEAREST, fill=200).
NEAREST = [
    [200, 200, 200, 20, 24, 60, 64, 104, 200], [200, 8, 12, 52, 56, 96, 100, 140, 140],
    [4, 44, 48, 88, 88, 128, 132, 172, 176], [40, 40, 80, 84, 124, 164, 168, 172, 208],
    [72, 76, 116, 120, 160, 160, 200, 204, 244], [108, 108, 148, 152, 192, 196, 236, 240, 200],
    [200, 144, 184, 188, 224, 228, 200, 200, 200],
]  # fmt: skip


def test_nearest_pixels_are_those_of_torchvision() -> None:
    pixels = (np.arange(63, dtype=np.uint8) * 4).reshape(7, 9, 1)
    differ = np.argwhere(_made(pixels, 30, "nearest", around=200)[..., 0] != np.array(NEAREST))
    assert differ.tolist() in ([], [[3, 5]]), "one place lies in the middle between two pixels"


@pytest.mark.parametrize("filter", ["nearest", "bilinear"])
@pytest.mark.parametrize("size", [(1, 1), (1, 9), (8, 5), (31, 64)])
@pytest.mark.parametrize("channels", [1, 3, 4])
def test_quarter_turns_move_pixels_and_make_none(
    filter: WarpFilter, size: tuple[int, int], channels: int
) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (*size, channels), np.uint8)
    for quarters in range(-3, 5):
        assert np.array_equal(_made(pixels, 90 * quarters, filter, True), np.rot90(pixels, quarters))
    assert np.array_equal(_made(pixels, 180, filter), pixels[::-1, ::-1])


# Made by torchvision 0.29.1: heights and widths of rotate(zeros(3, 30, 50), degrees, expand=True).
@pytest.mark.parametrize(
    ("degrees", "size"), [(30, (52, 60)), (-75.5, (56, 42)), (90, (50, 30)), (0, (30, 50)), (180, (30, 50))]
)
def test_an_image_that_expands_has_the_size_that_torchvision_gives(
    degrees: float, size: tuple[int, int]
) -> None:
    _, after = turned(np.array([[30, 50]]), np.array([float(degrees)]), None, expand=True)
    assert tuple(after[0].tolist()) == size


@given(st.integers(1, 300), st.integers(1, 300), st.floats(-360, 360))
def test_a_turned_image_that_expands_holds_all_corners_and_no_more(
    height: int, width: int, degrees: float
) -> None:
    matrices, after = turned(np.array([[height, width]]), np.array([degrees]), None, expand=True)
    corners = np.array([[0, 0, 1], [width, 0, 1], [0, height, 1], [width, height, 1]])
    places = corners @ matrices[0].T
    high, wide = after[0].tolist()
    assert (places >= -1e-3).all()
    assert (places <= np.array([wide, high]) + 1e-3).all()
    span = places.max(axis=0) - places.min(axis=0)
    assert (np.array([wide, high]) < span + 2).all()


@settings(max_examples=20)
@given(st.floats(-90, 90), st.floats(0, 90))
def test_angles_are_even_over_their_range(low: float, span: float) -> None:
    step = RandomRotate(column="image", degrees=(low, low + span))
    words = np.linspace(0, 2**32 - 1, 9).astype(np.uint32)[:, None]
    made = [
        math.degrees(math.atan2(matrix[0, 1], matrix[0, 0]))
        for matrix, _ in step.plan(np.full((9, 2), 10), words).params
    ]
    assert np.allclose(made, np.linspace(low, low + span, 9), atol=1e-6)


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        ({"degrees": -5}, "(low, high)"),
        ({"degrees": (5, 1)}, "(low, high)"),
        ({"degrees": "90"}, "(low, high)"),
        ({"degrees": 5, "filter": "bilinaer"}, "bilinear"),
        ({"degrees": 5, "center": (1, 2), "expand": True}, "without expand"),
        ({"degrees": 5, "center": 3}, "(x, y)"),
        ({"degrees": 5, "fill": (1, 2, 3)}, "each channel"),
        ({"degrees": 5, "fill": -1}, "255"),
    ],
)
def test_arguments_that_make_no_turn_are_an_error(arguments: dict[str, Any], what: str) -> None:
    pipe = flow.from_columns({"image": np.zeros((2, 8, 8, 1), np.uint8)})
    with pytest.raises(PlanError) as caught:
        cast(Any, pipe).random_rotate("image", **arguments)
    assert what in f"{caught.value} {caught.value.hint}"
