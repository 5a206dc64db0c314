"""Files that stay open between two row groups: few at a time, and none behind the end."""

from __future__ import annotations

import io
import json
import os
import shutil
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

import dataflow as flow
from dataflow.errors import DataError

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


def test_a_file_that_is_replaced_during_an_epoch_is_an_error_and_never_other_rows(
    folder: Path, tmp_path: Path
) -> None:
    shutil.copytree(folder, tmp_path / "data")
    seen: list[int] = []
    with (
        flow.read(f"{tmp_path}/data/*.parquet")
        .batch(512)
        .loader(threads=1, prefetch=1, output="numpy") as loader
    ):
        batches = iter(loader)
        seen += next(batches)["row"].tolist()
        other = pa.table({"row": np.full(ROWS, -1), **{f"c{k}": np.zeros(ROWS) for k in range(10)}})
        file = tmp_path / "data" / f"{FILES - 1:02}.parquet"
        pq.write_table(other, tmp_path / "new", row_group_size=GROUP, compression="none")
        (tmp_path / "new").replace(file)
        with pytest.raises(DataError, match=f"{file.name}.*has changed since it was indexed"):
            seen.extend(row for batch in batches for row in batch["row"].tolist())
    assert seen == list(range(len(seen)))


def test_a_file_that_is_rewritten_while_it_is_open_is_an_error_and_never_other_rows(tmp_path: Path) -> None:
    table = pa.table({"row": np.arange(40 * ROWS)})
    pq.write_table(
        table, tmp_path / "a.parquet", row_group_size=GROUP, compression="none", use_dictionary=False
    )
    written = (tmp_path / "a.parquet").read_bytes()
    with flow.read(tmp_path / "a.parquet").batch(64).loader(threads=1, output="numpy") as loader:
        assert next(iter(loader))["row"].tolist() == list(range(64))
        # Other rows in as many bytes.
        (tmp_path / "a.parquet").write_bytes(written[:4] + bytes(1000) + written[1004:])
        # Some epochs may have been read ahead.
        with pytest.raises(DataError, match="has changed since it was indexed"):
            assert all(batch["row"].all() or batch["row"][0] == 0 for _ in range(20) for batch in loader)


def _write_jsonl(table: pa.Table, path: str) -> None:
    Path(path).write_text("".join(json.dumps(row) + "\n" for row in table.to_pylist()))


def _write_tar(table: pa.Table, path: str) -> None:
    with tarfile.open(path, "w") as shard:
        for key, row in enumerate(table["row"].to_pylist()):
            content = str(row).encode()
            member = tarfile.TarInfo(f"{key:06}.cls")
            member.size = len(content)
            shard.addfile(member, io.BytesIO(content))


def _write_feather(table: pa.Table, path: str) -> None:
    feather.write_feather(table, path, compression="uncompressed")


@pytest.mark.parametrize(
    ("suffix", "write"),
    [
        (".parquet", pq.write_table),
        (".arrow", _write_feather),
        (".jsonl", _write_jsonl),
        (".tar", _write_tar),
    ],
)
def test_a_file_that_is_replaced_while_it_is_opened_is_an_error_and_gives_no_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str, write: Callable[..., Any]
) -> None:
    write(pa.table({"row": np.arange(800)}), f"{tmp_path}/a{suffix}")
    write(pa.table({"row": np.arange(800) + 1000}), f"{tmp_path}/new")
    os.utime(tmp_path / "new", (1, 1))  # it may have the size of the other, and have been written in one tick
    pipe = flow.read(f"{tmp_path}/a{suffix}")
    assert pipe.count() == 800

    def replacing(open_file: Callable[..., Any]) -> Callable[..., Any]:
        def replaced_first(*given: Any) -> Any:
            if (tmp_path / "new").exists():
                (tmp_path / "new").replace(tmp_path / f"a{suffix}")
            return open_file(*given)

        return replaced_first

    for opener in ("OSFile", "memory_map"):
        monkeypatch.setattr(pa, opener, replacing(getattr(pa, opener)))
    with pipe.batch(8).loader(output="numpy") as loader:
        batches = iter(loader)
        with pytest.raises(DataError, match="has changed since it was indexed"):
            next(batches)
