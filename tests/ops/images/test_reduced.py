"""A JPEG decoded at a smaller scale shows the same part, and nearly the same pixels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from odd_files import exif, with_exif
from photographs import encoded, photograph
from PIL import Image

from dataflow.graph.image_column import Pixels
from dataflow.ops.images.canvas import Box
from dataflow.ops.images.filters import Filter
from dataflow.ops.images.pixels.codec import open_image
from dataflow.ops.images.pixels.fractional import resample_between
from dataflow.ops.images.pixels.picture import Picture

HEIGHT, WIDTH = 421, 635  # no factor divides them


def psnr(one: Pixels, other: Pixels) -> float:
    error = np.mean((one.astype(np.float64) - other) ** 2)
    return float(10 * np.log10(255**2 / max(float(error), 1e-9)))


def picture(file: bytes, *, reduced: bool, mode: str = "RGB") -> Picture:
    return Picture(open_image(memoryview(file), mode, max_pixels=10**7, reduced=reduced))


def cut(file: bytes, part: tuple[int, int, int, int], size: int, filter: Filter, **options: Any) -> Pixels:
    image = picture(file, **options)
    image.crop(*part)
    image.resize(size, size, filter)
    return image.pixels()


def parts(rng: np.random.Generator, factor: int, size: int) -> tuple[int, int, int, int]:
    """A part that a smaller scale of `factor` is taken for, at any place."""
    shorter = int(size * factor * rng.uniform(1.41, 1.9))
    height, width = (shorter, min(int(shorter * 1.3), WIDTH))
    return int(rng.integers(HEIGHT - height + 1)), int(rng.integers(WIDTH - width + 1)), height, width


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("factor", [2, 4, 8])
@pytest.mark.parametrize("filter", ["bilinear", "bicubic"])
def test_a_smaller_scale_differs_by_less_than_35_db(filter: Filter, factor: int, orientation: int) -> None:
    rng = np.random.default_rng(orientation * 10 + factor)
    file = with_exif(encoded(photograph(orientation, HEIGHT, WIDTH)), exif(orientation))
    size = 200 // factor
    for _ in range(4):
        top, left, height, width = parts(rng, factor, size)
        part = (left, top, width, height) if orientation >= 5 else (top, left, height, width)
        small, whole = (cut(file, part, size, filter, reduced=reduced) for reduced in (True, False))
        assert not np.array_equal(small, whole), "a smaller scale was taken"
        assert psnr(small, whole) >= 35


@pytest.mark.parametrize("mode", ["RGB", "L", "RGBA"])
def test_every_mode_has_smaller_scales(mode: str) -> None:
    file = encoded(photograph(1, HEIGHT, WIDTH))
    small, whole = (
        cut(file, (3, 5, 400, 600), 100, "bilinear", reduced=reduced, mode=mode) for reduced in (True, False)
    )
    assert small.shape == whole.shape
    assert psnr(small, whole) >= 35


@pytest.mark.parametrize("filter", ["area", "nearest"])
def test_filters_that_count_single_pixels_have_the_whole(filter: Filter) -> None:
    file = encoded(photograph(2, HEIGHT, WIDTH))
    small, whole = (cut(file, (3, 5, 400, 600), 100, filter, reduced=reduced) for reduced in (True, False))
    assert np.array_equal(small, whole)


@pytest.mark.parametrize(
    ("least", "factor"), [(300, 1), (150, 1), (143, 1), (142, 2), (72, 2), (71, 4), (35, 8)]
)
def test_the_scale_leaves_pixels_enough(least: int, factor: int) -> None:
    file = encoded(photograph(3, 400, 400))
    source = open_image(memoryview(file), "RGB", max_pixels=10**7, reduced=True)
    pixels, box = source.read(Box(0, 0, 400, 400), (least, least))
    assert pixels.shape == (400 // factor, 400 // factor, 3)
    assert box == Box(0, 0, 400 / factor, 400 / factor)


@pytest.mark.parametrize("height", range(1, 20))
@pytest.mark.parametrize("width", [1, 3, 6, 8, 11])
def test_a_pixel_shows_as_many_as_the_scale_says(height: int, width: int) -> None:
    source = open_image(
        memoryview(encoded(photograph(0, height, width))), "RGB", max_pixels=10**6, reduced=True
    )
    for factor in (2, 4, 8):
        least = (max(1, int(height / factor / 1.4)), max(1, int(width / factor / 1.4)))
        pixels, box = source.read(Box(0, 0, height, width), least)
        taken = round(height / box.height)
        assert taken in (1, 2, 4, 8)
        assert pixels.shape[:2] == (-(-height // taken), -(-width // taken))
        assert taken == 1 or max(height, width) >= 8


sides = st.floats(20, 90)
places = st.floats(0, 30)


@given(places, places, sides, sides, st.integers(5, 20), st.integers(5, 20))
def test_a_part_between_pixels_is_that_of_pillow(
    top: float, left: float, height: float, width: float, rows: int, columns: int
) -> None:
    pixels = photograph(1, 120, 120)
    box = (left, top, left + width, top + height)
    kinds: list[tuple[Filter, Image.Resampling, int]] = [
        ("bilinear", Image.Resampling.BILINEAR, 35),
        ("bicubic", Image.Resampling.BICUBIC, 45),
    ]
    for filter, kind, least in kinds:
        wanted = np.asarray(Image.fromarray(pixels).resize((columns, rows), kind, box))
        made = resample_between(pixels, Box(top, left, height, width), (rows, columns), filter)
        assert made.shape == wanted.shape
        # At its edges Pillow looks beyond the part.
        assert psnr(made[1:-1, 1:-1], wanted[1:-1, 1:-1]) >= least


@pytest.mark.parametrize("channels", [1, 3, 4])
@pytest.mark.parametrize("filter", ["bilinear", "bicubic"])
def test_a_part_between_pixels_keeps_the_channels(channels: int, filter: Filter) -> None:
    pixels = np.dstack([photograph(0, 40, 40)] * 2)[..., :channels]
    assert resample_between(pixels, Box(0.5, 1.5, 20.25, 30), (8, 9), filter).shape == (8, 9, channels)
