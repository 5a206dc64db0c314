"""What a loader holds: bounded by `memory_limit`, and the same after many epochs."""

from __future__ import annotations

import gc
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from at_rest import await_rest, work_inline
from recipes import KEEPING, Recipe, loaders

import dataflow as flow
from dataflow.errors import PlanError
from dataflow.options import OnError


@pytest.mark.parametrize("function", [*KEEPING, "filter", "flat_map"])
def test_nothing_is_kept_of_epochs_that_are_over(function: str) -> None:
    pipe = Recipe(parts=((40, 30),), window=16, function=function, batch=5).pipe()

    def held_after(epochs: int) -> int:
        gc.collect()
        before = len(gc.get_objects())
        (loader,) = loaders(pipe, 1)
        for _ in range(epochs):
            assert list(loader)
        # Behind close nothing is under way, so that what is left is what the loader keeps.
        loader.close()
        gc.collect()
        return len(gc.get_objects()) - before

    held_after(10)  # what is made once in a process
    assert held_after(60) - held_after(10) < 50  # one object an epoch


@pytest.mark.parametrize("output", ["torch", "numpy", "arrow"])
def test_memory_is_the_same_after_many_epochs(tmp_path: Path, output: Any) -> None:
    table = pa.table(
        {
            "x": np.arange(4000),
            "wide": pa.FixedSizeListArray.from_arrays(pa.array(np.zeros(2_000_000)), 500),
            "text": [f"row {row} " * 20 for row in range(4000)],
        }
    )
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=500)
    pipe = flow.read(tmp_path / "a.parquet").shuffle(1000).batch(50)
    with pipe.loader(output=output, threads=2, memory_limit="64MB") as loader:
        for _ in range(5):
            assert list(loader)
        before = _private_bytes()
        for _ in range(20):
            assert list(loader)
        # An epoch is 17 MB: keeping a tenth of each would be 34.
        assert _private_bytes() - before < 25_000_000


def _private_bytes() -> int:
    gc.collect()
    return int(psutil.Process().memory_full_info().uss)


def test_a_window_that_does_not_fit_is_a_plan_error_with_the_figures() -> None:
    wide = flow.from_columns({"x": np.zeros((2000, 1000))}).shuffle(2000).batch(8, lanes=4)
    with pytest.raises(PlanError, match=r"4 lanes and one window ahead x .* rows x .* bytes") as caught:
        wide.loader(memory_limit="8MB", threads=1)
    assert "memory_limit" in caught.value.hint
    assert "shuffle" in caught.value.hint


def test_a_tight_limit_delivers_the_same_as_a_wide_one() -> None:
    pipe = flow.from_columns({"x": np.arange(200_000).reshape(2000, 100)}).shuffle(100).batch(10, lanes=2)

    def run(limit: Any) -> list[list[int]]:
        with pipe.loader(output="numpy", memory_limit=limit, threads=1) as loader:
            return [batch["x"][:, 0].tolist() for batch in loader]

    assert run("4MB") == run("1GB")


def test_prefetch_past_the_end_is_bounded_when_nobody_consumes(monkeypatch: pytest.MonkeyPatch) -> None:
    work_inline(monkeypatch)
    calls: list[int] = []

    def seen(row: dict[str, Any]) -> dict[str, Any]:
        calls.append(1)
        return row

    pipe = flow.from_columns({"x": np.arange(4000)}).shuffle(50).map(seen, schema={"x": "int64"}).batch(4)
    with pipe.loader(output="numpy", threads=1, prefetch=2) as loader:
        next(iter(loader))
        await_rest(loader)
        assert len(calls) < 1000


class _Bad(ValueError):
    """An error that a test can count."""


@pytest.mark.parametrize("remainder", ["drop", "keep"])
def test_bad_rows_that_were_replaced_and_never_delivered_are_forgotten(remainder: Any) -> None:
    raised: weakref.WeakSet[_Bad] = weakref.WeakSet()

    def one(row: dict[str, Any]) -> dict[str, Any]:
        if row["x"] % 10 == 3:
            error = _Bad("bad")
            raised.add(error)
            raise error
        return row

    pipe = flow.from_columns({"x": np.arange(100)}).map(one, schema={"x": "int64"}).filter(lambda row: True)
    alive = []
    with pipe.batch(60, remainder=remainder).loader(on_error="replace", threads=1, prefetch=2) as loader:
        for _ in range(4):
            for _ in range(10):
                assert list(loader)
            gc.collect()
            alive.append(len(raised))
    # What is made ahead is a few epochs; behind `drop`, 4 of the 10 of each epoch are never delivered.
    assert alive[-1] <= alive[0] + 40


@pytest.mark.parametrize("on_error", ["skip", "replace"])
@pytest.mark.parametrize("several", [False, True], ids=["map", "flat_map and shuffle"])
def test_an_error_that_somebody_keeps_keeps_no_rows(on_error: OnError, several: bool) -> None:
    raised: list[_Bad] = []
    rows: list[weakref.ref[Any]] = []

    def one(row: dict[str, Any]) -> dict[str, Any]:
        if row["x"] == 3:
            rows.append(weakref.ref(row["wide"]))
            raised.append(_Bad("bad"))
            raise raised[-1]
        return row

    schema = {"x": "int64", "wide": "float64[8]"}
    source = flow.from_columns({"x": np.arange(40), "wide": np.zeros((40, 8))})
    if several:
        made = source.flat_map(lambda row: [one(row)], schema=schema).shuffle(20)
    else:
        made = source.map(one, schema=schema)
    with made.batch(10, remainder="keep").loader(on_error=on_error, output="numpy", threads=1) as loader:
        assert list(loader)
    gc.collect()
    assert raised
    assert [row for row in rows if row() is not None] == []


def test_only_columns_that_stay_arrow_take_memory_to_be_brought_into_order() -> None:
    rows = 2_000
    numbers = flow.from_columns({"x": np.arange(rows), "wide": np.zeros((rows, 100))}).shuffle(500).batch(10)
    texts = flow.from_columns({"x": np.arange(rows), "text": ["a" * 1000] * rows}).shuffle(500).batch(10)
    found = []
    for pipe in (numbers, texts):
        with pipe.loader(output="numpy", memory_limit="32MB", threads=1) as loader:
            found.append(loader._course.now.budget.arranging_bytes)
    assert found[0] == 0
    assert 500 * 1000 <= found[1] < 500 * 1100


@pytest.mark.parametrize("prefetch", [1, 2, 3, 8, 11, 128])
@pytest.mark.parametrize("function", ["none", "map"])
@pytest.mark.parametrize("lanes", [1, 2])
def test_no_more_batches_are_assembled_ahead_than_prefetch_says(
    monkeypatch: pytest.MonkeyPatch, prefetch: int, function: str, lanes: int
) -> None:
    work_inline(monkeypatch)
    pipe = Recipe(parts=((1200,),), window=100, function=function, batch=4, lanes=lanes).pipe()
    with pipe.loader(output="numpy", prefetch=prefetch, threads=1) as loader:
        most = 0
        for taken, _ in enumerate(iter(loader), start=1):
            if taken > 140:
                break
            await_rest(loader)
            stages: Any = loader.stats()["stages"]
            most = max(most, stages["assemble"]["rows"] // 4 - taken)
        assert 1 <= most <= prefetch
