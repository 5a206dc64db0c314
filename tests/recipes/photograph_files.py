"""The same few photographs in every form in which they come."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image

from bench.shards import write_shard

__all__ = ["COUNT", "FORMS", "jpeg"]

COUNT = 10


def jpeg(number: int) -> bytes:
    """One photograph: smooth, so that resizing differs little from one library to the next."""
    height, width = 40 + number, 60 - number
    across, down = np.meshgrid(np.linspace(0, 3, width), np.linspace(0, 3, height))
    colours = [np.sin(across + number), np.cos(down), np.sin(across * down)]
    pixels = (127 + 120 * np.stack(colours, -1)).astype(np.uint8)
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "JPEG", quality=95)
    return file.getvalue()


def _label(number: int) -> int:
    return number // 5


def _plain(folder: Path) -> None:
    columns = {
        "image": [jpeg(number) for number in range(COUNT)],
        "label": [_label(number) for number in range(COUNT)],
        "text": [f"photograph {number}" for number in range(COUNT)],
    }
    pq.write_table(pa.table(columns), folder / "rows.parquet", row_group_size=4)


def _hugging_face(folder: Path) -> None:
    files = pa.array(
        [{"bytes": jpeg(number), "path": f"{number}.jpg"} for number in range(COUNT)],
        pa.struct([("bytes", pa.binary()), ("path", pa.string())]),
    )
    labels = [_label(number) for number in range(COUNT)]
    texts = [f"photograph {number}" for number in range(COUNT)]
    pq.write_table(pa.table({"image": files, "label": labels, "caption": texts}), folder / "rows.parquet")


def _shards(folder: Path) -> None:
    samples = (
        (
            f"{number:03}",
            {"jpg": jpeg(number), "cls": b"%d" % _label(number), "txt": b"photograph %d" % number},
        )
        for number in range(COUNT)
    )
    write_shard(folder / "rows.tar", samples)


def _class_folders(folder: Path) -> None:
    for number in range(COUNT):
        place = folder / ("cats", "dogs")[_label(number)]
        place.mkdir(exist_ok=True)
        (place / f"{number:03}.jpg").write_bytes(jpeg(number))


# Each writes them into a folder; the rows are in the same order in all of them.
FORMS: dict[str, Callable[[Path], None]] = {
    "parquet": _plain, "hugging face": _hugging_face, "tar": _shards, "class folders": _class_folders,
}  # fmt: skip
