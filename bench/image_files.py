"""The images of the benchmark on disk: JPEGs in the formats that its sides read, and raw pixels."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Final, Literal, TypeAlias

import numpy as np
import pyarrow as pa

from bench.data import data_set
from bench.photographs import PHOTOGRAPHS, Part, encoded_parts
from bench.shards import write_shard
from connectors.tensors import to_arrow
from dataflow.cores import available_cores

__all__ = ["RAW_SIDE", "Format", "jpegs_in", "photographs_on_disk", "raw_images_on_disk"]

Format: TypeAlias = Literal["parquet", "tar", "files"]
# Height and width of raw images, of three channels.
RAW_SIDE: Final = 256

_SHARDS: Final = 4
_ROWS_A_GROUP: Final = 64
# 500 x 400 pixels and about 50 KB.
_LARGE: Final = Part(widths=(400, 501), sizes=(500, 501), ratio=0.8, quality=90)


def photographs_on_disk(images: int) -> Path:
    """The folder of a data set of JPEGs of 500 x 400 with labels, the same ones in Parquet, tar and class folders.

    Raises:
        MissingExtraError: Pillow or scikit-learn is not installed.
    """

    def make(folder: Path) -> None:
        rows = encoded_parts(range(images), _LARGE, threads=available_cores())
        for name in PHOTOGRAPHS:
            (folder / "files" / name).mkdir(parents=True)
        for name in ("parquet", "tar"):
            (folder / name).mkdir()
        for shard in range(_SHARDS):
            _write(folder, shard, list(islice(rows, images // _SHARDS)))

    return data_set("photographs", make, images=images, version=1)


def jpegs_in(folder: Path) -> list[tuple[Path, int]]:
    """The class folders' files and labels, in order of their names."""
    files = folder / "files"
    return [
        (file, label) for label, name in enumerate(PHOTOGRAPHS) for file in sorted((files / name).iterdir())
    ]


def raw_images_on_disk(images: int) -> Path:
    """The folder of a data set of uint8 images (RAW_SIDE, RAW_SIDE, 3), random numbers, in Arrow files."""

    def make(folder: Path) -> None:
        for shard in range(_SHARDS):
            rng = np.random.default_rng(shard)
            with pa.OSFile(str(folder / f"raw-{shard}.arrow"), "wb") as file:
                _write_raw(file, images // _SHARDS, rng)

    return data_set("raw_images", make, images=images, version=1)


def _write(folder: Path, shard: int, rows: Sequence[tuple[bytes, int]]) -> None:
    import pyarrow.parquet as pq

    table = pa.table({"image": [jpeg for jpeg, _ in rows], "label": [label for _, label in rows]})
    # JPEGs do not become smaller.
    pq.write_table(
        table,
        folder / "parquet" / f"{shard}.parquet",
        row_group_size=_ROWS_A_GROUP,
        compression="none",
        use_dictionary=False,
    )
    samples = (
        (f"{shard}-{number:06}", {"jpg": jpeg, "cls": str(label).encode()})
        for number, (jpeg, label) in enumerate(rows)
    )
    write_shard(folder / "tar" / f"{shard}.tar", samples)
    for number, (jpeg, label) in enumerate(rows):
        (folder / "files" / PHOTOGRAPHS[label] / f"{shard}-{number:06}.jpg").write_bytes(jpeg)


def _write_raw(file: pa.NativeFile, images: int, rng: np.random.Generator) -> None:
    kind = pa.fixed_shape_tensor(pa.uint8(), [RAW_SIDE, RAW_SIDE, 3])
    with pa.ipc.new_file(file, pa.schema([("image", kind)])) as writer:
        for start in range(0, images, _ROWS_A_GROUP):
            shape = (min(_ROWS_A_GROUP, images - start), RAW_SIDE, RAW_SIDE, 3)
            writer.write_batch(
                pa.record_batch({"image": to_arrow(rng.integers(0, 256, shape, np.uint8), kind)})
            )
