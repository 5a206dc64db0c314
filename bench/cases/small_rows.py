"""Five million small rows: beside a DataLoader, and what a batch costs beyond reading its rows.

Each side has gone through two epochs before its clock starts.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

import dataflow as flow
from bench.case import Bar, Case, Figures, Side
from bench.measure import DATALOADER_IMPORTS, ENGINE_IMPORTS, iterate, timed_when_warm
from bench.plain import columns_in_memory, dataloader, read_row_groups
from bench.rows import SMALL_COLUMNS, small_rows_in_parquet

__all__ = ["CASE"]

_BATCH = 1024
_THREADS = 2


def _prepare(quick: bool) -> Path:
    return small_rows_in_parquet(1_000_000 if quick else 5_000_000, files=4, group_rows=65_536)


def _dataflow(folder: Path, quick: bool, *, lanes: int) -> Figures:
    pipe = flow.read(f"{folder}/*.parquet").shuffle("16MB").seed(1).batch(_BATCH, lanes=lanes)
    with pipe.loader(threads=_THREADS) as loader:
        return timed_when_warm(lambda count: iterate(loader, "label", epochs=count), 1)


def _pyarrow(folder: Path, quick: bool) -> Figures:
    def epochs(count: int) -> tuple[int, int]:
        rows = read_row_groups(folder, threads=_THREADS, passes=count)
        return rows, rows // _BATCH

    return timed_when_warm(epochs, 1)


def _dataloader(folder: Path, quick: bool) -> Figures:
    loader = dataloader(columns_in_memory(folder), batch=_BATCH)
    # A whole epoch would take minutes, and the rate does not change in it.
    some = 30 if quick else 150
    return timed_when_warm(lambda count: iterate(loader, "label", epochs=count, max_batches=some), 2)


def _cost(kind: str, lanes: int, at_most: float | None) -> Bar:
    return Bar(
        label=f"{kind} cost a batch beyond reading, {lanes} lane{'s' * (lanes > 1)}", figure=f"{kind}_us_per_batch",
        side=f"dataflow_{lanes}", against="pyarrow", how="difference", unit="us", at_most=at_most,
    )  # fmt: skip


CASE = Case(
    name="small_rows",
    summary=f"5 million rows of {len(SMALL_COLUMNS)} numbers in Parquet (zstd), shuffled windows, batches of 1,024",
    prepare=_prepare,
    sides=(
        Side(name="dataflow_1", run=partial(_dataflow, lanes=1), imports=ENGINE_IMPORTS),
        Side(name="dataflow_8", run=partial(_dataflow, lanes=8), imports=ENGINE_IMPORTS),
        Side(name="pyarrow", run=_pyarrow, imports=("pyarrow.parquet",)),
        Side(name="dataloader", run=_dataloader, imports=DATALOADER_IMPORTS, repeats=3),
    ),
    bars=(
        Bar(label="dataflow, 1 lane", figure="rows_per_s", side="dataflow_1", unit="rows/s"),
        Bar(label="dataflow, 8 lanes", figure="rows_per_s", side="dataflow_8", unit="rows/s"),
        Bar(label="pyarrow", figure="rows_per_s", side="pyarrow", unit="rows/s"),
        Bar(label="DataLoader", figure="rows_per_s", side="dataloader", unit="rows/s"),
        Bar(
            label="against DataLoader", figure="rows_per_s", side="dataflow_1", against="dataloader", how="ratio",
            at_least=10,
        ),
        _cost("wall", 1, 50),
        _cost("wall", 8, 50),
        _cost("cpu", 1, None),
        _cost("cpu", 8, None),
    ),
)  # fmt: skip
