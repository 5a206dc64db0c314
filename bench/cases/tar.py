"""Reading WebDataset shards, beside Python's `tarfile`."""

from __future__ import annotations

import tarfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import dataflow as flow
from bench.case import Figures
from bench.data import data_set
from bench.measure import timed
from bench.shards import write_shard
from bench.side_by_side import Engine, Peer, side_by_side

__all__ = ["CASE"]

_BATCH = 64
_SHARDS = 4
_PAYLOAD_BYTES = 20_000


def _prepare(quick: bool) -> Path:
    samples = 4_000 if quick else 40_000

    def make(folder: Path) -> None:
        rng = np.random.default_rng(0)
        for shard in range(_SHARDS):
            write_shard(folder / f"shard-{shard}.tar", _samples(shard, samples // _SHARDS, rng))

    return data_set("shards", make, samples=samples, version=1)


def _samples(shard: int, count: int, rng: np.random.Generator) -> Iterator[tuple[str, dict[str, bytes]]]:
    for number in range(count):
        yield f"{shard}-{number:06}", {"bin": rng.bytes(_PAYLOAD_BYTES), "cls": str(number % 10).encode()}


def _pipe(folder: Path) -> flow.Pipeline:
    return flow.read(f"{folder}/*.tar").batch(_BATCH)


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


CASE = side_by_side(
    name="tar",
    summary="40,000 samples of 20 KB and a label in tar shards, in file order, batches of 64",
    prepare=_prepare,
    engine=Engine(pipe=_pipe, column="cls", connector="connectors.tar"),
    peer=Peer(name="python", run=_python, how="tarfile, 1 thread", tool="tarfile"),
)
