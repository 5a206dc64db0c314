"""A run that goes on after its files were added to, lost, changed, moved, or indexed elsewhere."""

from __future__ import annotations

import json
import logging
import re
import shutil
from collections.abc import Mapping
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from delivered import ids, parquet

import dataflow as flow
from dataflow import DataError, PlanError

ROWS_A_FILE = 10


def write(folder: Path, numbers: range, scale: int = 1) -> None:
    folder.mkdir(exist_ok=True)
    for n in numbers:
        first = n * ROWS_A_FILE
        parquet(folder / f"part-{n}.parquet", {"x": np.arange(first, first + ROWS_A_FILE) * scale}, group=4)


def pipe_of(url: Path, index: Path | None = None) -> flow.Pipeline:
    return flow.read(url, index=index).shuffle(8).seed(9).batch(4, lanes=2)


def stopped(pipe: flow.Pipeline, after: int = 3) -> tuple[list[int], dict[str, Any], list[int]]:
    """Ids before the stop, the state there, and the ids that follow in the run that was not stopped."""
    with pipe.loader(output="numpy", ids=True) as loader:
        begun = ids(islice(iter(loader), after))
        state = json.loads(json.dumps(loader.state_dict()))
    with pipe.loader(output="numpy", ids=True) as loader:
        whole = ids(loader)
    assert whole[: len(begun)] == begun
    return begun, state, whole[len(begun) :]


def rest(pipe: flow.Pipeline, state: Mapping[str, Any]) -> tuple[list[int], list[int]]:
    """Ids and values that follow the state in this epoch."""
    with pipe.loader(output="numpy", ids=True) as loader:
        loader.load_state_dict(state)
        batches = list(loader)
    return ids(batches), [int(x) for batch in batches for x in batch["x"]]


def test_new_files_are_left_out_with_a_warning_and_the_epoch_ends_as_it_began(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write(tmp_path / "d", range(4))
    _, state, want = stopped(pipe_of(tmp_path / "d"))
    # One in front of, one behind, and in natural order one between the files there are.
    write(tmp_path / "d", range(4, 6))
    shutil.copy(tmp_path / "d" / "part-5.parquet", tmp_path / "d" / "a.parquet")
    shutil.copy(tmp_path / "d" / "part-5.parquet", tmp_path / "d" / "part-1b.parquet")
    caplog.clear()
    with caplog.at_level(logging.WARNING, "dataflow.index"):
        got, values = rest(pipe_of(tmp_path / "d"), state)
    assert got == want == values
    assert "4 new files, which are left out" in caplog.text
    assert "part-1b.parquet" in caplog.text
    with pipe_of(tmp_path / "d").loader() as fresh:
        assert len(fresh) > len(got) // 4


def test_the_next_epochs_of_such_a_run_are_without_the_new_files_too(tmp_path: Path) -> None:
    write(tmp_path / "d", range(4))
    with pipe_of(tmp_path / "d").loader(output="numpy", ids=True) as loader:
        epochs = [ids(loader) for _ in range(3)]
    _, state, _ = stopped(pipe_of(tmp_path / "d"))
    write(tmp_path / "d", range(4, 6))
    with pipe_of(tmp_path / "d").loader(output="numpy", ids=True) as loader:
        loader.load_state_dict(state)
        assert ids(loader) == epochs[0][12:]
        again = loader.state_dict()
        assert ids(loader) == epochs[1]
        second = loader.state_dict()
    with pipe_of(tmp_path / "d").loader(output="numpy", ids=True) as loader:
        loader.load_state_dict(again)
        assert ids(loader) == epochs[1]
        loader.load_state_dict(second)
        assert ids(loader) == epochs[2]


def test_a_file_that_is_gone_is_an_error_that_names_it(tmp_path: Path) -> None:
    write(tmp_path / "d", range(4))
    _, state, _ = stopped(pipe_of(tmp_path / "d"))
    (tmp_path / "d" / "part-2.parquet").unlink()
    with pytest.raises(DataError, match=r"1 file is gone: part-2\.parquet") as caught:
        rest(pipe_of(tmp_path / "d"), state)
    assert caught.value.hint == "put the files back as they were, or start anew without the state"


def test_a_file_that_has_changed_is_an_error_that_names_it(tmp_path: Path) -> None:
    write(tmp_path / "d", range(4))
    _, state, _ = stopped(pipe_of(tmp_path / "d"))
    parquet(tmp_path / "d" / "part-1.parquet", {"x": np.arange(11)}, group=4)
    with pytest.raises(DataError, match=r"1 file has changed: part-1\.parquet"):
        rest(pipe_of(tmp_path / "d"), state)


def test_a_folder_that_was_moved_goes_on(tmp_path: Path) -> None:
    write(tmp_path / "d", range(4))
    _, state, want = stopped(pipe_of(tmp_path / "d"))
    shutil.move(tmp_path / "d", tmp_path / "elsewhere")
    assert rest(pipe_of(tmp_path / "elsewhere"), state) == (want, want)


def test_a_folder_that_was_copied_with_new_times_goes_on(tmp_path: Path) -> None:
    write(tmp_path / "d", range(4))
    _, state, want = stopped(pipe_of(tmp_path / "d"))
    shutil.copytree(tmp_path / "d", tmp_path / "copy", copy_function=shutil.copyfile)
    assert rest(pipe_of(tmp_path / "copy"), state)[0] == want


def test_a_moved_folder_with_new_files_goes_on_without_them(tmp_path: Path) -> None:
    write(tmp_path / "d", range(4))
    _, state, want = stopped(pipe_of(tmp_path / "d"))
    shutil.move(tmp_path / "d", tmp_path / "elsewhere")
    write(tmp_path / "elsewhere", range(4, 5))
    assert rest(pipe_of(tmp_path / "elsewhere"), state)[0] == want


def test_another_place_for_the_index_goes_on(tmp_path: Path) -> None:
    write(tmp_path / "d", range(4))
    _, state, want = stopped(pipe_of(tmp_path / "d", tmp_path / "index-1"))
    assert rest(pipe_of(tmp_path / "d", tmp_path / "index-2"), state)[0] == want
    assert rest(pipe_of(tmp_path / "d"), state)[0] == want


def test_on_another_machine_the_shared_index_says_which_files_are_new(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "d", range(4))
    _, state, want = stopped(pipe_of(tmp_path / "d", tmp_path / "index"))
    write(tmp_path / "d", range(4, 5))
    monkeypatch.setenv("DATAFLOW_CACHE", str(tmp_path / "other machine"))
    with pytest.raises(PlanError, match=r"its old index .* is not found") as caught:
        rest(pipe_of(tmp_path / "d"), state)
    assert "index=" in caught.value.hint
    assert rest(pipe_of(tmp_path / "d", tmp_path / "index"), state)[0] == want


def test_without_any_old_index_unchanged_files_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "d", range(4))
    _, state, want = stopped(pipe_of(tmp_path / "d"))
    monkeypatch.setenv("DATAFLOW_CACHE", str(tmp_path / "other machine"))
    assert rest(pipe_of(tmp_path / "d"), state)[0] == want


def test_a_filter_by_columns_goes_on_when_files_were_added(tmp_path: Path) -> None:
    write(tmp_path / "d", range(4))

    def even(url: Path) -> flow.Pipeline:
        keep = [("x", "in", list(range(0, 100, 3)))]
        return flow.read(url).filter(keep).shuffle(8).seed(2).batch(2, lanes=2)

    _, state, want = stopped(even(tmp_path / "d"), 2)
    write(tmp_path / "d", range(4, 6))
    assert rest(even(tmp_path / "d"), state)[0] == want


@pytest.mark.parametrize("other", ["seed", "window", "filter", "take", "file order"])
def test_a_state_of_another_order_names_what_differs(other: str, tmp_path: Path) -> None:
    write(tmp_path / "d", range(4))
    base = flow.read(tmp_path / "d")
    _, state, _ = stopped(base.shuffle(8).seed(9).batch(4, lanes=2))
    changed, named = {
        "seed": (base.shuffle(8).seed(8), "another seed then, seed(8) here"),
        "window": (base.shuffle(9).seed(9), "windows of 8 rows then, windows of 9 rows here"),
        "filter": (
            base.filter([("x", ">", 3)]).shuffle(8).seed(9),
            "no filter then, filter(condition=[('x', '>', 3)]) here",
        ),
        "take": (base.take(30).shuffle(8).seed(9), "no take then, take(rows=30) here"),
        "file order": (base.seed(9), "shuffle then, none here; windows of 8 rows then, no windows here"),
    }[other]
    with pytest.raises(PlanError, match=re.escape(f"the state is of another order: {named}.")) as caught:
        rest(changed.batch(4, lanes=2), state)
    assert "the steps and the seed of the pipeline that saved it" in caught.value.hint


def test_a_step_with_other_arguments_and_another_remainder_are_told_with_what_is_known(
    tmp_path: Path,
) -> None:
    write(tmp_path / "d", range(4))
    base = flow.read(tmp_path / "d")
    _, state, _ = stopped(base.take(30).batch(4, lanes=2))
    with pytest.raises(PlanError, match=r"another take then, take\(rows=31\) here\."):
        rest(base.take(31).batch(4, lanes=2), state)
    with pytest.raises(PlanError, match=r"remainder 'drop' then, 'pad' here\."):
        rest(base.take(30).batch(4, lanes=2, remainder="pad"), state)


def test_another_number_of_sources_names_them(tmp_path: Path) -> None:
    write(tmp_path / "a", range(2))
    write(tmp_path / "b", range(2, 4))
    a, b = (flow.read(tmp_path / name) for name in "ab")
    _, state, _ = stopped(a.batch(2), 2)
    with pytest.raises(PlanError, match=r"1 source \(a\), and the pipeline 2 sources \(a, b\)"):
        rest(flow.concat(a, b).batch(2), state)


def test_two_sources_are_told_apart_by_their_files(tmp_path: Path) -> None:
    write(tmp_path / "a", range(2))
    write(tmp_path / "b", range(2, 5))

    def both(first: str, second: str) -> flow.Pipeline:
        return flow.concat(flow.read(tmp_path / first), flow.read(tmp_path / second)).shuffle(8).batch(5)

    _, state, want = stopped(both("a", "b"))
    assert rest(both("a", "b"), state)[0] == want
    with pytest.raises((PlanError, DataError)):
        rest(both("b", "a"), state)


def test_a_split_gives_each_row_the_same_part_when_files_are_added(tmp_path: Path) -> None:
    write(tmp_path / "d", range(6))
    shares = {"train": 0.7, "val": 0.3}

    def parts() -> dict[str, set[int]]:
        found = {}
        for name, pipe in flow.read(tmp_path / "d").split(shares).items():
            with pipe.batch(1).loader(output="numpy") as loader:
                found[name] = {int(batch["x"][0]) for batch in loader}
        return found

    before = parts()
    assert before["train"] | before["val"] == set(range(60))
    assert not before["train"] & before["val"]
    write(tmp_path / "d", range(6, 9))
    after = parts()
    assert before["train"] <= after["train"]
    assert before["val"] <= after["val"]
    assert after["train"] | after["val"] == set(range(90))


def _even(row: Mapping[str, Any]) -> bool:
    return int(row["x"]) % 2 == 0


def test_a_counted_filter_goes_on_when_files_were_added(tmp_path: Path) -> None:
    def pipe() -> flow.Pipeline:
        return flow.read(tmp_path / "d").filter(_even).counted().shuffle(8).seed(9).batch(4, lanes=2)

    write(tmp_path / "d", range(4))
    _, state, want = stopped(pipe())
    shutil.copy(tmp_path / "d" / "part-3.parquet", tmp_path / "d" / "part-1b.parquet")
    got, values = rest(pipe(), state)
    assert got == want == values


def test_a_split_by_a_column_goes_on_when_files_were_added(tmp_path: Path) -> None:
    def pipe() -> flow.Pipeline:
        part = flow.read(tmp_path / "d").split({"a": 0.7, "b": 0.3}, by="x")["a"]
        return part.shuffle(8).seed(9).batch(4, lanes=2)

    write(tmp_path / "d", range(4))
    _, state, want = stopped(pipe())
    shutil.copy(tmp_path / "d" / "part-3.parquet", tmp_path / "d" / "part-1b.parquet")
    got, values = rest(pipe(), state)
    assert got == want == values
