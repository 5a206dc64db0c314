"""What fails with a function is a fixed thing: its row, or its block of a window, wherever work happens to be cut."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import Any

import numpy as np
import pytest
from recipes import Row, fragments, json_copy

import dataflow as flow
from dataflow.errors import DataError, StageError
from dataflow.options import OnError

ROWS, BAD, BLOCK, BATCH = 600, 437, 100, 10
SCHEMA = {"x": "int64"}
Make = Callable[[flow.Pipeline], flow.Pipeline]


def _is_bad(given: Row) -> bool:
    return bool(np.any(np.asarray(given["x"]) == BAD))


def _raising(result: Callable[[Row], Any]) -> Callable[[Row], Any]:
    def function(given: Row) -> Any:
        if _is_bad(given):
            raise ValueError("bad")
        return result(given)

    return function


def _returning(wrong: Any, result: Callable[[Row], Any]) -> Callable[[Row], Any]:
    return lambda given: wrong if _is_bad(given) else result(given)


def _same(given: Row) -> Row:
    return {"x": given["x"]}


BY_ROW: dict[str, Make] = {
    "map that raises": lambda pipe: pipe.map(_raising(_same)),
    "map to another type": lambda pipe: pipe.map(_returning({"x": "text"}, _same)),
    "map to other columns": lambda pipe: pipe.map(_returning({"y": 1}, _same)),
    "map to no dict": lambda pipe: pipe.map(_returning(None, _same)),
    "filter that raises": lambda pipe: pipe.filter(_raising(lambda row: True)),
    "filter that does not decide": lambda pipe: pipe.filter(_returning(np.ones(2, bool), lambda row: True)),
    "flat_map that raises": lambda pipe: pipe.flat_map(_raising(lambda row: [_same(row)])),
    "flat_map to another type": lambda pipe: pipe.flat_map(
        _returning([{"x": "text"}], lambda row: [_same(row)])
    ),
    "flat_map to no list": lambda pipe: pipe.flat_map(_returning(7, lambda row: [_same(row)])),
}
BY_BLOCK: dict[str, Make] = {
    "map that raises": lambda pipe: pipe.map(_raising(_same), batched=True, batch_size=BLOCK),
    "map to another type": lambda pipe: pipe.map(
        _returning({"x": ["text"] * BLOCK}, _same), batched=True, batch_size=BLOCK
    ),
    "map to too few rows": lambda pipe: pipe.map(
        lambda columns: {"x": columns["x"][1:] if _is_bad(columns) else columns["x"]},
        batched=True, batch_size=BLOCK,
    ),
    "filter that raises": lambda pipe: pipe.filter(
        _raising(lambda columns: columns["x"] >= 0), batched=True, batch_size=BLOCK
    ),
    "filter that does not decide": lambda pipe: pipe.filter(
        _returning(None, lambda columns: columns["x"] >= 0), batched=True, batch_size=BLOCK
    ),
}  # fmt: skip
KINDS = [*((name, make, 1) for name, make in BY_ROW.items()), *((n, m, BLOCK) for n, m in BY_BLOCK.items())]
NAMES = [f"{name}, {size} at a time" for name, _, size in KINDS]

# Threads, values of a row beside its number, and batches before a restore: each moves where work is cut.
CUTS = ((1, 1, 0), (4, 1, 7), (2, 1000, 0), (3, 1, 19))


def _source(width: int) -> flow.Pipeline:
    return flow.from_columns({"x": np.arange(ROWS), "wide": np.zeros((ROWS, width))})


def _run(
    pipe: flow.Pipeline, threads: int, restore: int, on_error: OnError = "raise"
) -> tuple[list[list[int]], Exception | None, int]:
    """The batches, those in front of the restore included; the error behind them; and the rows counted as bad."""
    found: list[list[int]] = []
    state = None
    options: dict[str, Any] = {"output": "numpy", "threads": threads, "on_error": on_error}
    if restore:
        with pipe.loader(**options) as loader:
            found += [batch["x"].tolist() for batch in islice(iter(loader), restore)]
            state = json_copy(loader.state_dict())
    with pipe.loader(**options) as loader:
        if state is not None:
            loader.load_state_dict(state)
        try:
            for batch in loader:
                found.append(batch["x"].tolist())
        except (StageError, DataError) as error:
            return found, error, 0
        errors = loader.stats()["errors"]
        assert isinstance(errors, int)
        return found, None, errors


@pytest.mark.parametrize("lanes", [1, 2])
@pytest.mark.parametrize(("name", "make", "unit"), KINDS, ids=NAMES)
def test_raise_delivers_the_same_batches_in_front_of_the_error_wherever_work_is_cut(
    name: str, make: Make, unit: int, lanes: int
) -> None:
    in_lane = BAD % (ROWS // lanes)
    whole = in_lane // unit * unit // (BATCH // lanes)
    for threads, width, restore in CUTS:
        pipe = make(_source(width)).batch(global_size=BATCH, lanes=lanes)
        found, error, _ = _run(pipe, threads, restore)
        assert isinstance(error, StageError)
        assert len(found) == whole, (threads, width, restore)


@pytest.mark.parametrize(("name", "make", "unit"), KINDS, ids=NAMES)
def test_skip_and_replace_cost_the_row_alone_wherever_work_is_cut(name: str, make: Make, unit: int) -> None:
    good = [x for x in range(ROWS) if x != BAD]
    replaced: dict[int, set[Any]] = {}
    for threads, width, restore in CUTS:
        pipe = make(_source(width)).batch(BATCH, remainder="keep")
        found, error, errors = _run(pipe, threads, restore, "skip")
        assert (error, errors) == (None, 1)
        assert [x for batch in found for x in batch] == good
        found, error, errors = _run(pipe, threads, restore, "replace")
        assert (error, errors) == (None, 1)
        assert [x for batch in found for x in batch if x != BAD][:BAD] == good[:BAD]
        # Without a shuffle a window has as many rows as fit, so that wider ones find another one to step in.
        replaced.setdefault(width, set()).add(tuple(map(tuple, found)))
    assert set(map(len, replaced.values())) == {1}


def test_a_row_that_no_other_can_replace_ends_the_run_at_its_own_place() -> None:
    def one(row: Row) -> Row:
        if 200 <= row["x"] < 400 and row["x"] % 20:
            raise ValueError("bad")
        return row

    pipe = fragments((200, 200, 200)).shuffle(200).map(one, schema=SCHEMA).batch(4)
    runs = [_run(pipe, threads, restore, "replace") for threads, restore in ((1, 0), (4, 0), (2, 1), (2, 0))]
    for found, error, _ in runs:
        assert isinstance(error, DataError)
        assert "rows of its window that were tried" in error.message
        assert isinstance(error.__cause__, StageError)
        assert found == runs[0][0]


def test_nothing_is_delivered_of_a_window_of_permuted_outputs_that_lacks_a_row() -> None:
    for bad in range(8, 16):

        def several(row: Row, bad: int = bad) -> list[Row]:
            if row["x"] == bad:
                raise ValueError("bad")
            return [_same(row)] * 2

        pipe = fragments((8, 8, 8)).flat_map(several, schema=SCHEMA).shuffle(8).batch(1)
        found, error, _ = _run(pipe, 2, 0)
        assert isinstance(error, StageError)
        assert sorted(x for batch in found for x in batch) == sorted(2 * list(range(8)))


# ---- a row that became several


def _three(row: Row) -> list[Row]:
    return [{"x": 10 * int(row["x"]) + place} for place in range(3)]


def _failing_at(*bad: int) -> Callable[[Row], Row]:
    def one(row: Row) -> Row:
        if row["x"] in bad:
            raise ValueError("bad")
        return row

    return one


@pytest.mark.parametrize("shuffled", [False, True])
def test_replace_puts_all_that_another_row_became_in_the_place_of_all_that_a_bad_one_did(
    shuffled: bool,
) -> None:
    many = fragments((8, 8)).flat_map(_three, schema=SCHEMA)
    many = many.shuffle(8) if shuffled else many
    pipe = many.map(_failing_at(31, 51, 52), schema=SCHEMA).batch(6, remainder="keep")
    with pipe.loader(output="numpy", ids=True, on_error="replace") as loader:
        batches = list(loader)
        assert loader.state_dict()["errors"] == 2
    ids = [tuple(id_) for batch in batches for id_ in batch["__id__"].tolist()]
    values = [x for batch in batches for x in batch["x"].tolist()]
    by = [x for batch in batches for x in batch.get("__replaced_by__", np.full(len(batch["x"]), -1)).tolist()]
    assert sorted(ids) == [(row, sub) for row in range(16) for sub in range(3)]
    for (row, sub), value, stand_in in zip(ids, values, by, strict=True):
        assert (stand_in >= 0) == (row in (3, 5))
        assert value == 10 * (stand_in if stand_in >= 0 else row) + sub


def test_bad_rows_of_a_lane_that_ended_before_the_others_are_counted_once_over_a_restore() -> None:
    def one(row: Row) -> Row:
        if row["x"] >= 26:
            raise ValueError("bad")
        return row

    pipe = fragments((60,)).map(one, schema=SCHEMA).batch(global_size=6, lanes=3, remainder="keep")
    with pipe.loader(output="numpy", on_error="skip") as loader:
        states, whole = [], []
        for batch in loader:
            states.append(json_copy(loader.state_dict()))
            whole.append(batch["x"].tolist())
    assert states[-1]["errors"] == 34
    for stop, state in enumerate(states[:-1]):
        with pipe.loader(output="numpy", on_error="skip") as loader:
            loader.load_state_dict(state)
            assert [batch["x"].tolist() for batch in loader] == whole[stop + 1 :]
            assert loader.state_dict()["errors"] == 34


def test_the_columns_of_a_batched_function_are_found_behind_rows_that_it_cannot_make() -> None:
    def first_fails(columns: Row) -> Row:
        if np.any(columns["x"] == 3):
            raise ValueError("bad")
        return _same(columns)

    pipe = fragments((40,)).map(first_fails, batched=True, batch_size=8).batch(4, remainder="keep")
    found, error, errors = _run(pipe, 2, 0, "skip")
    assert (error, errors) == (None, 1)
    assert [x for batch in found for x in batch] == [x for x in range(40) if x != 3]
    assert isinstance(_run(pipe, 2, 0)[1], StageError)


@pytest.mark.parametrize("batched", [False, True])
def test_the_columns_of_a_function_are_found_behind_more_bad_rows_than_it_is_asked_with(
    batched: bool,
) -> None:
    def late(given: Row) -> Row:
        if np.any(given["x"] < 150):
            raise ValueError("bad")
        return _same(given)

    pipe = fragments((200,)).map(late, batched=batched, batch_size=8).batch(5, remainder="keep")
    found, error, errors = _run(pipe, 2, 0, "skip")
    assert (error, errors) == (None, 150)
    assert [x for batch in found for x in batch] == list(range(150, 200))
    with pytest.raises(StageError, match="ValueError: bad"):
        pipe.loader(output="numpy")


def test_an_epoch_in_which_all_rows_are_left_out_says_where_to_look() -> None:
    pipe = fragments((20,)).filter(lambda row: False).batch(4, remainder="pad")
    _, error, _ = _run(pipe, 1, 0)
    assert isinstance(error, DataError)
    assert "filters" in error.hint
