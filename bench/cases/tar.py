"""Reading WebDataset shards, beside Python's `tarfile`."""

from __future__ import annotations

import io
import tarfile
from functools import partial
from pathlib import Path

import numpy as np

import dataflow as flow
from bench.case import Bar, Case, Figures, Side
from bench.data import data_set
from bench.measure import ENGINE_IMPORTS, iterate, timed

__all__ = ["CASE"]

_BATCH = 64
_SHARDS = 4
_PAYLOAD_BYTES = 20_000


def _prepare(quick: bool) -> Path:
    samples = 4_000 if quick else 40_000

    def make(folder: Path) -> None:
        rng = np.random.default_rng(0)
        for shard in range(_SHARDS):
            with tarfile.open(folder / f"shard-{shard}.tar", "w") as archive:
                for number in range(samples // _SHARDS):
                    _add(archive, f"{shard}-{number:06}.bin", rng.bytes(_PAYLOAD_BYTES))
                    _add(archive, f"{shard}-{number:06}.cls", str(number % 10).encode())

    return data_set("shards", make, samples=samples, version=1)


def _add(archive: tarfile.TarFile, name: str, data: bytes) -> None:
    member = tarfile.TarInfo(name)
    member.size = len(data)
    archive.addfile(member, io.BytesIO(data))


def _dataflow(folder: Path, quick: bool) -> Figures:
    with flow.read(f"{folder}/*.tar").batch(_BATCH).loader(threads=2, output="numpy") as loader:
        return timed(partial(iterate, loader, "cls"))


def _python(folder: Path, quick: bool) -> Figures:
    def work() -> tuple[int, int]:
        rows = batches = 0
        held: dict[str, dict[str, bytes]] = {}
        for shard in sorted(folder.glob("*.tar")):
            with tarfile.open(shard) as archive:
                for member in archive:
                    key, _, column = member.name.partition(".")
                    if key not in held and len(held) == _BATCH:
                        rows += len(np.array([int(row["cls"]) for row in held.values()]))
                        batches += 1
                        held = {}
                    data = archive.extractfile(member)
                    held.setdefault(key, {})[column] = data.read() if data else b""
        return rows + len(held), batches + 1

    return timed(work)


CASE = Case(
    name="tar",
    summary="40,000 samples of 20 KB and a label in tar shards, in file order, batches of 64",
    prepare=_prepare,
    sides=(
        Side(name="dataflow", run=_dataflow, imports=(*ENGINE_IMPORTS, "connectors.tar")),
        Side(name="python", run=_python),
    ),
    bars=(
        Bar(label="dataflow, 2 threads", figure="rows_per_s", side="dataflow", unit="rows/s"),
        Bar(label="tarfile, 1 thread", figure="rows_per_s", side="python", unit="rows/s"),
        Bar(label="against tarfile", figure="rows_per_s", side="dataflow", against="python", how="ratio"),
    ),
)
