"""Data sets are made once, whole, and are the same everywhere."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bench.data import data_folder, data_set
from bench.rows import SMALL_COLUMNS, TOKENS_A_ROW, small_rows, token_rows, write_parquet


@pytest.fixture(autouse=True)
def own_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("DATAFLOW_BENCH", str(tmp_path / "bench"))
    return tmp_path / "bench"


def test_a_data_set_is_made_once(own_folder: Path) -> None:
    made = []

    def make(folder: Path) -> None:
        made.append(folder)
        (folder / "rows").write_text("data")

    folder = data_set("rows", make, rows=3)
    assert data_set("rows", make, rows=3) == folder
    assert len(made) == 1
    assert folder.parent == own_folder == data_folder()
    assert (folder / "rows").read_text() == "data"
    assert data_set("rows", make, rows=4) != folder


def test_a_data_set_that_could_not_be_made_is_not_there() -> None:
    def fails(folder: Path) -> None:
        (folder / "half").write_text("")
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        data_set("rows", fails, rows=3)
    folder = data_set("rows", lambda folder: None, rows=3)
    assert list(folder.iterdir()) == []


def test_rows_depend_on_the_seed_alone() -> None:
    tokens = pa.Table.from_batches(token_rows(10_000, seed=1))
    assert tokens.num_rows == 10_000
    assert tokens.schema.field("tokens").type == pa.list_(pa.int32(), TOKENS_A_ROW)
    assert tokens.equals(pa.Table.from_batches(token_rows(10_000, seed=1)))
    assert not tokens.equals(pa.Table.from_batches(token_rows(10_000, seed=2)))
    small = pa.Table.from_batches(small_rows(10_000, seed=1))
    assert tuple(small.schema.names) == SMALL_COLUMNS
    assert small["i0"].to_pylist() == list(range(10_000))


@pytest.mark.parametrize("rows", [1, 4096, 10_000, 16_384])
def test_parquet_has_the_row_groups_asked_for(tmp_path: Path, rows: int) -> None:
    write_parquet(tmp_path / "rows.parquet", small_rows(rows, seed=0), group_rows=1024)
    metadata = pq.ParquetFile(tmp_path / "rows.parquet").metadata
    sizes = [metadata.row_group(group).num_rows for group in range(metadata.num_row_groups)]
    assert sum(sizes) == rows
    assert set(sizes[:-1]) <= {1024}
    assert pq.read_table(tmp_path / "rows.parquet").equals(pa.Table.from_batches(small_rows(rows, seed=0)))
