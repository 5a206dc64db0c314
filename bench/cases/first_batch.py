"""The first batch of a data set of ten thousand files whose index is cached."""

from __future__ import annotations

import time
from pathlib import Path

import dataflow as flow
from bench.case import Bar, Case, Figures, Side
from bench.measure import ENGINE_IMPORTS
from bench.rows import small_rows_in_parquet

__all__ = ["CASE"]

_ROWS_A_FILE = 64


def _pipeline(folder: Path) -> flow.Pipeline:
    return flow.read(f"{folder}/*.parquet").shuffle("16MB").seed(1).batch(256)


def _prepare(quick: bool) -> Path:
    files = 500 if quick else 10_000
    folder = small_rows_in_parquet(files * _ROWS_A_FILE, files=files, group_rows=_ROWS_A_FILE)
    flow.read(f"{folder}/*.parquet").count()
    return folder


def _dataflow(folder: Path, quick: bool) -> Figures:
    begin = time.perf_counter()
    with _pipeline(folder).loader(threads=2) as loader:
        made = time.perf_counter()
        next(iter(loader))
        first = time.perf_counter()
    return {"loader_s": made - begin, "first_batch_s": first - made}


CASE = Case(
    name="first_batch",
    summary="10,000 Parquet files of 64 rows, index cached: from read() to a loader, from iter() to the first batch",
    prepare=_prepare,
    sides=(Side(name="dataflow", run=_dataflow, imports=ENGINE_IMPORTS),),
    bars=(
        Bar(label="first batch", figure="first_batch_s", side="dataflow", unit="s", at_most=1),
        Bar(label="loader made", figure="loader_s", side="dataflow", unit="s"),
    ),
)
