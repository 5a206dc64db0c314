"""Where a fragment is damaged, which rows are bad depends on the data alone: not on memory, threads, lanes or ranks."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from meeting import meeting_loaders

import dataflow as flow
from dataflow.errors import DataError
from dataflow.options import ErrorPolicy

ROWS = 12_000
TABLE = pa.table(
    {
        "x": np.arange(ROWS),
        "text": [f"{k} " + "t" * 200 for k in range(ROWS)],
    }
)


def _broken(path: Path, start: float, size: int) -> Path:
    content, before = bytearray(path.read_bytes()), path.stat()
    place = int(start * len(content))
    content[place : place + size] = b"\xff" * size
    path.write_bytes(bytes(content))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))  # not one that was written again
    return path


def _parquet(folder: Path) -> Callable[[], Path]:
    path = folder / "t.parquet"
    pq.write_table(
        TABLE, path, row_group_size=ROWS // 2, use_dictionary=False, compression="zstd", data_page_size=20_000,
        write_statistics=False,
    )  # fmt: skip
    return lambda: _broken(path, 0.3, 64)


def _arrow(folder: Path) -> Callable[[], Path]:
    path = folder / "t.arrow"
    with pa.ipc.new_file(str(path), TABLE.schema) as writer:
        writer.write_table(TABLE, max_chunksize=ROWS // 2)
    return lambda: _broken(path, 0.4, 64)


def _packed_arrow(folder: Path) -> Callable[[], Path]:
    path = folder / "t.arrow"
    with pa.ipc.new_file(
        str(path), TABLE.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")
    ) as writer:
        writer.write_table(TABLE, max_chunksize=ROWS // 2)
    return lambda: _broken(path, 0.3, 64)


def _gz(folder: Path) -> Callable[[], Path]:
    path = folder / "t.jsonl.gz"
    generator = np.random.default_rng(0)
    lines = [json.dumps({"x": k, "text": generator.bytes(600).hex()}) for k in range(ROWS)]
    path.write_bytes(gzip.compress("\n".join(lines).encode(), 1))
    return lambda: _broken(path, 0.7, 64)


MAKERS = {"Parquet": _parquet, "Arrow": _arrow, "compressed Arrow": _packed_arrow, "JSON lines in gzip": _gz}


@pytest.fixture(params=MAKERS)
def pipe(request: pytest.FixtureRequest, tmp_path: Path) -> flow.Pipeline:
    damage = MAKERS[request.param](tmp_path)
    made = flow.read(str(next(tmp_path.iterdir())))
    assert made.count() == ROWS  # it is indexed while it is whole
    damage()
    return made


def _good(loader: Any) -> list[int]:
    with loader:
        return sorted(x for batch in loader for x in batch["x"].tolist())


@pytest.mark.parametrize("shuffle", [None, 1000])
def test_the_rows_that_are_skipped_are_the_same_whatever_there_is(
    pipe: flow.Pipeline, shuffle: int | None
) -> None:
    shuffled = pipe if shuffle is None else pipe.shuffle(shuffle)
    found = [
        _good(
            shuffled.batch(20, lanes=lanes, remainder="keep").loader(
                output="numpy", on_error="skip", memory_limit=memory, threads=threads
            )
        )
        for lanes, memory, threads in [(1, "60MB", 1), (2, "100MB", 3), (4, "1GB", 4)]
    ]
    assert 0 < len(found[0]) < ROWS
    assert len(set(found[0])) == len(found[0])
    assert found == [found[0]] * len(found)


def test_ranks_skip_the_rows_that_one_skips(pipe: flow.Pipeline) -> None:
    batches = pipe.batch(global_size=20, lanes=2, remainder="pad")
    alone = _good(batches.loader(output="numpy", on_error="skip"))
    ranks = meeting_loaders(batches, 2, errors=[ErrorPolicy(on_error="skip")] * 2)
    found: set[int] = set()
    running = [iter(loader) for loader in ranks]
    for parts in zip(*running, strict=True):
        found.update(x for part in parts for x in part["x"].tolist())
    for loader in ranks:
        loader.close()
    assert found == set(alone)


def test_what_comes_in_front_of_the_error_is_the_same_whatever_memory_there_is(pipe: flow.Pipeline) -> None:
    found: list[tuple[list[int], str]] = []
    for memory, threads in [("60MB", 1), ("100MB", 3), ("1GB", 4)]:
        values: list[int] = []
        loader = pipe.batch(20).loader(output="numpy", memory_limit=memory, threads=threads)
        with loader, pytest.raises(DataError) as caught:
            values.extend(x for batch in loader for x in batch["x"].tolist())
        found.append((values, str(caught.value)))
    assert found == [found[0]] * len(found)
    skipped = _good(pipe.batch(20, lanes=1, remainder="keep").loader(output="numpy", on_error="skip"))
    assert found[0][0] == skipped[: len(found[0][0])] == list(range(len(found[0][0])))
    assert not set(range(len(found[0][0]), len(found[0][0]) + 20)) <= set(skipped)


def test_a_damaged_page_costs_the_rows_of_its_row_group_that_lie_behind_it(tmp_path: Path) -> None:
    damage = _parquet(tmp_path)
    pipe = flow.read(str(tmp_path / "t.parquet"))
    pipe.count()
    damage()
    good = _good(pipe.batch(20, remainder="keep").loader(output="numpy", on_error="skip"))
    front = len([x for x in good if x < ROWS // 2])
    assert good == [*range(front), *range(ROWS // 2, ROWS)]
    assert (front > 1000, front % 16) == (True, 0)
