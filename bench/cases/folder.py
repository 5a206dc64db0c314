"""Reading a folder of class folders, beside opening file after file."""

from __future__ import annotations

from collections.abc import Sized
from functools import partial
from pathlib import Path

import numpy as np

import dataflow as flow
from bench.case import Bar, Case, Figures, Side
from bench.data import data_set
from bench.measure import ENGINE_IMPORTS, iterate, timed

__all__ = ["CASE"]

_BATCH = 64
_CLASSES = 10
_FILE_BYTES = 10_000


def _prepare(quick: bool) -> Path:
    files = 2_000 if quick else 20_000

    def make(folder: Path) -> None:
        rng = np.random.default_rng(0)
        for number in range(_CLASSES):
            (folder / f"class-{number}").mkdir()
        for number in range(files):
            name = f"class-{number % _CLASSES}/{number:06}.jpg"
            (folder / name).write_bytes(rng.bytes(_FILE_BYTES))

    return data_set("files", make, files=files, version=1)


def _dataflow(folder: Path, quick: bool) -> Figures:
    with flow.read(folder, format="folder").batch(_BATCH).loader(threads=2, output="numpy") as loader:
        return timed(partial(iterate, loader, "label"))


def _python(folder: Path, quick: bool) -> Figures:
    files = [
        (file, label)
        for label, place in enumerate(sorted(folder.iterdir()))
        for file in sorted(place.iterdir())
    ]

    def work() -> tuple[int, int]:
        rows = batches = 0
        for start in range(0, len(files), _BATCH):
            part = files[start : start + _BATCH]
            made: dict[str, Sized] = {
                "bytes": [file.read_bytes() for file, _ in part],
                "label": np.array([label for _, label in part]),
            }
            rows += len(made["bytes"])
            batches += 1
        return rows, batches

    return timed(work)


CASE = Case(
    name="folder",
    summary="20,000 files of 10 KB in class folders, in file order, batches of 64",
    prepare=_prepare,
    sides=(
        Side(name="dataflow", run=_dataflow, imports=(*ENGINE_IMPORTS, "connectors.folder")),
        Side(name="python", run=_python),
    ),
    bars=(
        Bar(label="dataflow, 2 threads", figure="rows_per_s", side="dataflow", unit="rows/s"),
        Bar(label="open and read, 1 thread", figure="rows_per_s", side="python", unit="rows/s"),
        Bar(
            label="against open and read", figure="rows_per_s", side="dataflow", against="python", how="ratio"
        ),
    ),
)
