"""Row-changing pipelines on several ranks: one order, the same batches and states, elastic, and never a hang."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
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


@pytest.mark.parametrize("world", [1, 2])
def test_a_lane_that_fails_behind_a_batch_does_not_end_it_where_only_others_must_offer_more(
    world: int,
) -> None:
    def keep(row: Row) -> bool:
        if row["x"] == 2 * 20 + 8:
            raise ValueError("mine")
        return bool(row["x"] < 3 * 20)

    # Three of thirteen lanes have rows: of 26 they give 9, 9 and 8, which is what a first offer may hold.
    pipe = fragments([20] * 13).filter(keep).batch(global_size=26, lanes=13)
    first = [*range(9), *range(20, 29), *range(40, 48)]
    share = len(first) // world
    for rank, found in enumerate(_until_error(meeting_loaders(pipe, world))):
        assert len(found) == 2
        assert found[0] == first[rank * share : (rank + 1) * share]
        assert isinstance(found[1], StageError if rank == 0 else RankError)


def _until_error(ranks: list[Loader[Any]]) -> list[list[Any]]:
    """What each rank gets, batch after batch, and the error in the end."""
    found: list[list[Any]] = [[] for _ in ranks]
    running = {rank: iter(loader) for rank, loader in enumerate(ranks)}
    while running:
        for rank, iterator in list(running.items()):
            try:
                found[rank].append(next(iterator)["x"].tolist())
            except (DataError, StageError, RankError) as error:
                found[rank].append(error)
                del running[rank]
    for loader in ranks:
        loader.close()
    return found


def _only(rank: int, answer: Any) -> list[Any]:
    """For each of two ranks a pipeline of three lanes, whose function answers on `rank` alone for x = 31.

    Row 31 is the twelfth of lane 1, in global batch 2. Rank 0 owns lane 1, rank 1 takes a half of its rows.
    """

    def keep(here: int, row: Row) -> bool:
        return answer(row) if row["x"] == 31 and here == rank else True

    rows = fragments([10] * 6)
    return [rows.filter(partial(keep, here)).batch(global_size=12, lanes=3) for here in range(2)]


def _fail(row: Row) -> bool:
    raise ValueError("only here")


def test_a_lane_that_fails_only_where_it_is_read_for_another_rank_is_an_error_on_all_at_its_batch() -> None:
    owner, reader = _until_error(meeting_loaders(_only(1, _fail), 2))
    assert [len(owner), len(reader)] == [3, 3]
    assert isinstance(reader[-1], StageError)
    assert "only here" in str(reader[-1])
    assert isinstance(owner[-1], RankError)
    assert "ranks [1] failed to make their share of step 2" in str(owner[-1])
    assert "log of rank 1" in owner[-1].hint


def test_a_lane_that_fails_only_where_it_is_owned_is_an_error_on_all_at_its_batch() -> None:
    owner, reader = _until_error(meeting_loaders(_only(0, _fail), 2))
    assert [len(owner), len(reader)] == [3, 3]
    assert isinstance(owner[-1], StageError)
    assert isinstance(reader[-1], RankError)


def test_a_function_that_gives_fewer_rows_where_a_lane_is_read_for_another_rank_is_an_error_on_all() -> None:
    def never(row: Row) -> bool:
        return False

    owner, reader = _until_error(meeting_loaders(_only(1, never), 2))
    assert isinstance(reader[-1], DataError)
    assert "lane 1 ends 1 row before" in str(reader[-1])
    assert "the same rows for the same input on every rank" in reader[-1].hint
    assert isinstance(owner[-1], RankError)


def test_ranks_that_were_restored_at_different_steps_are_an_error_on_all_that_lists_them() -> None:
    pipe = fragments([8] * 10).filter(lambda row: True).batch(global_size=8, lanes=4)
    (alone,) = meeting_loaders(pipe, 1)
    running = iter(alone)
    states = []
    for _ in range(2):
        next(running)
        states.append(json_copy(alone.state_dict()))
    alone.close()
    ranks = meeting_loaders(pipe, 2)
    for loader, state in zip(ranks, states, strict=True):
        loader.load_state_dict(state)
    for (error,) in _until_error(ranks):
        assert isinstance(error, RankError)
        assert "ranks [0] and [1] differ in cursors, step (1, 2)" in str(error)
        assert "same state" in error.hint


@pytest.mark.parametrize("leaver", [0, 1])
def test_a_rank_that_breaks_off_is_an_error_on_the_others_behind_the_batches_that_it_took(
    leaver: int,
) -> None:
    pipe = fragments([8] * 10).filter(lambda row: True).batch(global_size=8, lanes=4)
    ranks = meeting_loaders(pipe, 2)
    running = [iter(loader) for loader in ranks]
    for _ in range(3):
        for iterator in running:
            next(iterator)
    ranks[leaver].close()
    # What lies ready is no less right.
    with pytest.raises(RankError, match=rf"ranks \[{leaver}\] have left"):
        for _ in running[1 - leaver]:
            pass
    ranks[1 - leaver].close()


def test_rows_that_no_batch_has_are_said_once_by_the_first_rank(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "dataflow.execute")
    pipe = fragments((13,)).filter(lambda row: True).batch(global_size=6, lanes=3)
    assert len(list(delivered(meeting_loaders(pipe, 2), 3))) == 6
    assert [record.getMessage() for record in caplog.records] == [
        "epoch 0 leaves out its last 1 row, as other epochs do: too few for a batch of 6; "
        "remainder='pad' or 'keep' delivers them"
    ]


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
        with pytest.raises(DataError, match="1 row for 3 ranks") as caught:
            next(iterator)
        assert "pad" in caught.value.hint
    for loader in ranks:
        loader.close()
