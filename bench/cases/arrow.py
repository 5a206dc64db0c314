"""Reading Arrow IPC files, beside copying the same rows out of memory-mapped record batches."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

import dataflow as flow
from bench.case import Figures
from bench.data import data_set
from bench.measure import timed
from bench.rows import small_rows
from bench.side_by_side import Engine, Peer, side_by_side
from connectors.tensors import to_numpy

__all__ = ["CASE"]

_BATCH = 1024
_FILES = 4


def _prepare(quick: bool) -> Path:
    rows = 500_000 if quick else 5_000_000

    def make(folder: Path) -> None:
        for number in range(_FILES):
            batches = list(small_rows(rows // _FILES, seed=number))
            with pa.ipc.new_file(str(folder / f"small-{number}.arrow"), batches[0].schema) as writer:
                for batch in batches:
                    writer.write_batch(batch)

    return data_set("small-arrow", make, rows=rows, version=1)


def _pipe(folder: Path) -> flow.Pipeline:
    return flow.read(f"{folder}/*.arrow").batch(_BATCH)


def _pyarrow(folder: Path, quick: bool) -> Figures:
    def work() -> tuple[int, int]:
        rows = batches = 0
        for file in sorted(folder.glob("*.arrow")):
            with pa.memory_map(str(file)) as mapped:
                reader = pa.ipc.open_file(mapped)
                for number in range(reader.num_record_batches):
                    block = reader.get_batch(number)
                    for start in range(0, block.num_rows, _BATCH):
                        part = block.slice(start, _BATCH)
                        made = {name: to_numpy(part[name]).copy() for name in part.schema.names}
                        rows += len(made["label"])
                        batches += 1
        return rows, batches

    return timed(work)


CASE = side_by_side(
    name="arrow",
    summary="5 million rows of 8 numbers in Arrow IPC files, in file order, batches of 1,024",
    prepare=_prepare,
    engine=Engine(pipe=_pipe, column="label", connector="connectors.arrow_ipc"),
    peer=Peer(name="pyarrow", run=_pyarrow, how="pyarrow, memory mapped, 1 thread", tool="pyarrow"),
)
