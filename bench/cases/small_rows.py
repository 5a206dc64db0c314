"""Five million small rows: beside a DataLoader, and what a batch costs beyond reading its rows.

Each side has gone through two epochs before its clock starts.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

import dataflow as flow
from bench.case import Bar, Case, Figures, Side
from bench.measure import DATALOADER_IMPORTS, ENGINE_IMPORTS, iterate, timed_when_warm
from bench.plain import WORKERS, columns_in_memory, dataloader, read_row_groups, slicing_dataloader
from bench.rows import SMALL_COLUMNS, small_rows_in_parquet

__all__ = ["CASE"]

_BATCH = 1024
_THREADS = WORKERS


def _prepare(quick: bool) -> Path:
    return small_rows_in_parquet(1_000_000 if quick else 5_000_000, files=4, group_rows=65_536)


def _dataflow(folder: Path, quick: bool, *, lanes: int, shuffled: bool) -> Figures:
    rows = flow.read(f"{folder}/*.parquet")
    pipe = (rows.shuffle("16MB").seed(1) if shuffled else rows).batch(_BATCH, lanes=lanes)
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


def _slicing_dataloader(folder: Path, quick: bool) -> Figures:
    loader = slicing_dataloader(columns_in_memory(folder), batch=_BATCH)
    return timed_when_warm(lambda count: iterate(loader, "label", epochs=count), 1)


def _side(lanes: int, *, shuffled: bool) -> Side:
    return Side(
        name=f"{'shuffled' if shuffled else 'in_order'}_{lanes}",
        run=partial(_dataflow, lanes=lanes, shuffled=shuffled),
        imports=ENGINE_IMPORTS,
    )


def _rate(label: str, side: str) -> Bar:
    return Bar(label=label, figure="rows_per_s", side=side, unit="rows/s")


def _costs(side: Side, what: str) -> tuple[Bar, Bar]:
    """What a batch of a side takes beyond reading its rows: by the clock, which is judged, and of the processors."""

    def cost(kind: str, at_most: float | None) -> Bar:
        return Bar(
            label=f"{kind} cost a batch beyond reading, {what}", figure=f"{kind}_us_per_batch",
            side=side.name, against="pyarrow", how="difference", unit="us", at_most=at_most,
        )  # fmt: skip

    return cost("wall", 50), cost("cpu", None)


_IN_ORDER, _IN_ORDER_8 = _side(1, shuffled=False), _side(8, shuffled=False)
_SHUFFLED, _SHUFFLED_8 = _side(1, shuffled=True), _side(8, shuffled=True)

CASE = Case(
    name="small_rows",
    summary=f"5 million rows of {len(SMALL_COLUMNS)} numbers in Parquet (zstd), batches of 1,024",
    prepare=_prepare,
    sides=(
        _IN_ORDER,
        _IN_ORDER_8,
        _SHUFFLED,
        _SHUFFLED_8,
        Side(name="pyarrow", run=_pyarrow, imports=("pyarrow.parquet",)),
        Side(name="dataloader", run=_dataloader, imports=DATALOADER_IMPORTS, repeats=3),
        Side(name="slicing_dataloader", run=_slicing_dataloader, imports=DATALOADER_IMPORTS, repeats=3),
    ),
    bars=(
        _rate(f"dataflow, {_THREADS} threads, shuffled, 1 lane", _SHUFFLED.name),
        _rate(f"dataflow, {_THREADS} threads, shuffled, 8 lanes", _SHUFFLED_8.name),
        _rate(f"pyarrow, {_THREADS} threads", "pyarrow"),
        _rate(f"DataLoader, {WORKERS} workers", "dataloader"),
        _rate(f"slicing DataLoader, {WORKERS} workers", "slicing_dataloader"),
        Bar(
            label="against DataLoader", figure="rows_per_s", side=_SHUFFLED.name, against="dataloader",
            how="ratio", at_least=10,
        ),
        Bar(
            label="against slicing DataLoader", figure="rows_per_s", side=_SHUFFLED.name,
            against="slicing_dataloader", how="ratio",
        ),
        *_costs(_IN_ORDER, "file order, 1 lane"),
        *_costs(_IN_ORDER_8, "file order, 8 lanes"),
        *_costs(_SHUFFLED, "shuffled, 1 lane"),
        *_costs(_SHUFFLED_8, "shuffled, 8 lanes"),
    ),
)  # fmt: skip
