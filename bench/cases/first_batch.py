"""The first batch of a data set of ten thousand files whose index is cached."""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path

import dataflow as flow
from bench.case import Bar, Case, Figures, Side
from bench.measure import ENGINE_IMPORTS
from bench.rows import small_rows_in_parquet

__all__ = ["CASE"]

_ROWS_A_FILE = 64


def _pipeline(folder: Path, window: int | str) -> flow.Pipeline:
    return flow.read(f"{folder}/*.parquet").shuffle(window).seed(1).batch(256)


def _prepare(quick: bool) -> Path:
    files = 500 if quick else 10_000
    folder = small_rows_in_parquet(files * _ROWS_A_FILE, files=files, group_rows=_ROWS_A_FILE)
    flow.read(f"{folder}/*.parquet").count()
    return folder


def _dataflow(folder: Path, quick: bool, *, window: int | str) -> Figures:
    begin = time.perf_counter()
    with _pipeline(folder, window).loader(threads=2) as loader:
        made = time.perf_counter()
        next(iter(loader))
        first = time.perf_counter()
    return {"loader_s": made - begin, "first_batch_s": first - made}


CASE = Case(
    name="first_batch",
    summary="10,000 Parquet files of 64 rows, index cached: from iter() to the first batch, windows of 64 files",
    prepare=_prepare,
    sides=(
        Side(name="dataflow", run=partial(_dataflow, window=64 * _ROWS_A_FILE), imports=ENGINE_IMPORTS),
        # All rows of a window are read before its first batch, here thousands of files.
        Side(name="wide", run=partial(_dataflow, window="16MB"), imports=ENGINE_IMPORTS, repeats=1),
    ),
    bars=(
        Bar(label="first batch", figure="first_batch_s", side="dataflow", unit="s", at_most=1),
        Bar(label="loader made", figure="loader_s", side="dataflow", unit="s"),
        Bar(label="first batch, window of 16 MB", figure="first_batch_s", side="wide", unit="s"),
    ),
)
