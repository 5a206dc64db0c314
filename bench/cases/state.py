"""What a state costs to take, how large it is, and what a restore reads late and early in an epoch."""

from __future__ import annotations

import json
import statistics
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import dataflow as flow
from bench.case import Bar, Case, Figures, Side
from bench.measure import ENGINE_IMPORTS
from bench.rows import small_rows_in_parquet
from loaders.torch import TorchLoader

__all__ = ["CASE"]

_BATCH = 256
_LANES = 8
# So small that a lane is past its first window, which is shorter, at 1 % of an epoch.
_WINDOW_ROWS = 1024
_CALLS = 200
_RESTORES = 5
_MEMORY_LIMIT = 4_500_000


def _prepare(quick: bool) -> Path:
    return small_rows_in_parquet(1_048_576 if quick else 2_097_152, files=4, group_rows=1024)


def _pipeline(folder: Path, *, filtered: bool) -> flow.Pipeline:
    pipe = flow.read(f"{folder}/*.parquet").shuffle(_WINDOW_ROWS).seed(1)
    if filtered:
        pipe = pipe.filter(_keeps, batched=True)
    return pipe.batch(_BATCH, lanes=_LANES)


def _keeps(columns: dict[str, Any]) -> npt.NDArray[np.bool_]:
    kept: npt.NDArray[np.bool_] = columns["label"] < 8
    return kept


def _loader(folder: Path, *, filtered: bool) -> TorchLoader:
    # One thread and hardly any room to read ahead, so that what is read is what the first batch needs.
    return _pipeline(folder, filtered=filtered).loader(threads=1, prefetch=1, memory_limit=_MEMORY_LIMIT)


def _state(folder: Path, quick: bool, *, filtered: bool) -> Figures:
    taken = []
    with _loader(folder, filtered=filtered) as loader:
        for batch, _ in enumerate(loader):
            start = time.perf_counter()
            state = loader.state_dict()
            taken.append(time.perf_counter() - start)
            if batch + 1 == _CALLS:
                break
    return {"state_us": statistics.median(taken) * 1e6, "state_bytes": len(json.dumps(state))}


def _restore(folder: Path, quick: bool, *, share: float) -> Figures:
    """Read up to the first batch behind a state at `share` of an epoch, always at the same place in a window."""
    steps_a_window = _WINDOW_ROWS * _LANES // _BATCH
    found = []
    for _ in range(_RESTORES):
        with _loader(folder, filtered=False) as loader:
            step = int(len(loader) * share) // steps_a_window * steps_a_window
            loader.load_state_dict({**loader.state_dict(), "step": step})
            start = time.perf_counter()
            next(iter(loader))
            took = time.perf_counter() - start
            stages: Any = loader.stats()["stages"]
            found.append((stages["read"]["rows"], stages["read"]["bytes"] / 1e6, took))
    # What was read ahead by then differs from time to time; the least is what the batch needs.
    rows, megabytes, _ = min(found)
    return {"rows_read": rows, "mb_read": megabytes, "restore_s": statistics.median(f[2] for f in found)}


CASE = Case(
    name="state",
    summary=f"{_LANES} lanes, windows of {_WINDOW_ROWS} rows: state_dict() after each of {_CALLS} batches, restores",
    prepare=_prepare,
    sides=(
        Side(name="plain", run=partial(_state, filtered=False), imports=ENGINE_IMPORTS),
        Side(name="filtered", run=partial(_state, filtered=True), imports=ENGINE_IMPORTS),
        Side(name="restore_1", run=partial(_restore, share=0.01), imports=ENGINE_IMPORTS),
        Side(name="restore_90", run=partial(_restore, share=0.9), imports=ENGINE_IMPORTS),
    ),
    bars=(
        Bar(label="state_dict()", figure="state_us", side="plain", unit="us", at_most=1000),
        Bar(label="state_dict(), filter by function", figure="state_us", side="filtered", unit="us", at_most=1000),
        Bar(label="size", figure="state_bytes", side="plain", unit="bytes", at_most=8000),
        Bar(label="size, filter by function", figure="state_bytes", side="filtered", unit="bytes", at_most=8000),
        Bar(label="rows read by a restore at 1 %", figure="rows_read", side="restore_1"),
        Bar(label="rows read by a restore at 90 %", figure="rows_read", side="restore_90"),
        Bar(
            label="rows, 90 % against 1 %", figure="rows_read", side="restore_90", against="restore_1", how="ratio",
            at_most=1,
        ),
        Bar(
            label="bytes, 90 % against 1 %", figure="mb_read", side="restore_90", against="restore_1", how="ratio",
            at_most=1,
        ),
        Bar(label="first batch of a restore at 90 %", figure="restore_s", side="restore_90", unit="s"),
    ),
)  # fmt: skip
