"""Rows far larger than those that were sampled for the index: the memory limit holds, and the order is the same."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dataflow as flow
from bench.memory import PeakMemory, tree_pss_bytes
from dataflow.errors import PlanError

SMALL, LARGE, LARGE_BYTES, GROUP = 20_000, 6_000, 40_000, 1_000
LIMIT = 100_000_000


@pytest.fixture(scope="module")
def growing(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Texts of one byte, which the index samples, then 240 MB of texts of 40 KB."""
    path = tmp_path_factory.mktemp("growing") / "a.parquet"
    _write(path, use_dictionary=False, large_group=GROUP)
    return path


@pytest.fixture(scope="module")
def hidden(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same; the large texts are in one row group, whose footer says of 1 MB."""
    path = tmp_path_factory.mktemp("hidden") / "a.parquet"
    _write(path, use_dictionary=True, large_group=LARGE)
    return path


def _write(path: Path, *, use_dictionary: bool, large_group: int) -> None:
    schema = pa.table({"id": [0], "text": [""]}).schema
    groups = [(1, GROUP)] * (SMALL // GROUP) + [(LARGE_BYTES, large_group)] * (LARGE // large_group)
    first = 0
    with pq.ParquetWriter(path, schema, use_dictionary=use_dictionary) as writer:
        for size, rows in groups:
            ids = list(range(first, first + rows))
            texts = [chr(97 + row % 20) * size for row in ids]
            writer.write_table(pa.table({"id": ids, "text": texts}, schema))
            first += rows


def _batches(pipe: Any, limit: int, **options: Any) -> Iterator[dict[str, Any]]:
    with pipe.loader(output="arrow", threads=2, memory_limit=limit, **options) as loader:
        yield from loader


def _ids(pipe: Any, limit: int) -> list[int]:
    found: list[int] = []
    for batch in _batches(pipe, limit):
        found += batch["id"].to_pylist()
    return found


@pytest.mark.parametrize(
    ("shuffled", "lanes"), [(500, 1), (100, 4), (None, 1), (None, 4)], ids=lambda value: str(value)
)
def test_the_limit_holds_where_rows_grow(growing: Path, shuffled: int | None, lanes: int) -> None:
    assert _growth(growing, shuffled, lanes) < 2 * LIMIT


@pytest.mark.parametrize("shuffled", [500, None], ids=lambda value: str(value))
def test_the_limit_holds_where_a_dictionary_hides_how_large_rows_are(
    hidden: Path, shuffled: int | None
) -> None:
    assert _growth(hidden, shuffled, 1) < 2 * LIMIT


def _growth(path: Path, shuffled: int | None, lanes: int) -> int:
    """How far the memory of this process grows in one epoch. Without a bound it was all large rows, twice: 400 MB."""
    source = flow.read(path)
    pipe = (source if shuffled is None else source.shuffle(shuffled)).batch(40, lanes=lanes)
    list(_batches(flow.read(path).take(1_000).batch(40), LIMIT))  # what is imported and begun once
    before = tree_pss_bytes(os.getpid())
    with PeakMemory(os.getpid()) as peak:
        rows = sum(len(batch["text"]) for batch in _batches(pipe, LIMIT))
    assert rows == SMALL + LARGE
    return peak.peak_bytes - before


@pytest.mark.parametrize("lanes", [1, 4])
@pytest.mark.parametrize("function", [None, "rows", "blocks"])
def test_smaller_windows_of_large_rows_do_not_change_the_order(
    growing: Path, lanes: int, function: str | None
) -> None:
    pipe = flow.read(growing).skip(SMALL - 500).take(1_500)
    if function == "rows":
        pipe = pipe.map(lambda row: {"id": row["id"]}, schema={"id": "int64"})
    elif function == "blocks":
        pipe = pipe.map(_with_block_rows, batched=True, batch_size=30, schema={"id": "int64"})
    pipe = pipe.batch(20, lanes=lanes)
    assert _ids(pipe, 40_000_000) == _ids(pipe, 2_000_000_000)


def _with_block_rows(columns: dict[str, Any]) -> dict[str, Any]:
    """Ids that know how many rows came together."""
    return {"id": columns["id"] * 100 + len(columns["id"])}


def test_a_resume_among_large_rows_yields_the_same_rest(growing: Path) -> None:
    pipe = flow.read(growing).skip(SMALL - 500).take(1_500).batch(20)
    with pipe.loader(output="arrow", threads=2, memory_limit="40MB") as loader:
        batches = [(batch["id"].to_pylist(), loader.state_dict()) for batch in loader]
    with pipe.loader(output="arrow", threads=2, memory_limit="40MB") as loader:
        loader.load_state_dict(batches[40][1])
        assert [batch["id"].to_pylist() for batch in loader] == [ids for ids, _ in batches[41:]]


def test_a_window_that_cannot_fit_is_one_error_with_the_figures(growing: Path) -> None:
    pipe = flow.read(growing).shuffle("2MB").batch(40)
    with pytest.raises(
        PlanError, match=r"a window of .* rows takes \d+ MB so far.* memory_limit is 60 MB"
    ) as caught:
        list(_batches(pipe, 60_000_000))
    assert "shuffle(window=...)" in caught.value.hint


def test_what_flat_map_makes_of_a_window_is_one_error_where_it_is_far_too_large() -> None:
    text = "x" * 40_000
    calls: list[int] = []

    def many(row: dict[str, Any]) -> list[dict[str, Any]]:
        calls.append(1)
        return [{"k": k, "text": text} for k in range(100)]

    pipe = flow.from_columns({"x": np.arange(2_000)}).flat_map(many, schema={"k": "int64", "text": "string"})
    with pytest.raises(PlanError, match=r"a window of 1,?000 rows takes \d+ MB so far") as caught:
        list(_batches(pipe.shuffle(1_000).batch(64), 60_000_000))
    assert "memory_limit" in caught.value.hint
    # Not all 4 GB of it was made: 60 MB are 15 rows, for each of the windows that were on their way.
    assert len(calls) < 200
