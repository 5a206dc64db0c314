"""Write small data for the other examples: tokens in Parquet files, pictures in tar shards, photographs in folders.

    python examples/make_data.py data

The tokens are the bytes of Python's standard library in rows of 128; the pictures are JPEGs of noisy stripes,
and which way the stripes run is the label. A few pictures are cut off, as happens to files that are copied. The
photographs are parts of those that come with scikit-learn, in class folders.
"""

from __future__ import annotations

import argparse
import io
import sysconfig
import tarfile
from itertools import islice
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image

from bench.photographs import write_class_folders

ROW_TOKENS = 128
FILES = 4
# Every so many pictures one is cut off; the first of them is the tenth.
BAD_EVERY = 40
FIRST_BAD = 9


def write_tokens(folder: Path, rows: int) -> None:
    """`rows` rows of the columns `tokens` (list of 128 int32) and `source` (text), in four Parquet files."""
    folder.mkdir(parents=True)
    library = Path(sysconfig.get_paths()["stdlib"])
    pieces = (
        (path.name, content[start : start + ROW_TOKENS])
        for path in sorted(library.glob("*.py"))
        for content in [path.read_bytes()]
        for start in range(0, len(content) - ROW_TOKENS + 1, ROW_TOKENS)
    )
    for number in range(FILES):
        names, texts = zip(*islice(pieces, rows // FILES), strict=True)
        tokens = [np.frombuffer(text, np.uint8).astype(np.int32) for text in texts]
        table = pa.table({"tokens": tokens, "source": names})
        pq.write_table(table, folder / f"part-{number}.parquet", row_group_size=256, compression="zstd")


def write_images(folder: Path, images: int) -> None:
    """`images` samples of a `jpg` and a `cls` (0 or 1), in four tar shards as WebDataset has them."""
    folder.mkdir(parents=True)
    rng = np.random.default_rng(0)
    for number in range(FILES):
        with tarfile.open(folder / f"shard-{number}.tar", "w") as shard:
            for sample in range(number * images // FILES, (number + 1) * images // FILES):
                label = int(rng.integers(2))
                height, width = (int(side) for side in rng.integers(40, 64, 2))
                picture = stripes(rng, label, height, width)
                bad = sample % BAD_EVERY == FIRST_BAD
                add(shard, f"{sample:06}.jpg", picture[: len(picture) // 2] if bad else picture)
                add(shard, f"{sample:06}.cls", str(label).encode())


def stripes(rng: np.random.Generator, label: int, height: int, width: int) -> bytes:
    across = np.indices((height, width))[label]
    wave = 128 + 40 * np.sin(across * rng.uniform(0.6, 1.2) + rng.uniform(0, 6))
    pixels = wave[..., None] + rng.normal(0, 60, (height, width, 3))
    file = io.BytesIO()
    Image.fromarray(pixels.clip(0, 255).astype(np.uint8)).save(file, "JPEG")
    return file.getvalue()


def add(shard: tarfile.TarFile, name: str, content: bytes) -> None:
    member = tarfile.TarInfo(name)
    member.size = len(content)
    shard.addfile(member, io.BytesIO(content))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Write data for the other examples.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rows", type=int, default=8192, help="rows of tokens")
    parser.add_argument("--images", type=int, default=1000)
    parser.add_argument("--photographs", type=int, default=1000)
    arguments = parser.parse_args()
    write_tokens(arguments.folder / "tokens", arguments.rows)
    write_images(arguments.folder / "images", arguments.images)
    write_class_folders(arguments.folder / "photographs", images=arguments.photographs, threads=2)
    print(
        f"wrote {arguments.rows} rows of tokens, {arguments.images} images and {arguments.photographs} photographs "
        f"to {arguments.folder}"
    )
