"""What a loader says it needs before it starts: every part of it counted, and the figures of the error true."""

from __future__ import annotations

import re
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dataflow as flow
from connectors.parquet import KEPT_BYTES
from dataflow.errors import PlanError
from dataflow.execute.agree import lanes_of
from dataflow.execute.budget import Budget
from dataflow.execute.setup import make_setup
from dataflow.options import LoaderOptions, World
from dataflow.order.reach import reach


def _budget(pipe: Any, *, limit: int = 10**9, threads: int = 1, world: int = 1) -> Budget:
    options = LoaderOptions(memory_limit=limit, threads=threads)
    return make_setup(pipe.node, 0, options, World(size=world)).budget


def _rows(rows: int = 2_000) -> flow.Pipeline:
    return flow.from_columns({"x": np.arange(rows), "wide": np.zeros((rows, 100))}).shuffle(100)


@pytest.mark.parametrize("world", range(1, 8))
@pytest.mark.parametrize("lanes", range(1, 9))
def test_no_set_of_lanes_that_go_on_makes_a_rank_open_more_than_are_counted(lanes: int, world: int) -> None:
    batch = lanes * world
    pipe = _rows().filter(lambda row: True).batch(global_size=batch, lanes=lanes)
    counted = _budget(pipe, world=world).lanes_here
    for number in range(1, lanes + 1):
        for alive in combinations(range(lanes), number):
            for rank in range(world):
                reached = {alive[place] for place in reach(number, batch, rank, world)}
                assert len(reached | (set(lanes_of(rank, world, lanes)) & set(alive))) <= counted


def test_rows_that_lanes_hold_for_the_deal_are_counted() -> None:
    kept = _budget(_rows().batch(40, lanes=4))
    filtered = _budget(_rows().filter(lambda row: True).batch(40, lanes=4))
    assert kept.offered_bytes == 0
    # Four batches of 40 rows of 808 bytes.
    assert 4 * 40 * 808 <= filtered.offered_bytes <= 4 * 40 * 820
    assert filtered.beside_bytes - filtered.output_bytes - kept.beside_bytes == filtered.offered_bytes


def test_rows_for_the_deal_that_do_not_fit_are_a_plan_error() -> None:
    wide = flow.from_columns({"x": np.zeros((2_000, 1_000))}).shuffle(10)
    wide.batch(1_000).loader(memory_limit="16MB", threads=1).close()
    with pytest.raises(PlanError, match=r"32 MB for rows offered to the deal"):
        wide.filter(lambda row: True).batch(1_000).loader(memory_limit="16MB", threads=1)


def _text(folder: Path, rows: int, group: int) -> flow.Pipeline:
    pq.write_table(pa.table({"text": ["a" * 1000] * rows}), folder / "a.parquet", row_group_size=group)
    return flow.read(folder / "a.parquet")


def test_readers_that_wait_for_the_next_window_of_their_fragment_are_counted(tmp_path: Path) -> None:
    text = _text(tmp_path, 8_000, 4_000)
    small, large = (_budget(text.shuffle(window).batch(8, lanes=2), limit=10**8) for window in (1_000, 4_000))
    assert large.reader_bytes == 2 * large.slice_bytes
    # A reader of each of the two lanes, which has decoded no more than its fragment of 4 MB, and what it keeps beside.
    waiting = small.reader_bytes - 2 * small.slice_bytes - 2 * KEPT_BYTES
    assert 2 * 4_000_000 <= waiting <= 2 * 4_100_000


def test_many_waiting_readers_hold_no_more_than_few(tmp_path: Path) -> None:
    text = _text(tmp_path, 80_000, 40_000).shuffle(1_000)
    few, many = (_budget(text.batch(64, lanes=lanes), limit=2 * 10**8) for lanes in (1, 16))
    assert many.slice_bytes < few.slice_bytes
    assert many.reader_bytes - 16 * KEPT_BYTES <= 2 * 10**8 / 4


@pytest.mark.parametrize("lanes", [1, 3])
def test_the_parts_that_the_error_names_add_up_to_what_it_says_is_needed(tmp_path: Path, lanes: int) -> None:
    pipe = _text(tmp_path, 60_000, 20_000).shuffle("16MB").batch(6, lanes=lanes)
    with pytest.raises(PlanError) as caught:
        pipe.loader(memory_limit="32MB", threads=1)
    text = str(caught.value)
    found = re.search(r"(\d+) lanes? and one window ahead x ([\d,]+) rows x (\d+) bytes", text)
    assert found is not None
    number, rows, row_bytes = (int(figure.replace(",", "")) for figure in found.groups())
    assert number == lanes
    parts = sum(int(size) for size in re.findall(r"(\d+) MB for ", text))
    needed = re.search(r"need (\d+) MB", text)
    assert needed is not None
    windows = (number + 1) * rows * row_bytes / 1e6
    assert int(needed[1]) == pytest.approx(windows + parts, abs=5)
    assert rows * row_bytes == pytest.approx(16e6, rel=0.01)


def test_only_columns_that_stay_arrow_leave_room_for_what_its_allocator_keeps() -> None:
    numbers = _budget(_rows().batch(8), limit=10**8)
    texts = _budget(flow.from_columns({"text": ["a" * 100] * 500}).shuffle(100).batch(8), limit=10**8)
    assert (numbers.spare_bytes, numbers.room_bytes) == (0, 10**8)
    assert texts.spare_bytes == 10**8 // 8
    assert texts.room_bytes == 10**8 - texts.spare_bytes


@pytest.mark.parametrize("lanes", [1, 8])
@pytest.mark.parametrize("world", [1, 8])
@pytest.mark.parametrize("filtered", [False, True])
def test_windows_of_a_quarter_of_a_gigabyte_fit_in_four(
    tmp_path: Path, lanes: int, world: int, filtered: bool
) -> None:
    pipe = _text(tmp_path, 3_000, 1_000).shuffle("256MB")
    pipe = pipe.filter(lambda row: True) if filtered else pipe
    _budget(pipe.batch(global_size=1_024, lanes=lanes), limit=4 * 10**9, threads=8, world=world)
