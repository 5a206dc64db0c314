"""`counted()`: its pass asks a function once about every row, whatever is made of the pipeline afterwards."""

from __future__ import annotations

import gc
import os
import threading
import weakref
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from recipes import Row, fragments, json_copy

import dataflow as flow
from connectors.contract import Fragment, Opened
from connectors.memory import InMemory
from dataflow.errors import PlanError, StageError
from dataflow.execute import sample
from dataflow.execute.compile import compile_plan
from dataflow.index import select
from dataflow.ops.read import MemorySource, Read


class Asked:
    """A condition that keeps odd numbers, and knows how often it was asked about each."""

    def __init__(self) -> None:
        self.times: Counter[int] = Counter()
        self._lock = threading.Lock()

    def one(self, row: Row) -> bool:
        with self._lock:
            self.times[int(row["x"])] += 1
        return bool(row["x"] % 2)

    def many(self, columns: Row) -> Any:
        with self._lock:
            self.times.update(columns["x"].tolist())
        return columns["x"] % 2 == 1

    def __call__(self, row: Row) -> bool:
        return self.one(row)


def _numbers(first: int = 0, column: str = "x") -> flow.Pipeline:
    return fragments([8] * 5, first=first, column=column)


def _same(row: Row) -> Row:
    return row


SHAPES: dict[str, Callable[[Asked], flow.Pipeline]] = {
    "one source": lambda odd: _numbers().filter(odd).counted(),
    "batched": lambda odd: _numbers().filter(odd.many, batched=True).counted(),
    "behind a shuffle": lambda odd: _numbers().shuffle(16).filter(odd).counted(),
    "behind a repeat": lambda odd: _numbers().shuffle("full").repeat(2).filter(odd).counted(),
    "under a shuffle": lambda odd: _numbers().filter(odd).counted().shuffle(8),
    "behind a function": lambda odd: _numbers().map(_same).filter(odd).counted(),
    "under a function": lambda odd: _numbers().filter(odd).counted().map(_same),
    "under other columns": lambda odd: _numbers().filter(odd).counted().rename({"x": "y"}),
    "by terms of a column that a function made": (
        lambda odd: (
            _numbers()
            .map(lambda row: {"x": row["x"], "odd": odd(row)}, schema={"x": "int64", "odd": "bool"})
            .filter([("odd", "==", True)])
            .counted()
            .select("x")
        )
    ),
    "over a concat": lambda odd: flow.concat(_numbers(), _numbers(100)).filter(odd).counted(),
    "in a concat": lambda odd: flow.concat(_numbers().filter(odd).counted(), _numbers(100)),
    "twice in a concat": lambda odd: _twice(_numbers().filter(odd).counted()),
    "over a zip": lambda odd: flow.zip(_numbers(), _numbers(100, "y")).filter(odd).counted(),
    "in a zip": lambda odd: flow.zip(_numbers().filter(odd).counted(), _numbers(100, "y").take(20)),
    "behind take": lambda odd: _numbers().take(33).filter(odd).counted(),
    "under take and skip": lambda odd: _numbers().filter(odd).counted().take(15).skip(2),
    "behind split": lambda odd: _numbers().split({"a": 0.8})["a"].filter(odd).counted(),
    "under split": lambda odd: _numbers().filter(odd).counted().split({"a": 0.8})["a"],
    "under a condition on columns": lambda odd: _numbers().filter(odd).counted().filter([("x", ">", 3)]),
    "under another one": lambda odd: (
        _numbers().filter(odd).counted().filter(lambda row: row["x"] > 3).counted()
    ),
}


def _twice(pipe: flow.Pipeline) -> flow.Pipeline:
    return flow.concat(pipe, pipe)


@pytest.mark.parametrize("shape", SHAPES)
def test_loaders_restores_single_rows_and_counts_ask_once_about_every_row_in_all(shape: str) -> None:
    asked = Asked()
    rows = SHAPES[shape](asked).seed(3)
    assert not asked.times  # nothing runs when a pipeline is written
    pipe = rows.batch(2, lanes=2)
    with pipe.loader(output="numpy") as loader:
        once = dict.fromkeys(asked.times, 1)
        epochs = [list(loader) for _ in range(2)]
        assert len(loader) == len(epochs[0])
    with pipe.loader(output="numpy") as loader:
        next(iter(loader))
        state = json_copy(loader.state_dict())
        loader.load_state_dict(state)
        assert len(list(loader)) == len(epochs[0]) - 1
    with pipe.loader(output="numpy") as loader:
        loader.load_state_dict(state)
        rest = list(loader)
    for got, want in zip(rest, epochs[0][1:], strict=True):
        assert {name: values.tolist() for name, values in got.items()} == {
            name: values.tolist() for name, values in want.items()
        }
    assert rows[0] == rows[0]
    assert rows[-1] == pipe[-1]
    assert rows.count() in (2 * len(epochs[0]), 2 * len(epochs[0]) + 1)
    rows.shuffle_quality()
    if "by terms" in shape:
        # Such a function also makes the rows that are delivered: about those left out it was asked once.
        once = {x: 1 for x in once if not x % 2}
        assert {x: times for x, times in asked.times.items() if not x % 2} == once
    else:
        assert asked.times == once
    assert once


def test_a_split_by_a_column_that_a_function_made_asks_that_once_for_all_loaders() -> None:
    asked = Asked()
    made = _numbers().map(
        lambda row: {"x": row["x"], "odd": asked(row)}, schema={"x": "int64", "odd": "bool"}
    )
    parts = [part.batch(1) for part in made.split({"a": 0.5, "b": 0.5}, by="odd").values()]
    lengths = []
    for pipe in parts:
        with pipe.loader() as loader:
            lengths.append(len(loader))
            loader.load_state_dict(loader.state_dict())
    assert sum(lengths) == 40
    assert asked.times == dict.fromkeys(range(40), 2)  # once a part


def test_each_counted_has_a_pass_of_its_own() -> None:
    least = [30]
    rows = _numbers().filter(lambda row: row["x"] >= least[0])
    before = rows.counted()
    assert before.count() == 10
    least[0] = 35
    assert before.count() == 10
    assert rows.counted().count() == 5


def test_threads_that_ask_at_the_same_time_wait_for_one_pass() -> None:
    asked = Asked()
    rows = _numbers().filter(asked).counted()
    together = threading.Barrier(4)

    def count(part: flow.Pipeline) -> int:
        together.wait()
        return part.count()

    with ThreadPoolExecutor(4) as pool:
        parts = [rows, rows.take(7), rows.shuffle(8), rows.batch(2)]
        assert list(pool.map(count, parts)) == [20, 7, 20, 20]
    assert set(asked.times.values()) == {1}


def test_a_condition_that_asks_its_own_pipeline_fails_and_does_not_wait_for_itself() -> None:
    pipes: list[flow.Pipeline] = []
    pipes.append(_numbers().filter(lambda row: pipes[0].count() > 0).counted())
    with pytest.raises(StageError, match="asks for the rows that it is to decide about"):
        pipes[0].count()


def test_what_was_found_is_a_bit_a_row_and_goes_with_the_pipeline() -> None:
    rows = flow.from_columns({"x": np.arange(10_000)}).filter(lambda row: row["x"] % 3 == 0).counted()
    selection = compile_plan(rows.node, 0).root.selection
    assert selection is not None
    kept = selection.kept
    assert kept is not None
    assert kept.bitmap.nbytes == 1250
    assert not kept.bitmap.flags.writeable
    pipe, bitmap = weakref.ref(rows.node), weakref.ref(kept.bitmap)
    del rows, selection, kept
    gc.collect()
    assert pipe() is None
    assert bitmap() is None


def test_a_pass_that_failed_is_not_kept() -> None:
    broken = [True]

    def odd(row: Row) -> bool:
        if broken[0] and row["x"] == 21:
            raise OSError("try again")
        return bool(row["x"] % 2)

    rows = _numbers().filter(odd).counted()
    for _ in range(2):
        with pytest.raises(StageError, match="try again"):
            rows.count()
    broken[0] = False
    assert rows.count() == 20


# ---- other files than those that were counted


def _put(folder: Path, names: str) -> None:
    folder.mkdir(exist_ok=True)
    for name in names:
        first = 100 * (ord(name) - ord("a"))
        pq.write_table(
            pa.table({"x": np.arange(first, first + 12)}), folder / f"{name}.parquet", row_group_size=5
        )


def test_after_files_were_added_a_restore_asks_about_the_files_of_its_state_once(tmp_path: Path) -> None:
    def pipe(asked: Asked) -> flow.Pipeline:
        return flow.read(tmp_path / "d").filter(asked).counted().shuffle(6).seed(1).batch(2, lanes=2)

    _put(tmp_path / "d", "bd")
    with pipe(Asked()).loader(output="numpy") as loader:
        running = iter(loader)
        begun = [next(running)["x"].tolist() for _ in range(2)]
        state = json_copy(loader.state_dict())
        want = [batch["x"].tolist() for batch in running]
    assert sorted(chain(*begun, *want)) == [*range(101, 112, 2), *range(301, 312, 2)]
    _put(tmp_path / "d", "ace")
    asked = Asked()
    later = pipe(asked)
    with later.loader(output="numpy") as loader:
        assert len(asked.times) == 60
        assert set(asked.times.values()) == {1}
        for _ in range(2):
            loader.load_state_dict(state)
            assert [batch["x"].tolist() for batch in loader] == want
        # What was found of five files says nothing of two of them: about these it was asked once more.
        assert asked.times == {x: 2 if x // 100 in (1, 3) else 1 for x in asked.times}
    with later.loader(output="numpy") as loader:
        assert len(loader) == 15
        loader.load_state_dict(state, new_files=True)
        assert [batch["x"].tolist() for batch in loader] == want
        found = sorted(x for batch in loader for x in batch["x"].tolist())
    assert found == [x for x in sorted(asked.times) if x % 2]


# ---- how the pass reads


@dataclass(frozen=True, eq=False)
class _Forward(InMemory):
    """A table that is one fragment, read forward; it notes where reading began."""

    begun: list[int] = field(default_factory=list)
    most_rows: list[int] = field(default_factory=list)

    def read(
        self, opened: Opened, fragment: Fragment, schema: pa.Schema, start: int, stop: int, max_rows: int
    ) -> Any:
        self.begun.append(start)
        self.most_rows.append(max_rows)
        return super().read(opened, fragment, schema, start, stop, max_rows)

    @property
    def traits(self) -> Any:
        return type(super().traits)(row_ranges=False, single_rows=False)

    @cached_property
    def _batches(self) -> Any:
        return self.table.to_batches()


def test_a_fragment_that_is_read_forward_is_decoded_once_in_a_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sample, "_BLOCK_ROWS", 16)
    sides = [_Forward(pa.table({name: np.arange(100)})) for name in ("x", "y")]
    inputs = [flow.Pipeline(Read(data=MemorySource(connector=side))) for side in sides]
    zipped = flow.zip(*inputs)
    assert zipped.count() == 100
    for side in sides:
        side.begun.clear()  # of what was read to know how large rows are
    asked = Asked()
    assert zipped.filter(asked).counted().count() == 50
    assert set(asked.times.values()) == {1}
    assert [side.begun for side in sides] == [[0], [0]]


def test_a_pass_over_wide_rows_holds_few_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sample, "_BLOCK_BYTES", 10_000)
    largest = [0]

    def odd(columns: Row) -> Any:
        largest[0] = max(largest[0], len(columns["x"]))
        return columns["x"] % 2 == 1

    wide = flow.from_columns({"x": np.arange(100), "wide": np.zeros((100, 50))})
    assert wide.filter(odd, batched=True).counted().count() == 50
    assert largest == [24]


@pytest.mark.parametrize("by_function", [False, True])
def test_a_pass_for_a_loader_keeps_to_its_memory_limit_however_large_a_fragment_is(by_function: bool) -> None:
    rows, largest = 300_000, [0]
    source = _Forward(pa.table({"x": np.arange(rows), "y": pa.array(["some text of the row"] * rows)}))
    pipe = flow.Pipeline(Read(data=MemorySource(connector=source)))
    width = 20 + 4 + (8 if by_function else 0)  # bytes of a row, of the columns that are read
    with pipe.batch(10).loader():
        pass  # rows are read to know how large they are

    def every(columns: Row) -> Any:
        largest[0] = max(largest[0], len(columns["x"]))
        return np.array([text.startswith("some") for text in columns["y"]])

    chosen = (
        pipe.filter(every, batched=True).counted() if by_function else pipe.filter([("y", "!=", "other")])
    )
    source.begun.clear()
    source.most_rows.clear()
    with chosen.batch(10).loader(memory_limit="16MB", threads=1) as loader:
        assert len(loader) == rows // 10
    assert source.begun == [0]  # decoded once
    assert max(source.most_rows) * width <= 16_000_000 / 16
    assert largest[0] * width <= 16_000_000 / 4


def test_a_pass_for_a_loader_has_as_many_threads_as_the_loader(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(select, "_TASK_ROWS", 8)
    asked: list[int | None] = []

    def noted(threads: int, **options: Any) -> ThreadPoolExecutor:
        asked.append(threads)
        return ThreadPoolExecutor(threads, **options)

    monkeypatch.setattr(select, "ThreadPoolExecutor", noted)
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: set(range(5)), raising=False)
    monkeypatch.setattr("dataflow.cores._CGROUP", tmp_path)
    for options in ({"threads": 1}, {"threads": 3}, {"threads": 3, "memory_limit": "64MB"}):
        with _numbers().filter([("x", ">", 3)]).batch(4).loader(**options):
            pass
    assert asked == [1, 3, 1]
    assert len(_numbers().filter([("x", ">", 3)]).batch(4).loader(threads=1)) == 9
    asked.clear()
    assert _numbers().filter([("x", ">", 3)]).count() == 36
    assert asked == [5]


# ---- where it cannot be


@pytest.mark.parametrize("random", [True, False])
def test_counted_behind_what_is_random_or_makes_several_rows_of_one_names_both_steps(random: bool) -> None:
    rows = _numbers()
    behind = rows.map(lambda row, rng: row, rng=True) if random else rows.flat_map(lambda row: [row, row])
    with pytest.raises(PlanError, match=r"filter.* stands behind (map|flat_map)") as caught:
        behind.filter(lambda row: True).counted()
    assert caught.value.hint == "put the filter in front of it"
