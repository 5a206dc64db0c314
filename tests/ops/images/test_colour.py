"""Brightness, contrast, saturation, hue, grey and sharpness are torchvision's and Pillow's, within one level."""

from __future__ import annotations

import colorsys
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from photographs import photograph
from PIL import Image, ImageEnhance

from dataflow.ops.images.pixels.blur import gaussian_blur, sharpen
from dataflow.ops.images.pixels.colour import (
    adjust,
    brighten,
    contrast,
    grey_in_place,
    saturate,
    shift_hue,
)
from dataflow.ops.images.pixels.levels import autocontrast, equalize, posterize, solarize

Pixels = npt.NDArray[Any]
FACTORS = [0.0, 0.3, 0.9, 1.0, 1.4, 1.99]
# Each with an argument that changes something.
KERNELS: dict[str, Callable[[Pixels], Pixels]] = {
    "brightness": lambda p: brighten(p, 1.3),
    "contrast": lambda p: contrast(p, 0.6),
    "saturation": lambda p: saturate(p, 1.5),
    "hue": lambda p: shift_hue(p, -0.2),
    "grey": grey_in_place,
    "sharpness": lambda p: sharpen(p, 1.7),
    "blur": lambda p: gaussian_blur(p, (5, 3), 1.2),
    "posterize": lambda p: posterize(p, 3),
    "solarize": lambda p: solarize(p, 0.4),
    "autocontrast": autocontrast,
    "equalize": equalize,
}


def noise(height: int, width: int, channels: int) -> Pixels:
    return np.random.default_rng(height).integers(0, 256, (height, width, channels), np.uint8)


def far(one: Pixels, other: Any) -> int:
    """The greatest difference."""
    return int(np.abs(one.astype(np.int64) - np.asarray(other).reshape(one.shape)).max())


def cut(values: Pixels) -> Pixels:
    """As torchvision's kernels end: within bounds, and cut to whole numbers."""
    return np.clip(values, 0, 255).astype(np.uint8)


def grey_of(pixels: Pixels) -> Pixels:
    """torchvision.transforms.v2.functional.rgb_to_grayscale."""
    grey: Pixels = np.floor(pixels @ np.array([0.2989, 0.587, 0.114]))
    return grey[..., None]


@pytest.mark.parametrize("factor", FACTORS)
def test_factors_are_those_of_torchvision(factor: float) -> None:
    for pixels in (photograph(1), noise(40, 60, 3), photograph(2) // 5):
        grey = grey_of(pixels)
        assert far(brighten(pixels, factor), cut(pixels * factor)) <= 1
        assert far(contrast(pixels, factor), cut(pixels * factor + grey.mean() * (1 - factor))) <= 1
        assert far(saturate(pixels, factor), cut(pixels * factor + grey * (1 - factor))) <= 1


@pytest.mark.parametrize("factor", FACTORS)
def test_factors_are_those_of_pillow(factor: float) -> None:
    pixels = photograph(3)
    image = Image.fromarray(pixels)
    assert far(brighten(pixels, factor), ImageEnhance.Brightness(image).enhance(factor)) <= 1
    assert far(contrast(pixels, factor), ImageEnhance.Contrast(image).enhance(factor)) <= 1
    assert far(saturate(pixels, factor), ImageEnhance.Color(image).enhance(factor)) <= 1
    assert far(sharpen(pixels, factor), ImageEnhance.Sharpness(image).enhance(factor)) <= 1


@pytest.mark.parametrize("turns", [-0.5, -0.21, 0.0, 0.1, 0.499])
def test_a_shifted_hue_is_that_of_the_definition(turns: float) -> None:
    pixels = noise(9, 14, 3)
    wanted = []
    for pixel in pixels.reshape(-1, 3).tolist():
        hue, saturation, value = colorsys.rgb_to_hsv(*(level / 255 for level in pixel))
        shifted = colorsys.hsv_to_rgb((hue + turns) % 1, saturation, value)
        wanted.append([int(level * 255.999) for level in shifted])
    assert far(shift_hue(pixels, turns), wanted) <= 1


def test_grey_is_pillows() -> None:
    pixels = photograph(4)
    made = grey_in_place(pixels)
    assert far(made[..., 0], Image.fromarray(pixels).convert("L")) <= 1
    assert far(made, np.broadcast_to(grey_of(pixels), made.shape)) <= 1
    assert np.array_equal(made[..., 0], made[..., 2])


@pytest.mark.parametrize(("size", "sigma"), [((3, 3), 0.1), ((3, 7), 1.0), ((9, 9), 2.0), ((23, 5), 4.0)])
def test_a_blur_is_the_mean_under_the_gaussian(size: tuple[int, int], sigma: float) -> None:
    pixels = photograph(5, 40, 50)
    weights = [np.exp(-((np.arange(side) - side // 2) ** 2) / (2 * sigma**2)) for side in size]
    down, along = (side / side.sum() for side in weights)
    padded = np.pad(
        pixels.astype(float), [(len(down) // 2,) * 2, (len(along) // 2,) * 2, (0, 0)], mode="reflect"
    )
    rows = sum(weight * padded[place : place + 40] for place, weight in enumerate(down))
    wanted = sum(weight * np.asarray(rows)[:, place : place + 50] for place, weight in enumerate(along))
    assert far(gaussian_blur(pixels, size, sigma), np.rint(wanted)) <= 1


def test_what_changes_nothing_gives_the_same_bit_for_bit() -> None:
    for pixels in (photograph(1), noise(30, 50, 1), noise(30, 50, 4), noise(1, 1, 3), noise(5, 2, 2)):
        for name in ("brightness", "contrast", "saturation"):
            assert np.array_equal(adjust(pixels, [(name, 1.0)]), pixels), name
        assert np.array_equal(adjust(pixels, [("hue", 0.0)]), pixels)
        assert np.array_equal(sharpen(pixels, 1.0), pixels)
        assert np.array_equal(gaussian_blur(pixels, (3, 3), 0.1), pixels)
        assert np.array_equal(posterize(pixels, 8), pixels)


def test_grey_and_even_images_have_no_colour_to_change_and_no_contrast() -> None:
    grey = np.repeat(photograph(6)[..., :1], 3, axis=2)
    even = np.full((8, 9, 3), 77, np.uint8)
    for factor in FACTORS:
        assert np.array_equal(saturate(grey, factor), grey)
        assert np.array_equal(contrast(even, factor), even)
    assert np.array_equal(shift_hue(grey, 0.3), grey)
    assert np.array_equal(grey_in_place(grey), grey)


def test_several_changes_are_made_in_the_order_given() -> None:
    pixels = photograph(7)
    made = adjust(pixels, [("contrast", 0.5), ("brightness", 1.8)])
    assert np.array_equal(made, brighten(contrast(pixels, 0.5), 1.8))
    assert not np.array_equal(made, contrast(brighten(pixels, 1.8), 0.5))


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("size", [(1, 1), (1, 9), (9, 1), (2, 2), (31, 17)])
@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
def test_alpha_stays_and_images_of_any_form_keep_it(name: str, size: tuple[int, int], dtype: Any) -> None:
    for channels in (1, 2, 3, 4):
        pixels = noise(*size, channels).astype(dtype)
        pixels.flags.writeable = False
        made = KERNELS[name](pixels)
        assert made.shape == pixels.shape
        assert made.dtype == dtype
        if channels in (2, 4):
            assert np.array_equal(made[..., -1], pixels[..., -1])
            assert np.array_equal(made[..., :-1], KERNELS[name](np.ascontiguousarray(pixels[..., :-1])))


@pytest.mark.parametrize("name", KERNELS)
def test_sixteen_bits_look_as_eight_do(name: str) -> None:
    pixels = photograph(8)
    made = KERNELS[name](pixels.astype(np.uint16) * 257)
    # One is cut to whole levels, of what is cut before as well.
    assert np.abs(made / 257 - KERNELS[name](pixels)).max() < 1.5


@pytest.mark.parametrize("name", KERNELS)
def test_the_image_that_is_given_stays_as_it_is(name: str) -> None:
    pixels = photograph(9)
    before = pixels.copy()
    KERNELS[name](pixels)
    assert np.array_equal(pixels, before)
