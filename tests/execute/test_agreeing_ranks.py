"""Row-changing pipelines on several ranks: one order, the same batches and states, elastic, and never a hang."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from meeting import meeting_loaders
from recipes import CHANGING, Global, Recipe, Row, delivered, fragments, json_copy, recipes, values

from dataflow.errors import DataError, RankError, StageError
from dataflow.execute.loader import Loader
from dataflow.options import ErrorPolicy


def _flags(batch: Row) -> list[bool]:
    return batch["__valid__"].tolist() if "__valid__" in batch else [True] * len(batch["x"])


def _states(ranks: list[Loader[Any]], into: list[Any]) -> Any:
    def keep() -> None:
        found = [json_copy(loader.state_dict()) for loader in ranks]
        assert all(state == found[0] for state in found), "the ranks' states differ"
        into.append(found[0])

    return keep


@given(recipes(CHANGING))
@settings(max_examples=30)
def test_every_rank_gets_its_share_of_what_the_lanes_give_in_turn(case: tuple[Recipe, int]) -> None:
    recipe, world = case
    ranks = meeting_loaders(recipe.pipe(), world)
    want = [batch for epoch in range(2) for batch in recipe.batches(epoch)]
    got = list(delivered(ranks, 2, _states(ranks, [])))
    assert len(got) == len(want)
    for batch, step in zip(want, got, strict=True):
        shares = [batch.share(rank, world) for rank in range(world)]
        assert [Global(b["x"].tolist(), _flags(b)) for b in step] == shares


@given(recipes(CHANGING), st.data())
@settings(max_examples=20)
def test_any_number_of_ranks_goes_on_where_any_number_stopped(
    case: tuple[Recipe, int], data: st.DataObject
) -> None:
    recipe, world = case
    # Batches that every world up to 3 divides, so that any of them can make a loader of the pipeline.
    recipe = replace(recipe, batch=6 * recipe.lanes, remainder="pad")
    pipe = recipe.pipe()
    want = [batch.values for epoch in range(9) for batch in recipe.batches(epoch)]
    found: list[list[int]] = []
    state: Any = None
    for ranks_now in (world if world < 4 else 2, *data.draw(st.permutations([1, 2, 3]))):
        count = data.draw(st.integers(1, 4))
        ranks = meeting_loaders(pipe, ranks_now, state)
        states: list[Any] = []
        steps = delivered(ranks, 2, _states(ranks, states))
        for _ in range(count):
            step = next(steps, None)
            if step is not None:
                found.append(values(step))
        steps.close()
        state = states[-1]
    assert found == want[: len(found)]


@pytest.mark.parametrize("world", [1, 2, 3])
@pytest.mark.parametrize("remainder", ["drop", "pad", "keep"])
def test_flat_map_and_shuffle_agree_and_resume_at_every_stop(world: int, remainder: Any) -> None:
    def several(row: Row) -> list[Row]:
        return [{"x": int(row["x"]), "copy": copy} for copy in range(int(row["x"]) % 4)]

    rows = fragments((13, 8, 19)).flat_map(several, schema={"x": "int64", "copy": "int64"}).shuffle(5)
    pipe = rows.batch(global_size=6, lanes=3, remainder=remainder)
    alone = [[values(step), values(step, "copy")] for step in delivered(meeting_loaders(pipe, 1), 2)]
    ranks, states = meeting_loaders(pipe, world), list[Any]()
    steps = list(delivered(ranks, 2, _states(ranks, states)))
    assert [[values(step), values(step, "copy")] for step in steps] == alone
    for stop in range(0, len(alone) - 1, 3):
        other = 1 + (world + stop) % 3
        rest = delivered(meeting_loaders(pipe, other, states[stop]), 2)
        found = [[values(step), values(step, "copy")] for step in rest]
        assert found[: len(alone) - stop - 1] == alone[stop + 1 :]


def test_lanes_of_very_different_lengths_give_all_their_rows() -> None:
    # Only the first of four lanes has rows behind the filter: the others end at once.
    pipe = (
        fragments([5] * 16).filter(lambda row: row["x"] < 18).batch(global_size=4, lanes=4, remainder="keep")
    )
    got = list(delivered(meeting_loaders(pipe, 2)))
    assert [value for step in got for value in values(step)] == list(range(18))
    assert sum(len(b["x"]) for step in got for b in step) == 18


def test_a_row_that_becomes_very_many_is_dealt_like_any_other() -> None:
    def burst(row: Row) -> list[Row]:
        return [{"x": int(row["x"])}] * (500 if row["x"] == 21 else int(row["x"]) % 2)

    pipe = (
        fragments([8] * 5)
        .flat_map(burst, schema={"x": "int64"})
        .batch(global_size=6, lanes=2, remainder="keep")
    )
    alone = [values(step) for step in delivered(meeting_loaders(pipe, 1))]
    assert sum(map(len, alone)) == 500 + 19
    ranks, states = meeting_loaders(pipe, 3), list[Any]()
    assert [values(step) for step in delivered(ranks, 1, _states(ranks, states))] == alone
    middle = len(alone) // 2
    rest = delivered(meeting_loaders(pipe, 2, states[middle]))
    assert [values(step) for step in rest] == alone[middle + 1 :]


@pytest.mark.parametrize("bad", [3, 25, 41, 79])
def test_an_error_is_raised_on_every_rank_when_its_batch_is_due(bad: int) -> None:
    def keep(row: Row) -> bool:
        if row["x"] == bad:
            raise ValueError("mine")
        return True

    pipe = fragments([8] * 10).filter(keep).batch(global_size=8, lanes=4)
    # Lane l has rows 20 l to 20 l + 19, two of which are in every batch.
    due = bad % 20 // 2
    ranks = meeting_loaders(pipe, 2)
    found: list[list[Any]] = [[], []]
    running = [iter(loader) for loader in ranks]
    for _ in range(due + 1):
        for rank, iterator in enumerate(running):
            try:
                found[rank].append(next(iterator)["x"].tolist())
            except (StageError, RankError) as error:
                found[rank].append(error)
    for loader in ranks:
        loader.close()
    owner = bad // 40
    assert [len(rows) for rows in found] == [due + 1, due + 1]
    assert isinstance(found[owner][-1], StageError)
    assert "mine" in str(found[owner][-1])
    other = found[1 - owner][-1]
    assert isinstance(other, RankError)
    assert f"rank {owner} failed" in str(other)
    assert f"log of rank {owner}" in other.hint


def test_skipped_rows_are_counted_on_the_rank_that_has_their_lane(tmp_path: Path) -> None:
    def keep(row: Row) -> bool:
        if row["x"] in (3, 4, 50, 79):
            raise ValueError("bad")
        return True

    pipe = fragments([8] * 10).filter(keep).batch(global_size=8, lanes=4, remainder="keep")
    policies = [ErrorPolicy(on_error="skip", quarantine=tmp_path / f"{rank}.jsonl") for rank in range(2)]
    ranks = meeting_loaders(pipe, 2, errors=policies)
    got = list(delivered(ranks))
    assert sorted(value for step in got for value in values(step)) == sorted(set(range(80)) - {3, 4, 50, 79})
    assert [loader.stats()["errors"] for loader in ranks] == [2, 2]
    assert [len((tmp_path / f"{rank}.jsonl").read_text().splitlines()) for rank in range(2)] == [2, 2]


def test_keep_with_fewer_rows_than_ranks_is_an_error_on_all_of_them_behind_the_last_good_batch() -> None:
    pipe = fragments((13,)).filter(lambda row: True).batch(global_size=6, lanes=3, remainder="keep")
    ranks = meeting_loaders(pipe, 3)
    running = [iter(loader) for loader in ranks]
    for _ in range(2):
        assert all(len(next(iterator)["x"]) == 2 for iterator in running)
    for iterator in running:
        with pytest.raises(DataError, match="1 rows for 3 ranks") as caught:
            next(iterator)
        assert "pad" in caught.value.hint
    for loader in ranks:
        loader.close()
