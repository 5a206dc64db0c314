"""Resized images are those of torchvision's antialias, within one level."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from photographs import photograph
from PIL import Image

from dataflow.ops.images.canvas import Box
from dataflow.ops.images.filters import Filter
from dataflow.ops.images.pixels.resample import resample

SIZES = [(60, 80), (224, 224), (100, 400), (400, 100), (480, 640), (1, 1)]
WHOLE = Box(0, 0, 240, 320)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("filter", ["bilinear", "bicubic"])
def test_averaging_filters_are_those_of_torch(size: tuple[int, int], filter: Filter) -> None:
    pixels = photograph(1)
    rows = torch.from_numpy(pixels).permute(2, 0, 1)[None]
    wanted = (
        torch.nn.functional.interpolate(rows, size, mode=filter, antialias=True)[0].permute(1, 2, 0).numpy()
    )
    made = resample(pixels, WHOLE, size, filter)
    assert made.shape == (*size, 3)
    assert np.abs(made.astype(int) - wanted).max() <= 1


@pytest.mark.parametrize("channels", [1, 3, 4])
def test_images_of_any_number_of_channels_keep_it(channels: int) -> None:
    pixels = np.dstack([photograph(2)] * 2)[:, :, :channels]
    for filter in ("bilinear", "bicubic", "area", "nearest"):
        for size in ((30, 40), (300, 400)):
            assert resample(pixels, WHOLE, size, filter).shape == (*size, channels)


def test_a_part_is_resized_as_if_it_were_the_whole() -> None:
    pixels = photograph(3)
    part = np.ascontiguousarray(pixels[10:110, 20:220])
    wanted = np.asarray(Image.fromarray(part).resize((50, 25), Image.Resampling.BILINEAR))
    made = resample(pixels, Box(10, 20, 100, 200), (25, 50), "bilinear")
    assert np.abs(made.astype(int) - wanted).max() <= 1


def test_nearest_makes_no_new_values() -> None:
    pixels = (photograph(4) // 50) * 50
    assert set(np.unique(resample(pixels, WHOLE, (97, 61), "nearest"))) <= set(np.unique(pixels))
