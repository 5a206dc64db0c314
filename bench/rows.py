"""The rows of the benchmark's data sets, the same on every machine, and the files that hold them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bench.data import data_set

__all__ = [
    "SMALL_COLUMNS",
    "TOKENS_A_ROW",
    "small_rows",
    "small_rows_in_parquet",
    "token_rows",
    "tokens_in_parquet",
    "write_parquet",
]

TOKENS_A_ROW = 512
_VOCABULARY = 50_257
_PIECE_ROWS = 8_192

SMALL_COLUMNS = ("f0", "f1", "f2", "f3", "i0", "i1", "k", "label")


def token_rows(rows: int, *, seed: int) -> Iterator[pa.RecordBatch]:
    """`tokens`: FixedSizeList<int32>[512], word numbers that are as unevenly frequent as those of text."""
    for start, count, rng in _pieces(rows, seed):
        draws = rng.pareto(1.1, count * TOKENS_A_ROW) * 20
        tokens = np.minimum(draws, 2**31).astype(np.int64) % _VOCABULARY
        values = pa.array(tokens.astype(np.int32))
        del start
        yield pa.record_batch({"tokens": pa.FixedSizeListArray.from_arrays(values, TOKENS_A_ROW)})


def small_rows(rows: int, *, seed: int) -> Iterator[pa.RecordBatch]:
    """Eight columns of numbers: four float32, two int64, an int32 and a uint8; 37 bytes a row."""
    for start, count, rng in _pieces(rows, seed):
        columns: dict[str, npt.NDArray[np.generic]] = {
            f"f{i}": rng.standard_normal(count, np.float32) for i in range(4)
        }
        columns["i0"] = np.arange(start, start + count)
        columns["i1"] = rng.integers(0, 1_000_000, count)
        columns["k"] = rng.integers(0, 1_000, count).astype(np.int32)
        columns["label"] = rng.integers(0, 10, count).astype(np.uint8)
        yield pa.record_batch({name: pa.array(values) for name, values in columns.items()})


def tokens_in_parquet(rows: int, *, files: int, group_rows: int) -> Path:
    """The folder of a data set of `token_rows` in Parquet."""

    def make(folder: Path) -> None:
        for number in range(files):
            batches = token_rows(rows // files, seed=number)
            write_parquet(folder / f"tokens-{number:05}.parquet", batches, group_rows=group_rows)

    return data_set("tokens", make, rows=rows, files=files, group_rows=group_rows, version=1)


def small_rows_in_parquet(rows: int, *, files: int, group_rows: int) -> Path:
    """The folder of a data set of `small_rows` in Parquet."""

    def make(folder: Path) -> None:
        for number in range(files):
            batches = small_rows(rows // files, seed=number)
            write_parquet(folder / f"small-{number:05}.parquet", batches, group_rows=group_rows)

    return data_set("small", make, rows=rows, files=files, group_rows=group_rows, version=1)


def write_parquet(path: Path, batches: Iterator[pa.RecordBatch], *, group_rows: int) -> None:
    """Write Parquet (zstd) in row groups of `group_rows` rows."""
    import pyarrow.parquet as pq

    first = next(batches)
    held, held_rows = [first], first.num_rows
    with pq.ParquetWriter(path, first.schema, compression="zstd") as writer:
        for batch in batches:
            if held_rows >= group_rows and held_rows % group_rows == 0:
                writer.write_table(pa.Table.from_batches(held), row_group_size=group_rows)
                held, held_rows = [], 0
            held.append(batch)
            held_rows += batch.num_rows
        writer.write_table(pa.Table.from_batches(held), row_group_size=group_rows)


def _pieces(rows: int, seed: int) -> Iterator[tuple[int, int, np.random.Generator]]:
    for number, start in enumerate(range(0, rows, _PIECE_ROWS)):
        yield start, min(_PIECE_ROWS, rows - start), np.random.default_rng([seed, number])
