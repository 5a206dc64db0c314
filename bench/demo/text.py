"""The sources of Python's standard library as rows of bytes of one length, in Parquet."""

from __future__ import annotations

import sysconfig
from pathlib import Path

import numpy as np
import pyarrow as pa

from bench.rows import write_parquet

__all__ = ["make_text"]


def make_text(folder: Path, *, rows: int, row_bytes: int, files: int) -> None:
    """Write `rows` rows of `tokens`: FixedSizeList<uint8>[row_bytes], one token a byte of UTF-8.

    Where the standard library is too short, it is gone through again.
    """
    tokens = np.frombuffer(_sources(rows * row_bytes), np.uint8)
    table = np.resize(tokens, (rows, row_bytes))
    for number in range(files):
        part = table[rows * number // files : rows * (number + 1) // files]
        column = pa.FixedSizeListArray.from_arrays(pa.array(part.ravel()), row_bytes)
        batch = pa.record_batch({"tokens": column})
        write_parquet(folder / f"stdlib-{number:03}.parquet", iter([batch]), group_rows=1024)


def _sources(wanted: int) -> bytes:
    root = Path(sysconfig.get_paths()["stdlib"])
    found = bytearray()
    for file in sorted(root.rglob("*.py")):
        if "site-packages" not in file.parts and len(found) < wanted:
            found += file.read_bytes()
    return bytes(found[:wanted])
