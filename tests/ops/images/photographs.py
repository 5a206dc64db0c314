"""Real photographs, cut and encoded as a test needs them."""

from __future__ import annotations

import io
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image
from sklearn.datasets import load_sample_images

__all__ = ["encoded", "photograph"]

Pixels = npt.NDArray[np.uint8]


@cache
def _whole() -> tuple[Pixels, ...]:
    return tuple(load_sample_images().images)


def photograph(number: int, height: int = 240, width: int = 320) -> Pixels:
    """Part of a photograph, (height, width, 3); another one for every number."""
    whole = _whole()[number % 2]
    rng = np.random.default_rng(number)
    top = int(rng.integers(whole.shape[0] - height + 1))
    left = int(rng.integers(whole.shape[1] - width + 1))
    return np.ascontiguousarray(whole[top : top + height, left : left + width])


def encoded(pixels: npt.NDArray[Any], format: str = "JPEG", **options: Any) -> bytes:
    """The file of an image, as Pillow writes it."""
    file = io.BytesIO()
    if format == "JPEG":
        options = {"quality": 92, **options}
    Image.fromarray(pixels).save(file, format, **options)
    return file.getvalue()
