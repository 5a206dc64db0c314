"""What depends on the value alone is what Pillow's ImageOps make of it."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from photographs import photograph
from PIL import Image, ImageOps

from dataflow.ops.images.pixels.levels import autocontrast, equalize, posterize, solarize

IMAGES = [
    photograph(1),
    photograph(2) // 3 + 40,
    np.random.default_rng(0).integers(0, 256, (40, 50, 3), np.uint8),
    np.full((9, 9, 3), 5, np.uint8),
    np.full((1, 1, 3), 200, np.uint8),
    np.array([[[0, 0, 0], [255, 255, 255]]], np.uint8),
]


def _same(pixels: npt.NDArray[Any], image: Image.Image) -> bool:
    return np.array_equal(pixels, np.asarray(image))


@pytest.mark.parametrize("number", range(len(IMAGES)))
def test_levels_are_those_of_pillow(number: int) -> None:
    pixels: npt.NDArray[Any] = IMAGES[number]
    image = Image.fromarray(pixels)
    assert _same(equalize(pixels), ImageOps.equalize(image))
    stretched = autocontrast(pixels)
    assert np.abs(stretched.astype(int) - np.asarray(ImageOps.autocontrast(image))).max() <= 1
    for bits in range(1, 9):
        assert _same(posterize(pixels, bits), ImageOps.posterize(image, bits))
    for threshold in (0, 1, 128, 255):
        assert _same(solarize(pixels, threshold / 255), ImageOps.solarize(image, threshold))


def test_a_stretched_image_has_the_whole_range() -> None:
    made = autocontrast(photograph(3) // 4 + 30)
    assert (made.min(axis=(0, 1)) == 0).all()
    assert (made.max(axis=(0, 1)) == 255).all()
    assert np.array_equal(autocontrast(made), made)
