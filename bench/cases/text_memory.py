"""Peak memory of text, which stays Arrow: within `memory_limit`, with one lane and with eight."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

import dataflow as flow
from bench.case import Bar, Case, Figures, Side
from bench.data import data_set
from bench.measure import ENGINE_IMPORTS, iterate, timed
from bench.rows import write_parquet

__all__ = ["CASE"]

_BATCH = 256
_LIMIT_MB = 200
_WINDOW = "8MB"
_FILES = 8
_GROUP_ROWS = 4_096
# Texts are pieces of one random text, so that it is quick to make them, and no two are the same.
_SOURCE_BYTES = 4 << 20
_LONGEST_BYTES = 60_000


def _prepare(quick: bool) -> Path:
    """2.1 GB of decoded rows (quick: 0.27 GB)."""
    groups = 5 if quick else 40

    def make(folder: Path) -> None:
        words = np.array(["a", "the", "rows", "window", "lane", "reader", "shuffled", "memory", "17", "2048"])
        drawn = np.random.default_rng(0).choice(words, _SOURCE_BYTES // 3)
        source = np.frombuffer(" ".join(drawn.tolist()).encode(), np.uint8)
        for number in range(_FILES):
            batches = _text_rows(source, groups, seed=number)
            write_parquet(folder / f"text-{number:05}.parquet", batches, group_rows=_GROUP_ROWS)

    return data_set("text", make, groups=groups, files=_FILES, group_rows=_GROUP_ROWS, version=1)


def _text_rows(source: npt.NDArray[np.uint8], groups: int, seed: int) -> Iterator[pa.RecordBatch]:
    """`id`: int64; `text`: string of 16 to 60,000 bytes, 1,600 in the mean, log-normal."""
    for group in range(groups):
        rng = np.random.default_rng([seed, group])
        lengths = np.minimum(rng.lognormal(7.05, 0.8, _GROUP_ROWS).astype(np.int64) + 16, _LONGEST_BYTES)
        starts = rng.integers(0, len(source) - _LONGEST_BYTES, _GROUP_ROWS)
        pieces = [source[at : at + length] for at, length in zip(starts, lengths, strict=True)]
        offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)]).astype(np.int32)
        text = pa.StringArray.from_buffers(
            _GROUP_ROWS, pa.py_buffer(offsets.tobytes()), pa.py_buffer(np.concatenate(pieces).tobytes())
        )
        yield pa.record_batch({"id": pa.array(rng.integers(0, 2**40, _GROUP_ROWS)), "text": text})


def _dataflow(folder: Path, quick: bool, *, lanes: int) -> Figures:
    pipe = flow.read(f"{folder}/*.parquet").shuffle(_WINDOW).seed(1).batch(_BATCH, lanes=lanes)
    with pipe.loader(threads=2, memory_limit=f"{_LIMIT_MB}MB") as loader:
        return timed(partial(iterate, loader, "text"))


def _side(name: str, lanes: int) -> Side:
    return Side(
        name=name, run=partial(_dataflow, lanes=lanes), imports=ENGINE_IMPORTS, memory=True, repeats=3
    )


def _bar(side: str, lanes: str) -> Bar:
    return Bar(
        label=f"peak with memory_limit {_LIMIT_MB} MB, {lanes}", figure="peak_mb", side=side, unit="MB",
        at_most=_LIMIT_MB * 1.1,
    )  # fmt: skip


CASE = Case(
    name="text_memory",
    summary=f"2.1 GB of text of varied length, shuffled in windows of {_WINDOW}, with memory_limit={_LIMIT_MB} MB",
    prepare=_prepare,
    sides=(_side("one_lane", 1), _side("eight_lanes", 8)),
    bars=(_bar("one_lane", "1 lane"), _bar("eight_lanes", "8 lanes")),
)
