"""Parts of real photographs as JPEG: what the demo, the benchmark of images and an example are made of."""

from __future__ import annotations

import io
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from dataflow.errors import MissingExtraError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from PIL.Image import Image

__all__ = [
    "PHOTOGRAPHS",
    "SQUARES",
    "Part",
    "check_extra",
    "encoded_parts",
    "write_class_folders",
]

# In the order in which scikit-learn has them: a temple in China and a flower.
PHOTOGRAPHS: Final = ("china", "flower")


@dataclass(frozen=True, kw_only=True)
class Part:
    """Which parts of a photograph are taken, and what they become; pixels.

    Fields:
        widths: the least and, not itself taken, the largest width of a part.
        sizes: the same of the width that it is resized to.
        ratio: height by width.
        quality: of the JPEG.
    """

    widths: tuple[int, int]
    sizes: tuple[int, int]
    ratio: float = 1.0
    quality: int = 85


# Small squares, of a few kilobytes.
SQUARES: Final = Part(widths=(120, 400), sizes=(80, 128))


def check_extra() -> None:
    """See that what the photographs need is installed.

    Raises:
        MissingExtraError: it is not.
    """
    for module in ("PIL", "sklearn"):
        if find_spec(module) is None:
            raise MissingExtraError(f"photographs need {module}, which is not installed.", extra="demo")


def encoded_parts(numbers: Sequence[int], part: Part, *, threads: int) -> Iterator[tuple[bytes, int]]:
    """For each number a JPEG, always the same one, and as its label the photograph that it is a part of.

    Raises:
        MissingExtraError: Pillow or scikit-learn is not installed.
    """
    photographs = _photographs()
    with ThreadPoolExecutor(threads) as pool:
        yield from pool.map(partial(_encoded, photographs, part), numbers)


def write_class_folders(folder: Path, *, images: int, threads: int) -> None:
    """Write `images` small squares to `folder`, each into the folder of its photograph.

    Raises:
        MissingExtraError: Pillow or scikit-learn is not installed.
    """
    for name in PHOTOGRAPHS:
        (folder / name).mkdir(parents=True)
    for number, (jpeg, label) in enumerate(encoded_parts(range(images), SQUARES, threads=threads)):
        (folder / PHOTOGRAPHS[label] / f"{number:06}.jpg").write_bytes(jpeg)


def _photographs() -> list[Image]:
    """The sample photographs of scikit-learn, 640 x 427."""
    check_extra()
    from PIL import Image
    from sklearn.datasets import load_sample_images

    return [Image.fromarray(photograph) for photograph in load_sample_images().images]


def _encoded(photographs: Sequence[Image], part: Part, number: int) -> tuple[bytes, int]:
    from PIL.Image import Resampling

    rng = np.random.default_rng(number)
    label = int(rng.integers(len(photographs)))
    photograph = photographs[label]
    width = int(rng.integers(*part.widths))
    height = int(width * part.ratio)
    left = int(rng.integers(photograph.width - width + 1))
    top = int(rng.integers(photograph.height - height + 1))
    side = int(rng.integers(*part.sizes))
    box = (left, top, left + width, top + height)
    encoded = io.BytesIO()
    made = photograph.resize((side, int(side * part.ratio)), Resampling.BILINEAR, box)
    made.save(encoded, "JPEG", quality=part.quality)
    return encoded.getvalue(), label
