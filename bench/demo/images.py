"""JPEG crops of real photographs with their labels, as WebDataset tar shards."""

from __future__ import annotations

import io
import tarfile
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from dataflow.errors import MissingExtraError

if TYPE_CHECKING:
    from PIL.Image import Image

__all__ = ["check_extra", "make_images"]

_SMALLEST_CROP, _LARGEST_CROP = 120, 400
_SMALLEST_SIDE, _LARGEST_SIDE = 80, 128


def check_extra() -> None:
    """See that what the images need is installed.

    Raises:
        MissingExtraError: it is not.
    """
    for module in ("PIL", "sklearn"):
        if find_spec(module) is None:
            raise MissingExtraError(f"the demo needs {module}, which is not installed.", extra="demo")


def make_images(folder: Path, *, images: int, shards: int, threads: int) -> None:
    """Write `images` crops of random place, scale and size; the label is the photograph that a crop is of.

    The photographs are those of scikit-learn: a temple in China and a flower, 427 x 640.

    Raises:
        MissingExtraError: Pillow or scikit-learn is not installed.
    """
    photographs = _photographs()
    with ThreadPoolExecutor(threads) as pool:
        for shard in range(shards):
            numbers = range(images * shard // shards, images * (shard + 1) // shards)
            crops = pool.map(lambda number: _crop(photographs, number), numbers)
            with tarfile.open(folder / f"photos-{shard:03}.tar", "w") as archive:
                for number, (jpeg, label) in zip(numbers, crops, strict=True):
                    for name, data in (("jpg", jpeg), ("cls", str(label).encode())):
                        member = tarfile.TarInfo(f"{number:06}.{name}")
                        member.size = len(data)
                        archive.addfile(member, io.BytesIO(data))


def _photographs() -> list[Image]:
    try:
        from PIL import Image
        from sklearn.datasets import load_sample_images
    except ImportError as error:
        raise MissingExtraError(
            f"the demo needs {error.name}, which is not installed.", extra="demo"
        ) from error
    return [Image.fromarray(photograph) for photograph in load_sample_images().images]


def _crop(photographs: list[Image], number: int) -> tuple[bytes, int]:
    from PIL.Image import Resampling

    rng = np.random.default_rng(number)
    label = int(rng.integers(len(photographs)))
    photograph = photographs[label]
    crop = int(rng.integers(_SMALLEST_CROP, _LARGEST_CROP))
    left, top = (int(rng.integers(size - crop + 1)) for size in photograph.size)
    side = int(rng.integers(_SMALLEST_SIDE, _LARGEST_SIDE))
    box = (left, top, left + crop, top + crop)
    encoded = io.BytesIO()
    photograph.resize((side, side), Resampling.BILINEAR, box).save(encoded, "JPEG", quality=85)
    return encoded.getvalue(), label
