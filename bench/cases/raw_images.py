"""Images stored as raw pixels in Arrow files, shuffled in windows: beside copying the same memory."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

import dataflow as flow
from bench.case import Bar, Case, Figures, Side
from bench.image_files import RAW_SIDE, raw_images_on_disk
from bench.measure import ENGINE_IMPORTS, iterate, timed_when_warm
from bench.plain_images import copy_rows
from connectors.tensors import to_numpy

__all__ = ["CASE"]

_BATCH = 64
_THREADS = 2


def _prepare(quick: bool) -> Path:
    """0.8 GB (quick: 0.1 GB)."""
    return raw_images_on_disk(512 if quick else 4096)


def _epochs(quick: bool) -> int:
    return 2 if quick else 4


def _dataflow(folder: Path, quick: bool) -> Figures:
    pipe = flow.read(f"{folder}/*.arrow").shuffle("64MB").batch(_BATCH)
    with pipe.loader(threads=_THREADS) as loader:
        return timed_when_warm(lambda count: iterate(loader, "image", epochs=count), _epochs(quick))


def _copy(folder: Path, quick: bool) -> Figures:
    rows = [
        to_numpy(batch["image"])
        for file in sorted(folder.glob("*.arrow"))
        for batch in pa.ipc.open_file(pa.memory_map(str(file))).read_all().to_batches()
    ]

    def epochs(count: int) -> tuple[int, int]:
        copied = copy_rows(rows, threads=_THREADS, passes=count)
        return copied, copied // _BATCH

    return timed_when_warm(epochs, _epochs(quick))


CASE = Case(
    name="raw_images",
    summary=f"4,096 uint8 images of {RAW_SIDE} x {RAW_SIDE} in Arrow files, shuffled, batches of {_BATCH}, two threads",
    prepare=_prepare,
    sides=(
        Side(name="dataflow", run=_dataflow, imports=(*ENGINE_IMPORTS, "connectors.arrow_ipc")),
        Side(name="copy", run=_copy),
    ),
    bars=(
        Bar(label=f"dataflow, {_THREADS} threads", figure="rows_per_s", side="dataflow", unit="images/s"),
        Bar(label=f"copying alone, {_THREADS} threads", figure="rows_per_s", side="copy", unit="images/s"),
        Bar(
            label="against copying alone", figure="rows_per_s", side="dataflow", against="copy", how="ratio",
            at_least=0.6,
        ),
    ),
)  # fmt: skip
