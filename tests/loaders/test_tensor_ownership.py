"""Tensors may be written to, reach no source, and stay as they are whatever the loader does afterwards."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest
import torch

import dataflow as flow

ROWS = 5000


def _table() -> pa.Table:
    wide = np.arange(ROWS * 16, dtype=np.float32).reshape(ROWS, 16)
    lists = pa.array([[row] * (row % 3) for row in range(ROWS)], pa.list_(pa.int64()))
    return pa.table(
        {
            "number": pa.array(np.arange(ROWS)),
            "wide": pa.FixedSizeListArray.from_arrays(pa.array(wide.ravel()), 16),
            "ragged": lists,
            "text": [f"row {row}" for row in range(ROWS)],
        }
    )


class _Rows:
    """A map-style data set that hands out views of its own array."""

    def __init__(self, wide: np.ndarray[Any, Any]) -> None:
        self.wide = wide

    def __len__(self) -> int:
        return len(self.wide)

    def __getitem__(self, row: int) -> dict[str, Any]:
        return {"number": row, "wide": self.wide[row]}


def _memory(folder: Path) -> tuple[flow.Pipeline, Callable[[], bool]]:
    table = _table()
    kept = table.take(pa.array(range(ROWS)))
    return flow.from_arrow(table), lambda: bool(table.equals(kept))


def _columns(folder: Path) -> tuple[flow.Pipeline, Callable[[], bool]]:
    number, wide = np.arange(ROWS), np.arange(ROWS * 16, dtype=np.float32).reshape(ROWS, 16)
    tensor = torch.arange(ROWS * 2).reshape(ROWS, 2)
    kept = number.copy(), wide.copy(), tensor.clone()
    pipe = flow.from_columns({"number": number, "wide": wide, "tensor": tensor})
    return (
        pipe,
        lambda: (
            np.array_equal(number, kept[0]) and np.array_equal(wide, kept[1]) and torch.equal(tensor, kept[2])
        ),
    )


def _dataset(folder: Path) -> tuple[flow.Pipeline, Callable[[], bool]]:
    wide = np.arange(ROWS * 16, dtype=np.float32).reshape(ROWS, 16)
    kept = wide.copy()
    return flow.from_dataset(_Rows(wide)), lambda: np.array_equal(wide, kept)


def _parquet(folder: Path) -> tuple[flow.Pipeline, Callable[[], bool]]:
    pq.write_table(_table(), folder / "a.parquet", row_group_size=700)
    kept = (folder / "a.parquet").read_bytes()
    return flow.read(folder / "a.parquet"), lambda: (folder / "a.parquet").read_bytes() == kept


def _feather(folder: Path) -> tuple[flow.Pipeline, Callable[[], bool]]:
    # Uncompressed and memory mapped: the tensors must not be the file.
    feather.write_feather(_table(), str(folder / "a.feather"), compression="uncompressed", chunksize=900)
    kept = (folder / "a.feather").read_bytes()
    return flow.read(folder / "a.feather"), lambda: (folder / "a.feather").read_bytes() == kept


SOURCES = {
    "arrow": _memory,
    "columns": _columns,
    "dataset": _dataset,
    "parquet": _parquet,
    "feather": _feather,
}


def _spoil(value: Any) -> None:
    if isinstance(value, torch.Tensor | np.ndarray):
        value[...] = 77
    elif isinstance(value, list):
        for item in value:
            if not isinstance(item, str | bytes):
                _spoil(item)


@pytest.mark.parametrize("output", ["torch", "numpy"])
@pytest.mark.parametrize("window", [None, 64, 3000])
@pytest.mark.parametrize("source", list(SOURCES))
def test_writing_into_every_batch_reaches_no_source_and_no_other_batch(
    tmp_path: Path, source: str, window: int | None, output: Any
) -> None:
    rows, unchanged = SOURCES[source](tmp_path)
    pipe = (rows if window is None else rows.shuffle(window)).batch(100)
    with pipe.loader(output=output, ids=True) as loader:
        for _ in range(2):
            for batch in loader:
                ids = [int(id_) for id_ in batch["__id__"]]
                assert [int(number) for number in batch["number"]] == ids
                if "wide" in batch:
                    assert [float(row[0]) for row in batch["wide"]] == [16.0 * id_ for id_ in ids]
                for value in batch.values():
                    _spoil(value)
    assert unchanged()


@pytest.mark.parametrize("lanes", [1, 4])
@pytest.mark.parametrize("window", [None, 256])
def test_batches_stay_as_they_are_for_as_long_as_they_are_held(
    tmp_path: Path, window: int | None, lanes: int
) -> None:
    pq.write_table(_table(), tmp_path / "a.parquet", row_group_size=700)
    rows = flow.read(tmp_path / "a.parquet")
    pipe = (rows if window is None else rows.shuffle(window)).batch(40, lanes=lanes)
    with pipe.loader() as loader:
        held = [batch for _ in range(3) for number, batch in enumerate(loader) if number % 3]
        copies = [{n: v.clone() if isinstance(v, torch.Tensor) else v for n, v in b.items()} for b in held]
        for _ in range(3):
            for batch in loader:
                _spoil(batch["wide"])
                _spoil(batch["number"])
    del loader
    for batch, copy in zip(held, copies, strict=True):
        assert torch.equal(batch["wide"], copy["wide"])
        assert torch.equal(batch["number"], copy["number"])
        assert torch.equal(batch["wide"][:, 0], 16.0 * batch["number"])
        assert [len(row) for row in batch["ragged"]] == [int(number) % 3 for number in batch["number"]]


def test_batches_of_one_window_do_not_share_what_is_written(tmp_path: Path) -> None:
    pipe = flow.from_arrow(_table()).shuffle(1000).batch(50)
    with pipe.loader() as loader:
        batches = list(loader)
    for number, batch in enumerate(batches):
        batch["wide"][...] = float(number)
    assert all(bool((batch["wide"] == float(number)).all()) for number, batch in enumerate(batches))


def test_a_batched_function_that_writes_into_its_columns_reaches_no_source() -> None:
    number = np.arange(ROWS)
    kept = number.copy()

    def inside(columns: dict[str, Any]) -> dict[str, Any]:
        if columns["number"].flags.writeable:
            columns["number"] += 1000
        return {"number": columns["number"]}

    pipe = (
        flow.from_columns({"number": number}).map(inside, batched=True, schema={"number": "int64"}).batch(50)
    )
    with pipe.loader(output="numpy") as loader:
        for _ in range(2):
            list(loader)
    assert np.array_equal(number, kept)


def test_padded_slots_are_rows_of_their_own() -> None:
    pipe = flow.from_columns({"number": np.arange(3)}).batch(6, remainder="pad")
    with pipe.loader() as loader:
        (batch,) = list(loader)
    assert batch["number"].tolist() == [0, 0, 1, 1, 2, 2]
    assert batch["__valid__"].tolist() == [True, False, True, False, True, False]
    batch["number"][0] = 9
    batch["__valid__"][1] = True
    assert batch["number"].tolist() == [9, 0, 1, 1, 2, 2]


def test_arrow_batches_cannot_be_written_through_to_later_ones() -> None:
    pipe = flow.from_columns({"wide": np.arange(ROWS * 16.0).reshape(ROWS, 16)}).shuffle(500).batch(50)
    with pipe.loader(output="arrow", ids=True) as loader:
        batches = list(loader)
        list(loader)
    for batch in batches:
        found: list[dict[str, Any]] = batch.to_pylist()
        assert [row["wide"][0] for row in found] == [16.0 * row["__id__"] for row in found]
