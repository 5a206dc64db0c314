"""Files that stay open between two row groups: few at a time, and none behind the end."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dataflow as flow

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="asks /proc for the open files")

FILES, ROWS, GROUP = 60, 4096, 1024


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files too large to be read whole, so that each is opened."""
    folder = tmp_path_factory.mktemp("open")
    random = np.random.default_rng(5)
    for number in range(FILES):
        values = {f"c{k}": random.random(ROWS) for k in range(10)}
        table = pa.table({"row": np.arange(ROWS) + number * ROWS, **values})
        pq.write_table(table, folder / f"{number:02}.parquet", row_group_size=GROUP, compression="none")
    return folder


def _open_in(folder: Path) -> int:
    def target(number: Path) -> str:
        try:
            return str(number.readlink())
        except FileNotFoundError:
            return ""

    return sum(target(number).startswith(str(folder)) for number in Path("/proc/self/fd").iterdir())


def test_a_bounded_number_of_files_is_open_and_none_when_the_loader_is_closed(folder: Path) -> None:
    pipe = flow.read(f"{folder}/*.parquet").shuffle(GROUP).batch(512)
    seen, most = [], 0
    with pipe.loader(threads=3, output="numpy") as loader:
        for batch in loader:
            seen.append(batch["row"])
            most = max(most, _open_in(folder))
        assert 1 < most <= 32 + 3
    assert _open_in(folder) == 0
    assert sorted(np.concatenate(seen).tolist()) == list(range(FILES * ROWS))


def test_a_loader_that_was_broken_off_leaves_no_file_open(folder: Path) -> None:
    loader = flow.read(f"{folder}/*.parquet").shuffle(GROUP).batch(512).loader(threads=3, output="numpy")
    next(iter(loader))
    loader.set_epoch(2)
    next(iter(loader))
    loader.close()
    assert _open_in(folder) == 0
