"""The order of an epoch over ten million fragments."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np

from bench.case import Bar, Case, Figures, Side
from bench.data import data_folder
from dataflow.order import stream
from dataflow.order.epoch import EpochOrder

__all__ = ["CASE"]

_LANES = 8
_WINDOW_ROWS = 100_000


def _prepare(quick: bool) -> Path:
    return data_folder()


def _order(folder: Path, quick: bool) -> Figures:
    """Permute the fragments, find the windows of all lanes, and work out the first and last rows of each lane."""
    fragments = 1_000_000 if quick else 10_000_000
    starts = np.zeros(fragments + 1, np.int64)
    np.cumsum(np.random.default_rng(0).integers(1, 400, fragments), out=starts[1:])
    begin = time.perf_counter()
    shuffled = stream.shuffle(stream.read(stream.Leaf(0, starts, True, False)), _WINDOW_ROWS)
    order = EpochOrder(shuffled, seed=0, lanes=_LANES, turn=3, chunk_rows=_WINDOW_ROWS)
    order.window_at(0, 0).resolve()
    first = time.perf_counter()
    for lane in range(_LANES):
        for row in (0, order.lane_rows(lane) - 1):
            order.window_at(lane, row).resolve()
    return {"first_window_s": first - begin, "order_s": time.perf_counter() - begin}


CASE = Case(
    name="epoch_order",
    summary=f"10 million fragments of 1 to 399 rows, shuffled, {_LANES} lanes: order and all window borders",
    prepare=_prepare,
    sides=(Side(name="dataflow", run=_order, imports=("dataflow.order.epoch",), memory=True, repeats=3),),
    bars=(
        Bar(label="order of an epoch", figure="order_s", side="dataflow", unit="s", at_most=10),
        Bar(label="first window", figure="first_window_s", side="dataflow", unit="s"),
        Bar(label="peak memory", figure="peak_mb", side="dataflow", unit="MB", at_most=1000),
    ),
)
