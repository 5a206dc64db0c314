"""Rows of 512 tokens from Parquet, shuffled in windows: beside plain reading and beside a DataLoader.

The bars are for epochs behind the first two; how the first goes is shown beside them.
"""

from __future__ import annotations

from pathlib import Path

import dataflow as flow
from bench.case import Bar, Case, Figures, Side
from bench.measure import DATALOADER_IMPORTS, ENGINE_IMPORTS, iterate, timed_when_warm
from bench.plain import WORKERS, columns_in_memory, dataloader, read_row_groups, slicing_dataloader
from bench.rows import tokens_in_parquet

__all__ = ["CASE"]

_BATCH = 256
_THREADS = WORKERS


def _prepare(quick: bool) -> Path:
    """100,000 rows (quick: 24,576) in row groups of 1,024, in four files."""
    rows = 24_576 if quick else 100_000

    return tokens_in_parquet(rows, files=4, group_rows=1024)


def _epochs(quick: bool) -> int:
    return 2 if quick else 5


def _dataflow(folder: Path, quick: bool) -> Figures:
    pipe = flow.read(f"{folder}/*.parquet").shuffle("64MB").seed(1).batch(_BATCH)
    with pipe.loader(threads=_THREADS) as loader:
        return timed_when_warm(lambda count: iterate(loader, "tokens", epochs=count), _epochs(quick))


def _pyarrow(folder: Path, quick: bool) -> Figures:
    def epochs(count: int) -> tuple[int, int]:
        rows = read_row_groups(folder, threads=_THREADS, passes=count)
        return rows, rows // _BATCH

    return timed_when_warm(epochs, _epochs(quick))


def _dataloader(folder: Path, quick: bool) -> Figures:
    loader = dataloader(columns_in_memory(folder), batch=_BATCH)
    return timed_when_warm(lambda count: iterate(loader, "tokens", epochs=count), 1 if quick else 2)


def _slicing_dataloader(folder: Path, quick: bool) -> Figures:
    loader = slicing_dataloader(columns_in_memory(folder), batch=_BATCH)
    return timed_when_warm(lambda count: iterate(loader, "tokens", epochs=count), _epochs(quick))


CASE = Case(
    name="tokens",
    summary="100,000 rows of 512 int32 in Parquet (zstd), shuffled windows, batches of 256, two threads",
    prepare=_prepare,
    sides=(
        Side(name="dataflow", run=_dataflow, imports=ENGINE_IMPORTS),
        Side(name="pyarrow", run=_pyarrow, imports=("pyarrow.parquet",)),
        Side(name="dataloader", run=_dataloader, imports=DATALOADER_IMPORTS),
        Side(name="slicing_dataloader", run=_slicing_dataloader, imports=DATALOADER_IMPORTS),
    ),
    bars=(
        Bar(label=f"dataflow, {_THREADS} threads", figure="rows_per_s", side="dataflow", unit="rows/s"),
        Bar(label=f"pyarrow, {_THREADS} threads", figure="rows_per_s", side="pyarrow", unit="rows/s"),
        Bar(label=f"DataLoader, {WORKERS} workers", figure="rows_per_s", side="dataloader", unit="rows/s"),
        Bar(
            label=f"slicing DataLoader, {WORKERS} workers", figure="rows_per_s", side="slicing_dataloader",
            unit="rows/s",
        ),
        Bar(
            label="against pyarrow", figure="rows_per_s", side="dataflow", against="pyarrow", how="ratio",
            at_least=0.75,
        ),
        Bar(
            label="against DataLoader", figure="rows_per_s", side="dataflow", against="dataloader", how="ratio",
            at_least=3,
        ),
        Bar(
            label="against slicing DataLoader", figure="rows_per_s", side="dataflow",
            against="slicing_dataloader", how="ratio",
        ),
        Bar(
            label="against pyarrow, first epoch", figure="first_rows_per_s", side="dataflow", against="pyarrow",
            how="ratio",
        ),
        Bar(
            label="against DataLoader, first epoch", figure="first_rows_per_s", side="dataflow",
            against="dataloader", how="ratio",
        ),
    ),
)  # fmt: skip
