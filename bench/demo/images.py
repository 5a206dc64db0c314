"""JPEG crops of real photographs with their labels, as WebDataset tar shards."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

from bench.photographs import SQUARES, encoded_parts
from bench.shards import write_shard

__all__ = ["make_images"]


def make_images(folder: Path, *, images: int, shards: int, threads: int) -> None:
    """Write `images` crops of random place, scale and size; the label is the photograph that a crop is of.

    Raises:
        MissingExtraError: Pillow or scikit-learn is not installed.
    """
    samples = (
        (f"{number:06}", {"jpg": jpeg, "cls": str(label).encode()})
        for number, (jpeg, label) in enumerate(encoded_parts(range(images), SQUARES, threads=threads))
    )
    for shard in range(shards):
        count = images * (shard + 1) // shards - images * shard // shards
        write_shard(folder / f"photos-{shard:03}.tar", islice(samples, count))
