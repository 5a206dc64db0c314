"""`shuffle`: windows in rows, bytes or whole, and how well they mix."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from gathered import numbers, values

import dataflow as flow
from dataflow.errors import PlanError


@pytest.mark.parametrize("window", [1, 7, 64, 10_000, "1KB", "64MB", "full"])
def test_any_window_gives_every_row_once_and_another_order_each_epoch(window: Any) -> None:
    pipe = numbers(500).shuffle(window)
    orders = [values(pipe, epoch=epoch) for epoch in range(3)]
    assert all(sorted(order) == list(range(500)) for order in orders)
    assert len({tuple(order) for order in orders}) == 3
    assert values(pipe.seed(1)) != orders[0]
    assert values(pipe.seed(0)) == orders[0]


def test_a_window_in_bytes_becomes_rows_once_and_stays_so_in_the_state() -> None:
    pipe = numbers(500).shuffle("800B").batch(4)
    with pipe.loader(output="numpy") as loader:
        running = iter(loader)
        next(running)
        state = loader.state_dict()
        rest = [batch["x"].tolist() for batch in running]
    assert state["windows"] == [100]
    # Another size in bytes is another number of rows at a first start; a state keeps its own.
    with numbers(500).shuffle("1600B").batch(4).loader(output="numpy") as loader:
        loader.load_state_dict(state)
        assert [batch["x"].tolist() for batch in loader] == rest


@pytest.mark.parametrize("window", [0, -3, 1.5, True, None, "", "64XB", "-1MB", "0MB", "all"])
def test_what_is_no_window_is_a_plan_error_when_written(window: Any) -> None:
    with pytest.raises(PlanError) as caught:
        numbers().shuffle(window)
    assert caught.value.hint


def test_clustered_data_are_mixed_by_a_window_over_many_fragments(tmp_path: Any) -> None:
    # Sorted by label, in 100 row groups: each window takes rows from all over.
    label = np.repeat(np.arange(10), 1000)
    pq.write_table(
        pa.table({"x": np.arange(10_000), "label": label}), tmp_path / "a.parquet", row_group_size=100
    )
    pipe = flow.read(tmp_path / "a.parquet")
    mixed = pipe.shuffle(2000)
    order = np.array(values(mixed))
    assert abs(np.corrcoef(np.arange(10_000), order)[0, 1]) < 0.1
    runs = np.count_nonzero(np.diff(label[order])) / 9_999
    assert runs > 0.8  # 0.9 for a full shuffle, 0.0009 for none
    quality = mixed.shuffle_quality()
    assert abs(quality.rank_correlation) < 0.1
    assert 0.9 < quality.distance < 1.1


def test_the_quality_tells_a_small_window_from_a_full_shuffle_and_from_none() -> None:
    none = numbers(4000).shuffle_quality()
    full = numbers(4000).shuffle("full").shuffle_quality()
    assert (none.rank_correlation, none.distance) == (1.0, 0.0)
    assert abs(full.rank_correlation) < 0.06
    assert 0.95 < full.distance < 1.05


def test_the_quality_is_that_of_the_order_that_is_delivered() -> None:
    pipe = numbers(3000).shuffle(300)
    order = np.array(values(pipe))
    measured = np.corrcoef(np.arange(3000), order)[0, 1]
    assert pipe.shuffle_quality().rank_correlation == pytest.approx(measured, abs=1e-6)


def test_the_quality_behind_flat_map_is_not_said_to_be_that_of_the_source() -> None:
    pipe = numbers(300).flat_map(lambda row: [row], schema={"x": "int64"}).shuffle(300)
    with pytest.raises(PlanError, match="shuffle_quality") as caught:
        pipe.shuffle_quality()
    assert caught.value.hint
