"""Reading a folder of class folders, beside opening file after file."""

from __future__ import annotations

from collections.abc import Sized
from pathlib import Path

import numpy as np

import dataflow as flow
from bench.case import Figures
from bench.data import data_set
from bench.measure import timed
from bench.side_by_side import Engine, Peer, side_by_side

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


def _pipe(folder: Path) -> flow.Pipeline:
    return flow.read(folder, format="folder").batch(_BATCH)


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


CASE = side_by_side(
    name="folder",
    summary="20,000 files of 10 KB in class folders, in file order, batches of 64",
    prepare=_prepare,
    engine=Engine(pipe=_pipe, column="label", connector="connectors.folder"),
    peer=Peer(name="python", run=_python, how="open and read, 1 thread", tool="open and read"),
)
