"""Files that a resume finds new and is asked for: they join at the next epoch, and no row is lost or moved."""

from __future__ import annotations

import json
import logging
import shutil
from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from at_rest import await_rest, work_inline
from meeting import meeting_loaders
from recipes import delivered, json_copy, loaders, values

import dataflow as flow
from connectors.folder import Folder
from dataflow import DataError, PlanError
from dataflow.execute.loader import Loader

State = dict[str, Any]
Pipe = Callable[[Any], flow.Pipeline]
OLD = ("part-0", "part-1", "part-2", "part-10")
# One that sorts in front of the old ones, one among and one behind them.
NEW = ("a", "part-3", "z")


def _number(name: str) -> int:
    """The first value of a file, so that every row of every file is told apart."""
    return 100 * (*OLD, *NEW, "more").index(name)


def _put(folder: Path, names: Sequence[str], suffix: str = "parquet", rows: int = 10) -> None:
    folder.mkdir(exist_ok=True)
    for name in names:
        found = list(range(_number(name), _number(name) + rows))
        if suffix == "jsonl":
            (folder / f"{name}.jsonl").write_text("".join(json.dumps({"x": x}) + "\n" for x in found))
        else:
            pq.write_table(pa.table({"x": found}), folder / f"{name}.parquet", row_group_size=4)


def _in_order(folder: Path, names: Sequence[str], suffix: str = "parquet") -> list[Path]:
    return [folder / f"{name}.{suffix}" for name in names]


def _known(url: Any) -> flow.Pipeline:
    return flow.read(url).shuffle(8).seed(9).batch(global_size=6, lanes=2)


def _filtered(url: Any) -> flow.Pipeline:
    kept = flow.read(url).filter([("x", "in", [x for x in range(1000) if x % 3])])
    return kept.shuffle(8).batch(global_size=6, lanes=2)


def _unknown(url: Any) -> flow.Pipeline:
    kept = flow.read(url).filter(lambda row: row["x"] % 3 > 0)
    return kept.shuffle(8).seed(9).batch(global_size=6, lanes=2, remainder="pad")


def _several(url: Any) -> flow.Pipeline:
    rows = flow.read(url).flat_map(lambda row: [row] * (int(row["x"]) % 3), schema={"x": "int64"})
    return rows.shuffle(8).repeat(2).batch(global_size=6, lanes=3, remainder="keep")


every = pytest.mark.parametrize("pipe", [_known, _filtered, _unknown, _several])
both = pytest.mark.parametrize("pipe", [_known, _unknown], ids=["known", "unknown"])


def _restored(pipe: flow.Pipeline, state: State, world: int = 1, **options: Any) -> list[Loader[Any]]:
    ranks = meeting_loaders(pipe, world)
    for loader in ranks:
        loader.load_state_dict(state, **options)
    return ranks


def _run(ranks: Sequence[Loader[Any]], epochs: int = 1) -> tuple[list[list[int]], list[State]]:
    """The values of all global batches, and the state behind each, which is the same on all ranks."""
    states: list[State] = []

    def keep() -> None:
        found = [json_copy(loader.state_dict()) for loader in ranks]
        assert all(state == found[0] for state in found)
        states.append(found[0])

    return [values(step) for step in delivered(ranks, epochs, keep)], states


def _epoch(pipe: flow.Pipeline, epoch: int) -> list[list[int]]:
    """What a fresh loader gives in an epoch."""
    with loaders(pipe, 1)[0] as loader:
        loader.set_epoch(epoch)
        return [batch["x"].tolist() for batch in loader]


def _stopped(pipe: flow.Pipeline, after: int) -> State:
    with loaders(pipe, 1)[0] as loader:
        assert len(list(islice(iter(loader), after))) == after
        return json_copy(loader.state_dict())


def _hashes(state: State) -> list[str]:
    return [source["hash"] for source in state["sources"]]


# ---- what is delivered


@every
@pytest.mark.parametrize("suffix", ["parquet", "jsonl"])
def test_the_epoch_ends_as_it_began_and_the_later_ones_are_those_of_old_and_new_files(
    pipe: Pipe, suffix: str, tmp_path: Path
) -> None:
    _put(tmp_path / "d", OLD, suffix)
    want = _epoch(pipe(tmp_path / "d"), 0)
    states = [_stopped(pipe(tmp_path / "d"), stop) for stop in range(1, len(want))]
    _put(tmp_path / "d", NEW, suffix)
    appended = pipe(_in_order(tmp_path / "d", (*OLD, *NEW), suffix))
    later = [*_epoch(appended, 1), *_epoch(appended, 2)]
    for stop, state in enumerate(states, start=1):
        got, behind = _run(_restored(pipe(tmp_path / "d"), state, new_files=True), 3)
        assert got == [*want[stop:], *later], f"stop {stop}"
        places = [(saved["epoch"], saved["step"]) for saved in behind]
        assert places == sorted(places)


@every
@pytest.mark.parametrize("worlds", [(2, 3), (3, 1), (1, 2)])
def test_any_number_of_ranks_asks_for_them(pipe: Pipe, worlds: tuple[int, int], tmp_path: Path) -> None:
    _put(tmp_path / "d", OLD)
    want, states = _run(meeting_loaders(pipe(tmp_path / "d"), worlds[0]))
    _put(tmp_path / "d", NEW)
    appended = pipe(_in_order(tmp_path / "d", (*OLD, *NEW)))
    later = [*_epoch(appended, 1), *_epoch(appended, 2)]
    for stop in range(1, len(want)):
        got, _ = _run(_restored(pipe(tmp_path / "d"), states[stop - 1], worlds[1], new_files=True), 3)
        assert got == [*want[stop:], *later], f"stop {stop}"


@both
def test_every_state_of_such_a_run_restores_on_any_number_of_ranks(pipe: Pipe, tmp_path: Path) -> None:
    _put(tmp_path / "d", OLD)
    state = _stopped(pipe(tmp_path / "d"), 2)
    _put(tmp_path / "d", NEW)
    whole, states = _run(_restored(pipe(tmp_path / "d"), state, 2, new_files=True), 3)
    for stop, saved in enumerate(states[:-1], start=1):
        # Asked again in front of the boundary; behind it the state has them.
        asked = saved["epoch"] == 0
        got, behind = _run(_restored(pipe(tmp_path / "d"), saved, 1 + stop % 3, new_files=asked), 3)
        assert got[: len(whole) - stop] == whole[stop:], f"stop {stop}"
        assert behind[: len(whole) - stop] == states[stop:]


def test_rows_keep_their_numbers_whatever_the_names_of_new_files(tmp_path: Path) -> None:
    _put(tmp_path / "d", OLD)

    def numbers(loader: Loader[Any]) -> dict[int, int]:
        pairs = [zip(batch["__id__"].tolist(), batch["x"].tolist(), strict=True) for batch in loader]
        return dict(pair for batch in pairs for pair in batch)

    def pipe() -> flow.Pipeline:
        return flow.read(tmp_path / "d").shuffle(8).batch(4, remainder="keep")

    with loaders(pipe(), 1)[0] as loader:
        before = numbers(loader)
        state = json_copy(loader.state_dict())
    _put(tmp_path / "d", NEW)
    with loaders(pipe(), 1)[0] as loader:
        loader.load_state_dict(state, new_files=True)
        after = numbers(loader)
    assert {row: after[row] for row in before} == before
    assert sorted(after) == list(range(70))
    assert [after[row] // 100 for row in range(40, 70, 10)] == [4, 5, 6]


@both
def test_new_files_at_two_resumes_join_one_behind_the_other(pipe: Pipe, tmp_path: Path) -> None:
    _put(tmp_path / "d", OLD)
    first = _stopped(pipe(tmp_path / "d"), 2)
    _put(tmp_path / "d", ["z"])
    with _restored(pipe(tmp_path / "d"), first, new_files=True)[0] as loader:
        rest = [batch["x"].tolist() for batch in loader]
        begun = [batch["x"].tolist() for batch in islice(iter(loader), 2)]
        second = json_copy(loader.state_dict())
    _put(tmp_path / "d", ["a", "more"])
    got, _ = _run(_restored(pipe(tmp_path / "d"), second, new_files=True), 2)
    once = pipe(_in_order(tmp_path / "d", (*OLD, "z")))
    twice = pipe(_in_order(tmp_path / "d", (*OLD, "z", "a", "more")))
    assert rest == _epoch(pipe(_in_order(tmp_path / "d", OLD)), 0)[2:]
    assert begun + got == [*_epoch(once, 1), *_epoch(twice, 2)]


@both
def test_those_that_came_between_two_resumes_of_one_epoch_join_together(pipe: Pipe, tmp_path: Path) -> None:
    _put(tmp_path / "d", OLD)
    state = _stopped(pipe(tmp_path / "d"), 2)
    _put(tmp_path / "d", ["z"])
    with _restored(pipe(tmp_path / "d"), state, new_files=True)[0] as loader:
        next(iter(loader))
        state = json_copy(loader.state_dict())
    _put(tmp_path / "d", ["a"])
    got, _ = _run(_restored(pipe(tmp_path / "d"), state, new_files=True), 2)
    want = _epoch(pipe(_in_order(tmp_path / "d", OLD)), 0)[3:]
    assert got == [*want, *_epoch(pipe(_in_order(tmp_path / "d", (*OLD, "a", "z"))), 1)]


@both
def test_a_state_between_two_epochs_begins_with_them_at_once(pipe: Pipe, tmp_path: Path) -> None:
    _put(tmp_path / "d", OLD)
    state = _stopped(pipe(tmp_path / "d"), len(_epoch(pipe(tmp_path / "d"), 0)))
    assert (state["epoch"], state["step"]) == (1, 0)
    _put(tmp_path / "d", NEW)
    (loader,) = _restored(pipe(tmp_path / "d"), state, new_files=True)
    assert (loader.epoch, loader.step) == (1, 0)
    assert json_copy(loader.state_dict())["sources"][0]["files"] == 7
    assert _run([loader])[0] == _epoch(pipe(_in_order(tmp_path / "d", (*OLD, *NEW))), 1)


def test_one_of_two_sources_may_have_new_files(tmp_path: Path) -> None:
    def pipe(first: Any) -> flow.Pipeline:
        parts = flow.concat(flow.read(first), flow.read(tmp_path / "b"))
        return parts.shuffle(8).batch(5, remainder="pad")

    _put(tmp_path / "a", OLD)
    _put(tmp_path / "b", ["more"])
    want = _epoch(pipe(tmp_path / "a"), 0)
    state = _stopped(pipe(tmp_path / "a"), 3)
    _put(tmp_path / "a", NEW)
    got, _ = _run(_restored(pipe(tmp_path / "a"), state, new_files=True), 2)
    assert got == [*want[3:], *_epoch(pipe(_in_order(tmp_path / "a", (*OLD, *NEW))), 1)]


def test_pairs_go_on_where_both_sources_of_a_zip_grew(tmp_path: Path) -> None:
    def pipe(first: Any, second: Any) -> flow.Pipeline:
        return flow.zip(flow.read(first), flow.read(second).rename({"x": "y"})).shuffle(8).batch(5)

    _put(tmp_path / "a", OLD)
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    want = _epoch(pipe(tmp_path / "a", tmp_path / "b"), 0)
    state = _stopped(pipe(tmp_path / "a", tmp_path / "b"), 2)
    _put(tmp_path / "a", NEW)
    _put(tmp_path / "b", NEW)
    ordered = [_in_order(tmp_path / source, (*OLD, *NEW)) for source in "ab"]
    with _restored(pipe(tmp_path / "a", tmp_path / "b"), state, new_files=True)[0] as loader:
        assert [batch["x"].tolist() for batch in loader] == want[2:]
        later = list(loader)
    assert all(batch["x"].tolist() == batch["y"].tolist() for batch in later)
    assert [batch["x"].tolist() for batch in later] == _epoch(pipe(*ordered), 1)


def test_a_resume_that_asks_and_finds_nothing_new_is_like_any_other(tmp_path: Path) -> None:
    _put(tmp_path / "d", OLD)
    state = _stopped(_known(tmp_path / "d"), 2)
    asked = _run(_restored(_known(tmp_path / "d"), state, new_files=True), 2)
    assert asked == _run(_restored(_known(tmp_path / "d"), state), 2)


# ---- where the loader stands, and its states


def test_len_and_remaining_follow_at_the_boundary(tmp_path: Path) -> None:
    _put(tmp_path / "d", OLD)
    state = _stopped(_known(tmp_path / "d"), 2)
    _put(tmp_path / "d", NEW)
    with _restored(_known(tmp_path / "d"), state, new_files=True)[0] as loader:
        assert (len(loader), loader.remaining) == (6, 4)
        running = iter(loader)
        assert [len(loader) for _ in running] == [6, 6, 6, 11]  # behind the last batch, of the next epoch
        assert (loader.epoch, loader.step, loader.remaining) == (1, 0, 11)
        assert len(list(loader)) == 11
        loader.load_state_dict(state, new_files=True)
        next(iter(loader))
        # That one was broken off, so that the next `for` is the next epoch.
        assert (len(loader), loader.remaining) == (11, 11)
        assert len(list(loader)) == 11


@both
def test_states_name_the_index_of_the_epoch_that_they_are_in_however_late_they_are_asked_for(
    pipe: Pipe, tmp_path: Path
) -> None:
    _put(tmp_path / "d", OLD)
    state = _stopped(pipe(tmp_path / "d"), 2)
    _put(tmp_path / "d", NEW)
    with _restored(pipe(tmp_path / "d"), state, new_files=True)[0] as loader:
        assert loader.state_dict() == state
        states = [json_copy(loader.state_dict())]
        for _ in range(2):
            states += [json_copy(loader.state_dict()) for _ in loader]
        assert [loader.state_dict(lag=lag) for lag in range(len(states))] == states[::-1]
    for saved in states:
        assert (_hashes(saved) == _hashes(state)) == (saved["epoch"] == 0)
        assert saved["sources"][0]["rows"] == (40 if saved["epoch"] == 0 else 70)
        assert (saved["batch"], saved["lanes"], saved["windows"]) == (6, 2, [8])
        assert len(json.dumps(saved)) < 1000


@both
def test_set_epoch_runs_each_epoch_on_the_files_that_are_its_own(pipe: Pipe, tmp_path: Path) -> None:
    _put(tmp_path / "d", OLD)
    with loaders(pipe(tmp_path / "d"), 1)[0] as loader:
        loader.set_epoch(3)
        next(iter(loader))
        state = json_copy(loader.state_dict())
    _put(tmp_path / "d", NEW)
    old = pipe(_in_order(tmp_path / "d", OLD))
    appended = pipe(_in_order(tmp_path / "d", (*OLD, *NEW)))
    with _restored(pipe(tmp_path / "d"), state, new_files=True)[0] as loader:
        loader.set_epoch(3)
        assert [batch["x"].tolist() for batch in loader] == _epoch(old, 3)[1:]
        for epoch in (4, 6, 3, 4, 0, 5):
            loader.set_epoch(epoch)
            want = _epoch(old if epoch < 4 else appended, epoch)
            assert [batch["x"].tolist() for batch in loader] == want


@both
def test_a_for_after_break_is_the_next_epoch_with_the_new_files(pipe: Pipe, tmp_path: Path) -> None:
    _put(tmp_path / "d", OLD)
    state = _stopped(pipe(tmp_path / "d"), 2)
    _put(tmp_path / "d", NEW)
    appended = pipe(_in_order(tmp_path / "d", (*OLD, *NEW)))
    with _restored(pipe(tmp_path / "d"), state, new_files=True)[0] as loader:
        next(iter(loader))
        assert [batch["x"].tolist() for batch in loader] == _epoch(appended, 1)


def test_a_state_behind_the_boundary_restores_without_asking_and_without_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    _put(tmp_path / "d", OLD)
    state = _stopped(_known(tmp_path / "d"), 2)
    _put(tmp_path / "d", NEW)
    whole, states = _run(_restored(_known(tmp_path / "d"), state, new_files=True), 3)
    with caplog.at_level(logging.WARNING, "dataflow"):
        got, _ = _run(_restored(_known(tmp_path / "d"), states[5]), 2)
    assert states[5]["epoch"] == 1
    assert got == whole[6:]
    assert caplog.text == ""


def test_a_batch_size_that_the_state_overrules_is_said_once_also_where_files_join(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    _put(tmp_path / "d", OLD)
    state = _stopped(_known(tmp_path / "d"), 2)
    _put(tmp_path / "d", NEW)
    other = flow.read(tmp_path / "d").shuffle(8).seed(9).batch(global_size=4, lanes=2)
    with caplog.at_level(logging.WARNING, "dataflow.execute"):
        (loader,) = _restored(other, state, new_files=True)
    with loader:
        assert len(next(iter(loader))["x"]) == 6
    assert [record.getMessage() for record in caplog.records] == [
        "the state's batch of 6 rows goes on, not the 4 that the pipeline asks for"
    ]


def test_a_state_in_front_of_the_boundary_leaves_them_out_unless_it_is_asked_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    _put(tmp_path / "d", OLD)
    state = _stopped(_known(tmp_path / "d"), 2)
    _put(tmp_path / "d", NEW)
    whole, states = _run(_restored(_known(tmp_path / "d"), state, new_files=True), 2)
    with caplog.at_level(logging.WARNING, "dataflow.index"):
        got, _ = _run(_restored(_known(tmp_path / "d"), states[0]), 2)
    assert "3 new files, which are left out: a.parquet, part-3.parquet, z.parquet" in caplog.text
    assert got == [*whole[1:4], *_epoch(_known(_in_order(tmp_path / "d", OLD)), 1)]


def test_another_machine_finds_the_joined_files_at_the_shared_index(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def pipe(index: Path | None = tmp_path / "index") -> flow.Pipeline:
        return flow.read(tmp_path / "d", index=index).shuffle(8).seed(9).batch(6, lanes=2)

    _put(tmp_path / "d", OLD)
    state = _stopped(pipe(), 2)
    _put(tmp_path / "d", NEW)
    monkeypatch.setenv("DATAFLOW_CACHE", str(tmp_path / "second machine"))
    whole, states = _run(_restored(pipe(), state, new_files=True), 2)
    monkeypatch.setenv("DATAFLOW_CACHE", str(tmp_path / "third machine"))
    assert states[5]["epoch"] == 1
    assert _run(_restored(pipe(), states[5]), 1)[0] == whole[6:]
    monkeypatch.setenv("DATAFLOW_CACHE", str(tmp_path / "fourth machine"))
    with pytest.raises(PlanError, match=r"its old index .* is not found") as caught:
        _restored(pipe(None), states[5])
    assert "index=" in caught.value.hint


def test_a_torch_dataset_over_the_loader_passes_the_wish_on(tmp_path: Path) -> None:
    _put(tmp_path / "d", OLD)
    state = _stopped(_known(tmp_path / "d"), 2)
    _put(tmp_path / "d", NEW)
    with _known(tmp_path / "d").loader() as loader:
        view = loader.as_iterable_dataset()
        view.load_state_dict(state, new_files=True)
        assert [len(list(view)), len(list(view))] == [4, 11]


# ---- what the new rows are


def test_a_column_that_only_new_files_have_comes_with_them(tmp_path: Path) -> None:
    _put(tmp_path / "d", OLD)

    def pipe(url: Any) -> flow.Pipeline:
        return flow.read(url).shuffle(8).batch(5, remainder="keep")

    state = _stopped(pipe(tmp_path / "d"), 2)
    extra = pa.table({"x": pa.array([700, 701], pa.int64()), "y": ["one", "two"]})
    pq.write_table(extra, tmp_path / "d" / "a.parquet")
    with pipe(tmp_path / "d").loader(output="arrow") as loader:
        loader.load_state_dict(state, new_files=True)
        now = pa.Table.from_batches(list(loader))
        later = pa.Table.from_batches(list(loader))
    assert now.column_names == ["x"]
    assert later.schema.names == ["x", "y"]
    rows = {row["x"]: row["y"] for row in later.to_pylist()}
    assert (rows[700], rows[701], rows[0]) == ("one", "two", None)


def test_a_bad_row_is_found_in_its_file_in_both_epochs(tmp_path: Path) -> None:
    _put(tmp_path / "d", OLD)

    def picky(row: Mapping[str, Any]) -> dict[str, Any]:
        if int(row["x"]) % 100 == 7:
            raise ValueError("no sevens")
        return {"x": row["x"]}

    def pipe() -> flow.Pipeline:
        return flow.read(tmp_path / "d").map(picky, schema={"x": "int64"}).shuffle(8).batch(5)

    options: dict[str, Any] = {"on_error": "replace", "output": "numpy", "quarantine": tmp_path / "bad.jsonl"}
    with pipe().loader(**options) as loader:
        next(iter(loader))
        state = json_copy(loader.state_dict())
    _put(tmp_path / "d", NEW)
    (tmp_path / "bad.jsonl").unlink(missing_ok=True)
    with pipe().loader(**options) as loader:
        loader.load_state_dict(state, new_files=True)
        for _ in range(2):
            assert all(int(x) % 100 != 7 for batch in loader for x in batch["x"])
        count = loader.stats()["errors"]
    lines = [json.loads(line) for line in (tmp_path / "bad.jsonl").read_text().splitlines()]
    assert count == state["errors"] + len(lines)
    assert {line["row"] for line in lines} == {7}
    files = [line["file"] for line in lines[-7:]]
    assert sorted(files) == sorted(f"{name}.parquet" for name in (*OLD, *NEW))


def test_a_filter_is_not_called_for_rows_that_the_old_files_would_give_in_the_next_epoch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _put(tmp_path / "d", OLD)
    calls: list[int] = []

    def seen(row: Mapping[str, Any]) -> bool:
        calls.append(int(row["x"]))
        return True

    def pipe() -> flow.Pipeline:
        return flow.read(tmp_path / "d").filter(seen).shuffle(8).batch(5)

    state = _stopped(pipe(), 2)
    _put(tmp_path / "d", NEW)
    work_inline(monkeypatch)
    with _restored(pipe(), state, new_files=True)[0] as loader:
        calls.clear()
        rest = [x for batch in loader for x in batch["x"].tolist()]
        # The thread that works ahead is still there; it must not go on.
        await_rest(loader)
        assert sorted(calls) == sorted(rest)


def test_class_folders_that_would_get_other_labels_are_an_error_and_further_classes_are_not(
    tmp_path: Path,
) -> None:
    def put(*names: str) -> None:
        for name in names:
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_bytes(name.encode())

    def pipe(**options: Any) -> flow.Pipeline:
        return flow.read(tmp_path / "d", format=Folder(**options)).batch(2)

    put("d/cat/1.png", "d/cat/3.png", "d/dog/2.png", "d/dog/4.png")
    state = _stopped(pipe(), 1)
    put("d/cat/2.png", "d/zebra/1.png")
    with loaders(pipe(), 1)[0] as loader:
        loader.load_state_dict(state, new_files=True)
        assert [row for batch in loader for row in batch["__id__"]] == [2, 3]
        labels = {path: int(n) for b in loader for path, n in zip(b["path"], b["label"], strict=True)}
    assert labels == {
        "cat/1.png": 0, "cat/3.png": 0, "dog/2.png": 1, "dog/4.png": 1, "cat/2.png": 0, "zebra/1.png": 2,
    }  # fmt: skip
    put("d/ant/1.png")
    with loaders(pipe(), 1)[0] as loader:
        with pytest.raises(
            DataError, match=r"classes would be \['ant', .*, and is \['cat', 'dog'\]"
        ) as caught:
            loader.load_state_dict(state, new_files=True)
        assert "classes=" in caught.value.hint
        loader.load_state_dict(state)
    with loaders(pipe(classes=("cat", "dog", "zebra", "ant")), 1)[0] as loader:
        loader.load_state_dict(state, new_files=True)


# ---- what is refused, and when


@pytest.mark.parametrize("lost", ["gone", "changed"])
def test_files_that_are_gone_or_changed_are_an_error_also_where_new_ones_are_asked_for(
    lost: str, tmp_path: Path
) -> None:
    _put(tmp_path / "d", OLD)
    state = _stopped(_known(tmp_path / "d"), 2)
    _put(tmp_path / "d", NEW)
    if lost == "gone":
        (tmp_path / "d" / "part-1.parquet").unlink()
    else:
        _put(tmp_path / "d", ["part-1"], rows=11)
    (loader,) = loaders(_known(tmp_path / "d"), 1)
    with loader, pytest.raises(DataError, match=rf"1 file .* {lost}: part-1\.parquet") as caught:
        loader.load_state_dict(state, new_files=True)
    assert "put the files back" in caught.value.hint


def test_new_files_that_do_not_fit_in_memory_are_an_error_at_once_and_the_loader_stays(
    tmp_path: Path,
) -> None:
    def put(name: str, rows: int) -> None:
        (tmp_path / "d").mkdir(exist_ok=True)
        wide = pa.FixedSizeListArray.from_arrays(pa.array(np.zeros(100 * rows)), 100)
        pq.write_table(pa.table({"x": wide}), tmp_path / "d" / name)

    def loader_of(lanes: int) -> Loader[Any]:
        rows = flow.read(tmp_path / "d").shuffle(1000)
        return rows.batch(8, lanes=lanes).loader(output="numpy", memory_limit="12MB", threads=1)

    put("b.parquet", 160)
    with loader_of(8) as loader:
        next(iter(loader))
        state = json_copy(loader.state_dict())
    put("a.parquet", 16_000)
    # Windows of one lane fit, those of the eight that the state has do not.
    with loader_of(1) as loader:
        before = loader.state_dict()
        with pytest.raises(PlanError, match="8 lanes and one window ahead x 1,000 rows") as caught:
            loader.load_state_dict(state, new_files=True)
        assert "memory_limit" in caught.value.hint
        assert loader.state_dict() == before
        loader.load_state_dict(state)
        assert len(list(loader)) == 19
