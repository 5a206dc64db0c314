"""A bad row costs that row, or the run, as the policy says; it is counted and written down once a delivery."""

from __future__ import annotations

import gc
import gzip
import json
import threading
import traceback
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from recipes import Row, fragments, json_copy

import dataflow as flow
from dataflow.errors import DataError, PlanError, StageError
from dataflow.options import OnError
from loaders.ranked import RankedLoader

Kind = Literal["map", "map rng", "batched", "filter", "flat_map", "shuffled flat_map"]
KINDS: tuple[Kind, ...] = ("map", "map rng", "batched", "filter", "flat_map", "shuffled flat_map")


def _pipe(
    bad: Sequence[int], kind: Kind = "map", rows: int = 40, batch: int = 4, **how: Any
) -> flow.Pipeline:
    """Rows 0 to `rows`, of which an operator of that kind cannot make those in `bad`."""
    broken = frozenset(bad)

    def check(values: Any) -> None:
        for value in np.atleast_1d(values).tolist():
            if value in broken:
                raise ValueError(f"value {value} is bad")

    def one(row: Row, *rng: Any) -> Row:
        check(row["x"])
        return {"x": row["x"]}

    def many(columns: Row) -> Row:
        check(columns["x"])
        return {"x": columns["x"]}

    def keep(row: Row) -> bool:
        check(row["x"])
        return True

    def several(row: Row) -> list[Row]:
        check(row["x"])
        return [{"x": int(row["x"])}] * 2

    source = fragments([8] * (rows // 8))
    window = how.pop("window", None)
    if kind == "shuffled flat_map":
        return source.flat_map(several, schema={"x": "int64"}).shuffle(8).batch(batch, **how)
    if window is not None:
        source = source.shuffle(window)
    made = {
        "map": lambda: source.map(one, schema={"x": "int64"}),
        "map rng": lambda: source.map(one, schema={"x": "int64"}, rng=True),
        "batched": lambda: source.map(many, schema={"x": "int64"}, batched=True, batch_size=5),
        "filter": lambda: source.filter(keep),
        "flat_map": lambda: source.flat_map(several, schema={"x": "int64"}),
    }[kind]()
    return made.batch(batch, **how)


def _loader(
    pipe: flow.Pipeline, on_error: OnError, path: Path | None = None, **more: Any
) -> RankedLoader[Any]:
    return pipe.loader(output="numpy", ids=True, threads=2, on_error=on_error, quarantine=path, **more)


def _lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def _values(batches: Sequence[Row]) -> list[int]:
    return [value for batch in batches for value in batch["x"].tolist()]


def _copies(kind: Kind) -> int:
    return 2 if "flat_map" in kind else 1


# ---- raise


@pytest.mark.parametrize("kind", KINDS)
def test_raise_delivers_all_batches_in_front_of_the_bad_row_and_then_the_error(kind: Kind) -> None:
    with _loader(_pipe([21], kind), "raise") as loader:
        found: list[Row] = []
        with pytest.raises(StageError, match="ValueError: value 21 is bad") as caught:
            found.extend(loader)
        assert isinstance(caught.value.__cause__, ValueError)
        assert "test_bad_rows.py" in caught.value.location
        assert caught.value.hint
    values, copies = _values(found), _copies(kind)
    if kind == "shuffled flat_map":
        # A row that was never made has no place among its window's outputs: those in front come, at least.
        assert set(range(16)) <= set(values) <= set(range(24))
    else:
        assert len(found) == 21 * copies // 4
        assert values == [value for value in range(21) for _ in range(copies)][: len(values)]


def test_raise_says_which_row_of_a_row_function_it_was() -> None:
    with _loader(_pipe([21]), "raise") as loader, pytest.raises(StageError, match="sample 0:21"):
        list(loader)


class _Awkward(Exception):
    """An exception that cannot be made anew from its message, nor be pickled."""

    def __init__(self, *, value: int) -> None:
        super().__init__()
        self.value = value
        self.lock = threading.Lock()


class _Abrupt(BaseException):
    """What no `except Exception` stops, as SystemExit and KeyboardInterrupt."""


def _raising(error: BaseException, kind: str) -> flow.Pipeline:
    def one(row: Row) -> Row:
        if row["x"] == 21:
            raise error
        return row

    rows = fragments((40,))
    if kind == "filter":
        return rows.filter(lambda row: bool(one(row))).batch(4)
    if kind == "flat_map":
        return rows.flat_map(lambda row: [one(row)], schema={"x": "int64"}).batch(4)
    return rows.map(one, schema={"x": "int64"}).batch(4)


@pytest.mark.parametrize("kind", ["map", "filter", "flat_map"])
def test_the_exception_of_a_function_is_the_cause_itself_with_its_traceback(kind: str) -> None:
    error = _Awkward(value=7)
    with _loader(_raising(error, kind), "raise") as loader, pytest.raises(StageError) as caught:
        list(loader)
    assert caught.value.__cause__ is error
    assert traceback.extract_tb(error.__traceback__)[-1].line == "raise error"


@pytest.mark.parametrize("on_error", ["raise", "skip", "replace"])
@pytest.mark.parametrize("kind", ["map", "filter", "flat_map"])
def test_what_no_except_stops_reaches_the_consumer_once_under_any_policy(
    kind: str, on_error: OnError
) -> None:
    error = _Abrupt()
    with _loader(_raising(error, kind), on_error) as loader:
        with pytest.raises(_Abrupt) as caught:
            list(loader)
        assert caught.value is error


@pytest.mark.parametrize("kind", ["map", "filter"])
def test_iterating_again_after_an_error_never_loses_a_batch_in_silence(kind: Kind) -> None:
    with _loader(_pipe([1], kind), "raise") as loader:
        for _ in range(2):
            with pytest.raises(StageError, match="value 1 is bad"):
                next(iter(loader))
            assert (loader.epoch, loader.step) == (0, 0)


def test_a_batch_that_collate_refused_comes_again_with_the_next_for() -> None:
    refusals = iter([True])

    def collate(batch: Row) -> Row:
        if next(refusals, False):
            raise KeyError("once")
        return batch

    with fragments((40,)).batch(4).loader(output="numpy", collate=collate) as loader:
        with pytest.raises(KeyError, match="once"):
            next(iter(loader))
        assert (loader.epoch, loader.step) == (0, 0)
        assert _values(list(loader)) == list(range(40))


def test_bad_rows_of_a_batch_that_collate_refused_are_counted_and_written_once(tmp_path: Path) -> None:
    refusals = iter([False, True])

    def collate(batch: Row) -> Row:
        if next(refusals, False):
            raise KeyError("once")
        return batch

    bad, path = list(range(0, 40, 4)), tmp_path / "bad.jsonl"
    with _pipe(bad).loader(output="numpy", on_error="skip", collate=collate, quarantine=path) as loader:
        running = iter(loader)
        next(running)
        before = loader.stats()["errors"]
        with pytest.raises(KeyError, match="once"):
            next(running)
        assert loader.stats()["errors"] == before
        loader.load_state_dict(loader.state_dict())
        list(loader)
        assert loader.stats()["errors"] == len(bad)
    assert [line["row"] for line in _lines(path)] == bad


class _Speechless(Exception):
    def __str__(self) -> str:
        raise RuntimeError("it cannot be said")

    __repr__ = __str__


@pytest.mark.parametrize("batched", [False, True])
@pytest.mark.parametrize("policy", ["skip", "replace"])
def test_an_error_that_cannot_say_what_it_is_costs_its_row(
    tmp_path: Path, batched: bool, policy: OnError
) -> None:
    def checked(given: Row) -> Row:
        if np.any(given["x"] == 7):
            raise _Speechless
        return given

    path = tmp_path / "bad.jsonl"
    pipe = flow.from_columns({"x": np.arange(20)}).map(checked, batched=batched)
    batches = pipe.batch(4, remainder="keep")
    with batches.loader(output="numpy", on_error=policy, quarantine=path) as loader:
        found = _values(list(loader))
    assert [x for x in found if x != 7][:7] == list(range(7))
    assert len(found) == (19 if policy == "skip" else 20)
    (line,) = _lines(path)
    assert (line["row"], "_Speechless: <exception str() failed>" in line["error"]) == (7, True)


def test_an_error_that_cannot_say_what_it_is_ends_a_run_that_is_to_raise() -> None:
    def checked(given: Row) -> Row:
        raise _Speechless

    pipe = flow.from_columns({"x": np.arange(20)}).map(checked).batch(4)
    with pytest.raises(StageError, match=r"_Speechless: <exception str\(\) failed>"):
        list(pipe.loader(output="numpy"))


def test_an_error_behind_what_was_read_ahead_does_not_reach_an_epoch_that_breaks_before_it() -> None:
    with _loader(_pipe([30]), "raise") as loader:
        running = iter(loader)
        assert next(running)["x"].tolist() == [0, 1, 2, 3]
        loader.set_epoch(5)
        assert next(iter(loader))["x"].tolist() == [0, 1, 2, 3]


# ---- skip


@given(
    bad=st.lists(st.integers(0, 39), max_size=12, unique=True), kind=st.sampled_from(KINDS),
    lanes=st.sampled_from([1, 2, 4]), remainder=st.sampled_from(["pad", "keep"]),
)  # fmt: skip
@settings(max_examples=40)
def test_skip_delivers_all_good_rows_and_counts_every_bad_one(
    tmp_path_factory: pytest.TempPathFactory, bad: list[int], kind: Kind, lanes: int, remainder: str
) -> None:
    path = tmp_path_factory.mktemp("skip") / "bad.jsonl"
    with _loader(_pipe(bad, kind, lanes=lanes, remainder=remainder), "skip", path) as loader:
        found = list(loader)
        state = loader.state_dict()
    real = [
        value
        for batch in found
        for value, valid in zip(batch["x"].tolist(), batch.get("__valid__", [True] * 4), strict=False)
        if valid
    ]
    assert sorted(real) == sorted([x for x in range(40) if x not in bad] * _copies(kind))
    assert state["errors"] == len(bad)
    lines = _lines(path)
    assert sorted(line["row"] for line in lines) == sorted(bad)
    for line in lines:
        assert line["operator"].startswith(kind.replace("shuffled ", "").split()[0].replace("batched", "map"))
        assert f"value {line['row']} is bad" in line["error"]
        assert (line["source"], line["id"]) == ("memory", line["row"])


@pytest.mark.parametrize("trailing", [1, 3, 8, 16])
def test_bad_rows_behind_the_last_good_one_are_counted_too(tmp_path: Path, trailing: int) -> None:
    bad = range(40 - trailing, 40)
    with _loader(_pipe(bad, remainder="keep"), "skip", tmp_path / "bad.jsonl") as loader:
        assert _values(list(loader)) == list(range(40 - trailing))
        assert loader.state_dict()["errors"] == trailing
    assert [line["row"] for line in _lines(tmp_path / "bad.jsonl")] == list(bad)


def test_a_lane_without_any_good_row_does_not_stop_the_others() -> None:
    with _loader(_pipe(range(20), lanes=2), "skip") as loader:
        assert _values(list(loader)) == list(range(20, 40))


@pytest.mark.parametrize("kind", KINDS)
def test_skip_resumes_exactly_at_every_stop_and_counts_no_row_twice(tmp_path: Path, kind: Kind) -> None:
    pipe = _pipe([0, 3, 4, 5, 17, 25, 38, 39], kind, lanes=2, remainder="keep")
    with _loader(pipe, "skip") as loader:
        whole, states = [], []
        for batch in loader:
            whole.append(batch["x"].tolist())
            states.append(json_copy(loader.state_dict()))
    assert states[-1]["errors"] == 8
    for stop, state in enumerate(states[:-1]):
        path = tmp_path / f"{stop}.jsonl"
        with _loader(pipe, "skip", path) as loader:
            loader.load_state_dict(state)
            assert [batch["x"].tolist() for batch in loader] == whole[stop + 1 :]
            assert loader.state_dict()["errors"] == 8
        assert len(_lines(path)) == 8 - state["errors"]


# ---- replace


@given(
    bad=st.lists(st.integers(0, 39), max_size=12, unique=True), lanes=st.sampled_from([1, 2, 4]),
    kind=st.sampled_from(["map", "map rng", "batched"]), window=st.sampled_from([None, 40]),
)  # fmt: skip
@settings(max_examples=40)
def test_replace_keeps_shapes_steps_and_ids_and_puts_good_rows_in(
    tmp_path_factory: pytest.TempPathFactory, bad: list[int], lanes: int, kind: Kind, window: int | None
) -> None:
    path = tmp_path_factory.mktemp("replace") / "bad.jsonl"
    good = _pipe([], kind, lanes=lanes, window=window)
    with _loader(good, "raise") as loader:
        whole = list(loader)
    with _loader(_pipe(bad, kind, lanes=lanes, window=window), "replace", path) as loader:
        assert len(loader) == len(whole)
        found = list(loader)
        assert loader.state_dict()["errors"] == len(bad)
    assert [batch["__id__"].tolist() for batch in found] == [batch["__id__"].tolist() for batch in whole]
    for batch in found:
        by = batch["__replaced_by__"].tolist() if "__replaced_by__" in batch else [-1] * 4
        for value, id_, stand_in in zip(batch["x"].tolist(), batch["__id__"].tolist(), by, strict=True):
            assert (id_ in bad) == (stand_in >= 0)
            assert value == (stand_in if id_ in bad else id_)
            assert value not in bad
    assert sorted(line["row"] for line in _lines(path)) == sorted(bad)


def test_replacements_are_the_same_on_any_threads_ranks_and_after_a_restore() -> None:
    pipe = _pipe([1, 2, 9, 21, 22, 33], "map", lanes=2, window=16)

    def run(**options: Any) -> list[list[int]]:
        with pipe.loader(output="numpy", on_error="replace", **options) as loader:
            return [batch["x"].tolist() for batch in loader]

    alone = run(threads=1)
    assert run(threads=4) == alone
    ranked = [run(rank=rank, world_size=2) for rank in range(2)]
    wide = _pipe([1, 2, 9, 21, 22, 33], "map", batch=8, lanes=2, window=16)
    with wide.loader(output="numpy", on_error="replace") as loader:
        both = [batch["x"].tolist() for batch in loader]
    assert [a + b for a, b in zip(*ranked, strict=True)] == both
    with _loader(pipe, "replace") as loader:
        states = [json_copy(loader.state_dict()) for _ in loader]
    for stop, state in enumerate(states[:-1]):
        with _loader(pipe, "replace") as loader:
            loader.load_state_dict(state)
            assert [batch["x"].tolist() for batch in loader] == alone[stop + 1 :]


def test_replace_counts_a_row_each_time_it_is_delivered(tmp_path: Path) -> None:
    def one(row: Row) -> Row:
        if row["x"] == 5:
            raise ValueError("bad")
        return row

    pipe = fragments((16,)).map(one, schema={"x": "int64"}).repeat(3).batch(8)
    with _loader(pipe, "replace", tmp_path / "bad.jsonl") as loader:
        for epoch in range(2):
            assert len(list(loader)) == 6
            assert loader.state_dict()["errors"] == 3 * (epoch + 1)
    assert len(_lines(tmp_path / "bad.jsonl")) == 6


def test_replace_gives_up_where_a_whole_window_is_bad() -> None:
    with _loader(_pipe(range(8, 40), window=8), "replace") as loader:
        with pytest.raises(DataError, match=r"rows of its window that were tried \(\d\)") as caught:
            list(loader)
        assert caught.value.hint
        assert caught.value.__cause__ is not None


@pytest.mark.parametrize("kind", ["filter", "flat_map"])
def test_replace_behind_row_changing_operators_keeps_going(kind: Kind) -> None:
    with _loader(_pipe([3, 21], kind, remainder="keep"), "replace") as loader:
        found = list(loader)
        assert loader.state_dict()["errors"] == 2
    assert len(_values(found)) == 40 * _copies(kind)
    assert not {3, 21} & set(_values(found))


def test_a_row_that_is_alone_in_its_window_is_said_to_be_so() -> None:
    with (
        _loader(_pipe([21], window=1), "replace") as loader,
        pytest.raises(DataError, match="no other row of its window") as caught,
    ):
        list(loader)
    assert "larger window" in caught.value.hint


def _twice_unless(bad: frozenset[int]) -> Any:
    def several(row: Row) -> list[Row]:
        if row["x"] in bad:
            raise ValueError("bad")
        return [{"x": int(row["x"])}] * 2

    return several


def _behind_a_shuffle_of_outputs(name: str, bad: Sequence[int]) -> flow.Pipeline:
    """Rows that several steps in front of or behind a shuffle of their outputs cannot make."""
    fails, fine = _twice_unless(frozenset(bad)), _twice_unless(frozenset())
    one = {"x": "int64"}
    source = fragments([8] * 8)
    shuffled = {
        "one flat_map": lambda: source.flat_map(fails, schema=one).shuffle(16),
        "two in front": lambda: source.flat_map(fine, schema=one).flat_map(fails, schema=one).shuffle(16),
        "one on either side": lambda: source.flat_map(fails, schema=one).shuffle(16).flat_map(fine, schema=one),
        "bad behind it": lambda: source.flat_map(fine, schema=one).shuffle(16).flat_map(fails, schema=one),
        "shuffled before": lambda: source.shuffle(16).flat_map(fails, schema=one).shuffle(16),
        "zip": lambda: flow.zip(source, fragments([16] * 4, column="y")).flat_map(fails, schema=one).shuffle(16),
    }  # fmt: skip
    return shuffled[name]().batch(8)


@pytest.mark.parametrize(
    "name",
    ["one flat_map", "two in front", "one on either side", "bad behind it", "shuffled before", "zip"],
)
def test_stand_ins_are_shuffled_among_the_outputs_of_their_window_as_the_bad_rows_would_have_been(
    name: str,
) -> None:
    # Every fifth row, and half of a window.
    bad = [*range(0, 48, 5), *range(48, 56)]
    with _loader(_behind_a_shuffle_of_outputs(name, []), "raise") as loader:
        whole = [batch["__id__"].tolist() for batch in loader]
    with _loader(_behind_a_shuffle_of_outputs(name, bad), "replace") as loader:
        found = list(loader)
        assert loader.state_dict()["errors"] == len(bad)
    assert [batch["__id__"].tolist() for batch in found] == whole
    assert not set(bad) & set(_values(found))
    by = np.concatenate([batch["__replaced_by__"] for batch in found]).tolist()
    first = np.concatenate([batch["__id__"] for batch in found])[:, 0].tolist()
    assert [id_ in bad for id_ in first] == [stand_in >= 0 for stand_in in by]


def test_replace_gives_up_where_a_whole_window_of_shuffled_outputs_is_bad() -> None:
    with (
        _loader(_behind_a_shuffle_of_outputs("one flat_map", range(16, 32)), "replace") as loader,
        pytest.raises(DataError, match=r"rows of its window that were tried \(\d+\)"),
    ):
        list(loader)


def _fails_at(column: str, *bad: int) -> Any:
    def one(row: Row) -> Row:
        if row[column] in bad:
            raise ValueError(f"{row[column]} is bad")
        return row

    return one


@pytest.mark.parametrize("failing", [("x",), ("y",), ("x", "y")])
def test_replace_puts_one_whole_row_in_whichever_inputs_of_a_zip_fail(
    tmp_path: Path, failing: tuple[str, ...]
) -> None:
    sides = []
    for name in ("x", "y"):
        side = fragments([8] * 5, column=name)
        sides.append(side.map(_fails_at(name, 3), schema={name: "int64"}) if name in failing else side)
    with _loader(flow.zip(*sides).batch(4), "replace", tmp_path / "bad.jsonl") as loader:
        found = list(loader)
        assert loader.state_dict()["errors"] == len(failing)  # each is a row of a source of its own
    first = found[0]
    assert first["__id__"][:, 0].tolist() == [0, 1, 2, 3]
    stand_in = int(first["__replaced_by__"][3])
    assert stand_in not in (-1, 3)
    assert first["x"].tolist() == first["y"].tolist() == [0, 1, 2, stand_in]
    assert _values(found[1:]) == list(range(4, 40))
    lines = _lines(tmp_path / "bad.jsonl")
    assert sorted(line["id"] >> 40 for line in lines) == [("x", "y").index(name) for name in failing]
    assert {line["row"] for line in lines} == {3}


def test_replace_of_a_row_whose_outputs_lie_across_batches_counts_it_with_the_first_of_them(
    tmp_path: Path,
) -> None:
    check = _fails_at("x", 3)

    def four(row: Row) -> list[Row]:
        check(row)
        return [{"x": int(row["x"]) * 10 + place} for place in range(4)]

    pipe = fragments([8] * 5).flat_map(four, schema={"x": "int64"}).batch(7)
    with _loader(pipe, "replace", tmp_path / "bad.jsonl") as loader:
        found, errors = [], []
        for batch in loader:
            found.append(batch)
            errors.append(loader.state_dict()["errors"])
    # 160 outputs; those of row 3 are the 12th to the 15th, in batches 1 and 2.
    assert errors == [0, *[1] * 21]
    values = _values(found)
    by = [value for batch in found for value in batch.get("__replaced_by__", np.full(7, -1)).tolist()]
    (stand_in,) = set(by) - {-1}
    assert [place for place, value in enumerate(by) if value >= 0] == [12, 13, 14, 15]
    want = [10 * x + place for x in range(40) for place in range(4)]
    want[12:16] = [10 * stand_in + place for place in range(4)]
    assert values == want[: len(values)]
    assert [line["row"] for line in _lines(tmp_path / "bad.jsonl")] == [3]


@pytest.mark.parametrize("shuffle", [None, "full"])
def test_replacements_do_not_depend_on_the_memory_there_is(shuffle: Any) -> None:
    source = flow.from_columns({"x": np.arange(2000), "wide": np.zeros((2000, 100))})
    if shuffle is not None:
        source = source.shuffle(shuffle)
    bad = range(3, 2000, 50)
    pipe = source.map(_fails_at("x", *bad), schema={"x": "int64", "wide": "float64[100]"}).batch(50)

    def run(limit: str) -> list[list[int]]:
        with pipe.loader(output="numpy", on_error="replace", memory_limit=limit, threads=1) as loader:
            return [batch["x"].tolist() for batch in loader]

    assert run("8MB") == run("1GB")


# ---- budget


@pytest.mark.parametrize("policy", ["skip", "replace"])
def test_more_bad_rows_than_max_errors_end_the_run_at_the_batch_that_has_the_last_straw(
    policy: OnError,
) -> None:
    with _loader(_pipe([2, 9, 21, 30]), policy, max_errors=2) as loader:
        found: list[Row] = []
        with pytest.raises(DataError, match=r"3 bad rows, and max_errors=2") as caught:
            found.extend(loader)
        assert isinstance(caught.value.__cause__, StageError)
        assert caught.value.row == 21
        assert "max_errors" in caught.value.hint
    assert 4 <= len(found) <= 5


@pytest.mark.parametrize("policy", ["skip", "replace"])
def test_max_errors_goes_on_counting_after_a_restore(policy: OnError) -> None:
    pipe = _pipe([2, 9, 21, 30])
    with _loader(pipe, policy) as loader:
        running = iter(loader)
        for _ in range(4):
            next(running)
        state = json_copy(loader.state_dict())
    assert state["errors"] == 2
    with _loader(pipe, policy, max_errors=3) as loader:
        loader.load_state_dict(state)
        with pytest.raises(DataError, match="4 bad rows"):
            list(loader)
    with _loader(pipe, policy, max_errors=4) as loader:
        loader.load_state_dict(state)
        list(loader)
        assert loader.stats()["errors"] == 4


def test_bad_rows_that_were_only_read_ahead_do_not_count(tmp_path: Path) -> None:
    policies: tuple[OnError, ...] = ("skip", "replace")
    for policy in policies:
        path = tmp_path / f"{policy}.jsonl"
        with _loader(_pipe([2, 30]), policy, path, max_errors=1) as loader:
            running = iter(loader)
            for _ in range(3):
                next(running)
            assert loader.state_dict()["errors"] == 1
        assert [line["row"] for line in _lines(path)] == [2]


# ---- rows that a reader cannot decode


def test_a_bad_line_of_a_file_is_named_with_its_file_and_row(tmp_path: Path) -> None:
    lines = [json.dumps({"x": number}) for number in range(20)]
    lines[7] = '{"x": '
    (tmp_path / "a.jsonl").write_text("\n".join(lines[:5]) + "\n")
    (tmp_path / "b.jsonl").write_text("\n".join(lines[5:]) + "\n")
    pipe = flow.read(tmp_path / "*.jsonl", name="texts").batch(5, remainder="keep")
    with _loader(pipe, "skip", tmp_path / "deep" / "bad.jsonl") as loader:
        assert _values(list(loader)) == [number for number in range(20) if number != 7]
    (line,) = _lines(tmp_path / "deep" / "bad.jsonl")
    assert (line["source"], line["file"], line["row"]) == ("texts", "b.jsonl", 2)
    with _loader(pipe, "replace") as loader:
        assert len(_values(list(loader))) == 20
    with _loader(pipe, "raise") as loader, pytest.raises(DataError, match=r"b\.jsonl"):
        list(loader)


def _with_a_corrupt_group(path: Path) -> flow.Pipeline:
    """Rows 0 to 399 in row groups of 100, of which the second cannot be decoded."""
    pq.write_table(
        pa.table({"x": np.arange(400), "y": np.arange(400) % 7}),
        path,
        row_group_size=100,
        use_dictionary=False,
    )
    content = bytearray(path.read_bytes())
    for column in range(2):
        chunk = pq.ParquetFile(path).metadata.row_group(1).column(column)
        start = chunk.data_page_offset
        content[start : start + 40] = b"\xff" * 40
    path.write_bytes(content)
    return flow.read(path)


@pytest.mark.parametrize("condition", [[("x", ">=", 10)], [("y", "!=", 9), ("x", ">=", 10)]])
def test_a_filter_leaves_rows_that_it_cannot_read_to_the_policy(tmp_path: Path, condition: Any) -> None:
    pipe = _with_a_corrupt_group(tmp_path / "a.parquet").filter(condition).batch(10, remainder="keep")
    good = [*range(10, 100), *range(200, 400)]
    with _loader(pipe, "skip", tmp_path / "bad.jsonl") as loader:
        assert _values(list(loader)) == good
    assert {line["file"] for line in _lines(tmp_path / "bad.jsonl")} == {"a.parquet"}
    with _loader(pipe, "replace") as loader:
        found = list(loader)
    by = [value for batch in found for value in batch.get("__replaced_by__", np.full(10, -1)).tolist()]
    assert len(_values(found)) == 390
    assert set(_values(found)) <= set(good)
    assert [place for place, value in enumerate(by) if value >= 0] == list(range(90, 190))


def test_raise_behind_a_filter_delivers_what_is_in_front_of_the_rows_that_it_cannot_read(
    tmp_path: Path,
) -> None:
    pipe = _with_a_corrupt_group(tmp_path / "a.parquet").filter([("x", ">=", 10)]).batch(10)
    with _loader(pipe, "raise") as loader, pytest.raises(DataError, match=r"a\.parquet"):
        list(loader)


def test_rows_that_statistics_rule_out_are_never_bad(tmp_path: Path) -> None:
    pipe = _with_a_corrupt_group(tmp_path / "a.parquet").filter([("x", ">=", 200)]).batch(10)
    with _loader(pipe, "skip", max_errors=0) as loader:
        assert _values(list(loader)) == list(range(200, 400))
        assert loader.state_dict()["errors"] == 0


# ---- arguments


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"on_error": "ignore"}, "ignore"),
        ({"on_error": "skip", "max_errors": -1}, "max_errors"),
        ({"on_error": "skip", "max_errors": 1.5}, "max_errors"),
        ({"on_error": "raise", "max_errors": 3}, "no meaning"),
    ],
)
def test_a_wrong_policy_is_a_plan_error(options: dict[str, Any], named: str) -> None:
    with pytest.raises(PlanError, match=named) as caught:
        _pipe([]).loader(**options)
    assert caught.value.hint


def test_skip_on_several_ranks_without_a_process_group_names_what_to_do() -> None:
    with pytest.raises(PlanError, match="counted"):
        _pipe([]).loader(rank=0, world_size=2, on_error="skip")


def test_a_function_that_returns_something_else_is_a_stage_error_that_names_it() -> None:
    def nothing(row: Row) -> None:
        return None

    pipe = fragments((8,)).map(nothing, schema={"x": "int64"}).batch(4)
    with pipe.loader() as loader, pytest.raises(StageError, match=r"nothing.*NoneType"):
        list(loader)


@pytest.mark.parametrize("kind", ["map", "filter"])
def test_a_run_that_failed_holds_no_window_until_the_collector_runs(kind: Kind) -> None:
    loader = _loader(_pipe([30], kind), "raise")
    gc.collect()
    gc.disable()
    try:
        running = iter(loader)
        next(running)
        memory = loader._running._memory  # type: ignore[union-attr]
        with suppress(StageError):
            list(running)
        assert memory.leased_bytes == 0
    finally:
        gc.enable()
        loader.close()


@pytest.mark.parametrize("policy", ["raise", "skip", "replace"])
def test_what_stepped_in_is_told_with_replace_alone_whether_a_row_is_bad_or_not(policy: Any) -> None:
    pipe = flow.from_columns({"x": np.arange(4)}).batch(2)
    with pipe.loader(output="numpy", ids=True, on_error=policy) as loader:
        for batch in loader:
            assert ("__replaced_by__" in batch) == (policy == "replace")
            assert batch.get("__replaced_by__", np.array([-1, -1])).tolist() == [-1, -1]


@pytest.mark.parametrize("policy", ["skip", "replace"])
def test_a_compressed_file_that_is_cut_off_before_it_is_indexed_is_an_error_under_any_policy(
    tmp_path: Path, policy: Any
) -> None:
    whole = gzip.compress(b'{"a": 1}\n' * 1000)
    (tmp_path / "a.jsonl.gz").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(DataError, match=r"a\.jsonl\.gz: the gzip stream ends early"):
        flow.read(tmp_path / "a.jsonl.gz").batch(2).loader(output="numpy", on_error=policy)
