"""A warped image is what torch's sampling grids give, within one level."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from photographs import photograph
from PIL import Image

from dataflow.ops.images.filters import WarpFilter
from dataflow.ops.images.pixels.augment import augment
from dataflow.ops.images.pixels.warp import warped

SAME = np.eye(2, 3)
TURNED = np.array([[0.9, -0.44, 30.2], [0.44, 0.9, -20.7]])
SHEARED = np.array([[1, 0.317, 0.1], [-0.2071, 1.0931, 4.13]])


def sampled(pixels: Any, matrix: npt.NDArray[Any], size: tuple[int, int], filter: str) -> npt.NDArray[Any]:
    """The same by torch.nn.functional.grid_sample, whose places go from -1 to 1 over the image."""
    height, width = pixels.shape[:2]
    back = np.linalg.inv(np.vstack([matrix, [0, 0, 1]]))[:2]
    y, x = np.meshgrid(np.arange(size[0]) + 0.5, np.arange(size[1]) + 0.5, indexing="ij")
    places = np.stack([x, y, np.ones_like(x)], axis=-1) @ back.T
    grid = torch.from_numpy(places / (width / 2, height / 2) - 1)[None]
    image = torch.from_numpy(pixels.astype(np.float64)).permute(2, 0, 1)[None]
    made = torch.nn.functional.grid_sample(image, grid, mode=filter, align_corners=False)
    return made[0].permute(1, 2, 0).round().numpy()


@pytest.mark.parametrize("matrix", [SAME, TURNED, SHEARED])
@pytest.mark.parametrize("size", [(240, 320), (100, 90), (300, 400)])
@pytest.mark.parametrize("filter", ["nearest", "bilinear"])
def test_a_warped_image_is_what_torch_samples(
    matrix: npt.NDArray[Any], size: tuple[int, int], filter: WarpFilter
) -> None:
    pixels = photograph(1)
    made = warped(pixels, matrix, size, filter)
    off = np.abs(made - sampled(pixels, matrix, size, filter)).max(axis=2) > 1
    # Where a place lies between two pixels the nearest is either.
    assert off.mean() < (1e-3 if filter == "nearest" else 1e-9)


@pytest.mark.parametrize("filter", ["nearest", "bilinear"])
def test_the_same_places_are_the_same_pixels(filter: WarpFilter) -> None:
    for channels in (1, 2, 3, 4):
        for size in ((1, 1), (1, 7), (33, 21)):
            for dtype in (np.uint8, np.uint16):
                pixels = np.random.default_rng(1).integers(0, 256, (*size, channels)).astype(dtype)
                assert np.array_equal(warped(pixels, SAME, size, filter), pixels)


@pytest.mark.parametrize("filter", ["nearest", "bilinear"])
def test_what_lies_outside_is_filled(filter: WarpFilter) -> None:
    pixels = photograph(2, 20, 30)
    right = np.array([[1.0, 0, 4], [0, 1, 0]])
    made = warped(pixels, right, (20, 30), filter, (7, 8, 9))
    assert (made[:, :4] == (7, 8, 9)).all()
    assert np.array_equal(made[:, 4:], pixels[:, :-4])
    assert (warped(pixels, right, (20, 30), filter, 5)[:, :4] == 5).all()


def test_images_longer_than_sixteen_bits_count_are_warped() -> None:
    pixels = np.random.default_rng(2).integers(0, 256, (2, 40_000, 3), np.uint8)
    made = warped(pixels, np.array([[1.0, 0, -3], [0, 1, 0]]), (2, 40_000), "nearest")
    assert np.array_equal(made[:, :-3], pixels[:, 3:])


@pytest.mark.parametrize("degrees", [90, -90, 180, 33, -4.5])
def test_a_rotation_is_counter_clockwise_as_pillows(degrees: float) -> None:
    pixels = photograph(3, 64, 64)
    made = augment(pixels, "Rotate", degrees, "nearest", 0)
    wanted = np.asarray(Image.fromarray(pixels).rotate(degrees, Image.Resampling.NEAREST))
    assert (made != wanted).any(axis=2).mean() < 5e-3


@pytest.mark.parametrize(
    ("name", "magnitude", "matrix"),
    [
        ("ShearX", 0.3, (1, 0.3, 0, 0, 1, 0)),
        ("ShearY", -0.33, (1, 0, 0, -0.33, 1, 0)),
        ("TranslateX", 11.0, (1, 0, -11, 0, 1, 0)),
        ("TranslateY", -7.0, (1, 0, 0, 0, 1, 7)),
    ],
)
def test_shears_and_translations_are_pillows(name: str, magnitude: float, matrix: tuple[float, ...]) -> None:
    pixels = photograph(4, 60, 80)
    made = augment(pixels, name, magnitude, "nearest", 0)
    image = Image.fromarray(pixels)
    wanted = np.asarray(image.transform(image.size, Image.Transform.AFFINE, matrix, Image.Resampling.NEAREST))
    assert (made != wanted).any(axis=2).mean() < 5e-3
