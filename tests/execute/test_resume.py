"""For every stop, what came before it and what comes after the restore is the uninterrupted run, in order."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from itertools import islice
from typing import Any, NoReturn

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from recipes import CHANGING, KEEPING, Recipe, Row, delivered, fragments, json_copy, loaders, recipes, values

import dataflow as flow
from dataflow.errors import DataflowError, InternalError, PlanError, RankError
from dataflow.execute.develop import ByKernel
from dataflow.execute.loader import Loader
from dataflow.execute.metrics import Meters
from dataflow.execute.position import Place
from dataflow.execute.running import Running
from dataflow.execute.setup import make_setup
from dataflow.execute.thread_pools import ThreadPools
from dataflow.options import LoaderOptions, OnError, World

State = dict[str, Any]


def _plain(step: list[Row]) -> dict[str, list[Any]]:
    """A global batch: the ranks' columns one behind the other."""
    return {name: values(step, name) for name in step[0]}


def _run(
    pipe: flow.Pipeline, world: int = 1, epochs: int = 2, **options: Any
) -> tuple[list[Any], list[State]]:
    """All global batches, and the state behind each on every rank."""
    ranks = loaders(pipe, world, **options)
    states: list[State] = []

    def keep() -> None:
        found = [loader.state_dict() for loader in ranks]
        assert all(state == found[0] for state in found), "the ranks' states differ"
        states.append(json_copy(found[0]))

    return [_plain(step) for step in delivered(ranks, epochs, keep)], states


def _resumed(
    pipe: flow.Pipeline, state: State, batches: int, world: int = 1
) -> tuple[list[Any], list[State]]:
    """The next batches from a state on, and the states behind them."""
    ranks = loaders(pipe, world, state)
    found: list[Any] = []
    states: list[State] = []
    while len(found) < batches:
        running = [iter(loader) for loader in ranks]
        while len(found) < batches:
            step = [next(iterator, None) for iterator in running]
            if step[0] is None:
                break
            found.append(_plain([batch for batch in step if batch is not None]))
            states.append(json_copy(ranks[0].state_dict()))
    for loader in ranks:
        loader.close()
    return found, states


@given(recipes((*KEEPING, *CHANGING), worlds=(1,)), st.data())
@settings(max_examples=25)
def test_resuming_at_any_batch_yields_the_same_rest(case: tuple[Recipe, int], data: st.DataObject) -> None:
    recipe, _ = case
    whole, states = _run(recipe.pipe())
    for stop in data.draw(st.lists(st.integers(0, len(whole) - 1), min_size=1, max_size=3, unique=True)):
        rest, later = _resumed(recipe.pipe(), states[stop], len(whole) - stop - 1)
        assert rest == whole[stop + 1 :]
        assert later == states[stop + 1 :]


@given(recipes(), st.data())
@settings(max_examples=15)
def test_any_number_of_ranks_resumes_what_any_number_began(
    case: tuple[Recipe, int], data: st.DataObject
) -> None:
    recipe, world = case
    pipe = recipe.pipe()
    whole, states = _run(pipe, world)
    stop = data.draw(st.integers(0, len(whole) - 1))
    then = data.draw(st.integers(1, min(recipe.batch, 5)))
    if recipe.remainder == "keep" and any(len(batch["x"]) < then for batch in whole):
        then = 1
    # The loader of another world is made for its own batch first; what counts then is the state's.
    other = replace(recipe, batch=recipe.lanes * then) if recipe.batch % then else recipe
    if other.remainder == "drop" and sum(map(len, other.lane_rows(0))) < other.batch:
        other = replace(other, remainder="pad")
    if other.remainder != recipe.remainder or (other.remainder == "keep" and other is not recipe):
        return
    rest, _ = _resumed(other.pipe(), states[stop], len(whole) - stop - 1, then)
    assert rest == whole[stop + 1 :]


@pytest.mark.parametrize("world", [3, 5, 6, 7])
@pytest.mark.parametrize("lanes", [None, 2, 4])
def test_ranks_that_do_not_divide_the_batch_resume_what_others_began(world: int, lanes: int | None) -> None:
    pipe = fragments((7, 20, 13)).shuffle(9).batch(global_size=8, lanes=lanes)
    whole = [values(step) for step in delivered(loaders(pipe, 2))]
    begun = loaders(pipe, 2)
    before = [values(step) for step in islice(delivered(begun), 2)]
    state = json_copy(begun[0].state_dict())
    steps = list(delivered(loaders(pipe, world, state)))
    assert before + [values(step) for step in steps] == whole
    # Equal within one row.
    assert all(max(sizes) - min(sizes) <= 1 for sizes in ([len(b["x"]) for b in step] for step in steps))


@pytest.mark.parametrize("function", [*KEEPING, *CHANGING])
def test_every_stop_of_two_epochs_with_every_kind_of_function(function: str) -> None:
    recipe = Recipe(
        parts=((5, 8, 3), (7, 2)), window=6, passes=2, function=function, batch=6, lanes=3, seed=1
    )
    whole, states = _run(recipe.pipe())
    for stop in range(len(whole)):
        rest, _ = _resumed(recipe.pipe(), states[stop], len(whole) - stop - 1)
        assert rest == whole[stop + 1 :], f"stop {stop}"


@pytest.mark.parametrize("remainder", ["drop", "pad", "keep"])
@pytest.mark.parametrize("lanes", [1, 2, 3])
def test_every_stop_behind_flat_map_and_shuffle(remainder: Any, lanes: int) -> None:
    def several(row: Row) -> list[Row]:
        return [{"x": int(row["x"]), "copy": copy} for copy in range(int(row["x"]) % 4)]

    rows = fragments((13, 8, 19)).flat_map(several, schema={"x": "int64", "copy": "int64"}).shuffle(5)
    pipe = rows.batch(global_size=6, lanes=lanes, remainder=remainder)
    whole, states = _run(pipe)
    for stop in range(len(whole)):
        rest, _ = _resumed(pipe, states[stop], len(whole) - stop - 1)
        assert rest == whole[stop + 1 :], f"stop {stop}"


def test_a_stop_at_the_end_of_a_window_of_flat_map_and_shuffle_does_not_give_the_window_again() -> None:
    pipe = fragments((40,)).flat_map(lambda row: [row, row], schema={"x": "int64"}).shuffle(8).batch(8)
    whole, states = _run(pipe, epochs=1)
    assert len(whole) == 10
    for stop in (1, 3, 5):  # 16 outputs a window
        rest, _ = _resumed(pipe, states[stop], 9 - stop)
        assert rest == whole[stop + 1 :]


@pytest.mark.parametrize("function", ["none", "filter"])
def test_parts_with_different_functions_resume_at_every_stop(function: str) -> None:
    plus = fragments((7, 4)).map(lambda row: {"x": row["x"] + 10_000})
    minus = fragments((6, 9), first=500).map(lambda row, rng: {"x": row["x"] - rng.integers(400)}, rng=True)
    rows = flow.concat(plus, minus).shuffle(5)
    if function == "filter":
        rows = rows.filter(lambda row: row["x"] % 3 > 0)
    pipe = rows.batch(global_size=4, lanes=2)
    whole, states = _run(pipe)
    assert any(value > 10_000 for step in whole for value in step["x"])
    for stop in range(len(whole)):
        rest, _ = _resumed(pipe, states[stop], len(whole) - stop - 1)
        assert rest == whole[stop + 1 :]


@given(recipes((*KEEPING, *CHANGING), worlds=(1,)))
@settings(max_examples=12)
def test_saving_right_after_restoring_gives_the_same_state(case: tuple[Recipe, int]) -> None:
    recipe, _ = case
    _, states = _run(recipe.pipe(), epochs=1)
    for state in states[:: max(1, len(states) // 3)]:
        (loader,) = loaders(recipe.pipe(), 1, state)
        assert json_copy(loader.state_dict()) == state
        loader.load_state_dict(loader.state_dict())
        assert json_copy(loader.state_dict()) == state
        loader.close()


@pytest.mark.parametrize("function", ["none", "filter", "flat_map"])
def test_a_state_before_the_first_batch_is_valid_and_begins_at_step_0(function: str) -> None:
    pipe = Recipe(parts=((9, 8),), window=4, function=function, batch=3).pipe()
    whole, _ = _run(pipe)
    (fresh,) = loaders(pipe, 1)
    state = json_copy(fresh.state_dict())
    assert (state["epoch"], state["step"]) == (0, 0)
    assert _resumed(pipe, state, len(whole))[0] == whole
    # A loader that has begun to iterate, and delivered nothing, is still in front of the first batch.
    iter(fresh)
    assert json_copy(fresh.state_dict()) == state
    fresh.close()


@pytest.mark.parametrize("function", ["none", "filter", "flat_map"])
def test_a_state_at_the_end_of_an_epoch_gives_the_whole_next_epoch(function: str) -> None:
    pipe = Recipe(parts=((9, 8),), window=4, function=function, batch=3).pipe()
    whole, states = _run(pipe)
    first = sum(state["epoch"] == 0 for state in states) + 1
    end = states[first - 1]
    assert (end["epoch"], end["step"]) == (1, 0)
    (loader,) = loaders(pipe, 1, end)
    assert (loader.epoch, loader.step) == (1, 0)
    with loader:
        assert [_plain([batch]) for batch in loader] == whole[first:]


def test_a_state_is_a_snapshot_that_neither_training_nor_its_owner_changes() -> None:
    pipe = Recipe(parts=((20,),), window=4, function="filter", batch=2, lanes=2).pipe()
    (loader,) = loaders(pipe, 1)
    with loader:
        running = iter(loader)
        next(running)
        kept = loader.state_dict()
        copy = json_copy(kept)
        next(running)
        assert kept == copy
        cursors: Any = kept["cursors"]
        cursors[0][0] += 100
        kept["windows"] = "spoilt"
        kept["sources"] = []
        again = loader.state_dict(lag=1)
        assert again == copy
        shape: Any = again["shape"]
        shape.clear()
        assert loader.state_dict(lag=1) == copy


@given(recipes((*KEEPING, *CHANGING), worlds=(1,)))
@settings(max_examples=20)
def test_restoring_in_a_later_epoch_uses_that_epochs_order(case: tuple[Recipe, int]) -> None:
    recipe, _ = case
    (loader,) = loaders(recipe.pipe(), 1)
    loader.set_epoch(5)
    running = iter(loader)
    begun = [next(running)["x"].tolist()]
    state = json_copy(loader.state_dict())
    loader.close()
    expected = [batch.values for batch in recipe.batches(5)]
    rest, _ = _resumed(recipe.pipe(), state, len(expected) - 1)
    assert begun + [step["x"] for step in rest] == expected


@pytest.mark.parametrize("function", ["none", "filter", "flat_map"])
def test_the_size_of_a_state_does_not_grow_and_is_below_8_kb(function: str) -> None:
    import json

    recipe = Recipe(parts=((500, 300),), window=16, function=function, batch=8, lanes=8)
    _, states = _run(recipe.pipe())
    sizes = [len(json.dumps(state)) for state in states]
    assert max(sizes) < 8_192
    assert max(sizes) - min(sizes) < 200


@pytest.mark.parametrize("function", ["none", "filter", "flat_map"])
def test_saving_is_the_same_work_at_any_step(function: str) -> None:
    recipe = Recipe(parts=((1500, 900),), window=16, function=function, batch=8, lanes=4)
    (loader,) = loaders(recipe.pipe(), 1)
    work: list[int] = []
    with loader:
        for _ in loader:
            work.append(_calls(loader.state_dict))
    assert len(work) > 100
    assert max(work) < 1.1 * min(work)


def _calls(act: Callable[[], object]) -> int:
    """How many functions this thread calls meanwhile."""
    found = 0

    def count(frame: object, event: str, argument: object) -> None:
        nonlocal found
        found += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        act()
    finally:
        sys.setprofile(None)
    return found


@pytest.mark.parametrize("function", ["none", "batched", "filter", "flat_map"])
def test_a_restore_calls_functions_for_no_row_in_front_of_it_and_once_for_every_row_behind(
    function: str,
) -> None:
    calls: list[tuple[int, float]] = []  # the draw tells the epoch: the next one is begun ahead

    def seen(row: Row, rng: np.random.Generator) -> Row:
        calls.append((int(row["x"]), draw := rng.random()))
        return {"x": row["x"], "drawn": draw}

    rows = fragments([10] * 40).shuffle(20).map(seen, schema={"x": "int64", "drawn": "float64"}, rng=True)
    if function == "filter":
        rows = rows.filter(lambda row: True)
    elif function == "flat_map":
        rows = rows.flat_map(lambda row: [row], schema={"x": "int64", "drawn": "float64"})
    elif function == "batched":
        schema = {"x": "int64", "drawn": "float64"}
        rows = rows.map(lambda columns: dict(columns), batched=True, batch_size=3, schema=schema)
    pipe = rows.batch(8)
    whole, states = _run(pipe, epochs=1)
    drawn = [list(zip(step["x"], step["drawn"], strict=True)) for step in whole]
    calls.clear()
    rest, _ = _resumed(pipe, states[39], 10)
    assert rest == whole[40:]
    epoch = {pair for step in drawn for pair in step}
    again = [pair for pair in calls if pair in epoch]
    behind = [pair for step in drawn[40:] for pair in step]
    # A block of a batched function is made whole: two more rows at most, of the batch before.
    extra = set(again) - set(behind)
    assert len(again) == len(behind) + len(extra)
    assert set(behind) <= set(again)
    assert len(extra) <= (2 if function == "batched" else 0)


def test_the_global_generators_are_neither_read_nor_set() -> None:
    import torch

    def states() -> tuple[object, ...]:
        return random.getstate(), str(np.random.get_state()), torch.get_rng_state().tolist()

    random.seed(3)
    np.random.seed(3)
    torch.manual_seed(3)
    before = states()
    pipe = Recipe(parts=((50,),), window=8, function="map rng", batch=4).pipe()
    first = _run(pipe)[0]
    assert states() == before
    random.seed(4)
    np.random.seed(4)
    torch.manual_seed(4)
    assert _run(pipe)[0] == first


def test_draws_depend_on_seed_epoch_and_sample_alone() -> None:
    def drawn(**changed: Any) -> dict[tuple[int, int], float]:
        recipe = replace(Recipe(parts=((30,),), function="map rng", batch=5, window=7), **changed)
        whole, states = _run(recipe.pipe())
        epochs = [0, *(int(state["epoch"]) for state in states)]
        return {
            (epoch, x): draw
            for epoch, step in zip(epochs, whole, strict=False)
            for x, draw in zip(step["x"], step["drawn"], strict=True)
        }

    base = drawn()
    assert len(set(base.values())) == 60
    assert drawn(batch=6, lanes=2, window=None) == base
    assert drawn(window="full", lanes=3, batch=3) == base
    assert not set(drawn(seed=1).values()) & set(base.values())


# ---- what a state must agree with


def _state_of(recipe: Recipe) -> State:
    return _run(recipe.pipe(), epochs=1)[1][0]


BASE = Recipe(parts=((20, 20),), window=8, batch=4, lanes=2)


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        (replace(BASE, seed=1), "seed"),
        (replace(BASE, window=9), "window"),
        (replace(BASE, window="full"), "shuffle|window"),
        (replace(BASE, window=None), "shuffle|window"),
        (replace(BASE, passes=2), "repeat"),
        (replace(BASE, modulus=2), "filter"),
        (replace(BASE, cut=("take", 30)), "take"),
        (replace(BASE, cut=("skip", 3)), "skip"),
        (replace(BASE, function="filter"), "filter"),
        (replace(BASE, function="flat_map"), "flat_map"),
        (replace(BASE, remainder="pad"), "remainder"),
    ],
)
def test_a_state_of_another_order_is_refused_and_the_difference_named(changed: Recipe, named: str) -> None:
    state = _state_of(BASE)
    (loader,) = loaders(changed.pipe(), 1)
    with loader, pytest.raises(PlanError, match=named) as caught:
        loader.load_state_dict(state)
    assert caught.value.hint


@pytest.mark.parametrize(
    "changed", [replace(BASE, batch=8), replace(BASE, lanes=4), replace(BASE, function="map")]
)
def test_batch_lanes_and_functions_that_keep_rows_may_change_between_runs(changed: Recipe) -> None:
    whole, states = _run(BASE.pipe(), epochs=1)
    rest, _ = _resumed(changed.pipe(), states[0], len(whole) - 1)
    assert [step["x"] for step in rest] == [step["x"] for step in whole[1:]]


def test_a_take_of_another_number_of_rows_is_refused() -> None:
    state = _state_of(replace(BASE, cut=("take", 30)))
    (loader,) = loaders(replace(BASE, cut=("take", 31)).pipe(), 1)
    with loader, pytest.raises(PlanError, match="take"):
        loader.load_state_dict(state)


def _without(state: State, *names: str) -> State:
    return {name: value for name, value in state.items() if name not in names}


# What is wrong with each, over a state that the loader itself saved.
REFUSED: dict[str, Callable[[State], object]] = {
    "no mapping": lambda state: [state],
    "an entry is missing": lambda state: _without(state, "sources"),
    "another version": lambda state: {**state, "version": 99},
    "an epoch before the first": lambda state: {**state, "epoch": -1},
    "a step behind the end": lambda state: {**state, "step": 10_000},
    "another order": lambda state: {**state, "shape": {}},
    "another number of sources": lambda state: {**state, "sources": state["sources"] * 2},
    "other files": lambda state: _state_of(replace(BASE, parts=((20, 21),))),
    "a filter more": lambda state: _state_of(replace(BASE, modulus=2)),
    "lengths that are not known": lambda state: {**state, "cursors": [[2, 0], [2, 0]], "turn": 0},
    "a batch smaller than the ranks": lambda state: {**state, "batch": 0},
}


@pytest.mark.parametrize("wrong", REFUSED.values(), ids=REFUSED.keys())
def test_a_refused_state_leaves_the_loader_exactly_as_it_was(wrong: Callable[[State], Any]) -> None:
    whole = [batch.values for batch in BASE.batches(0)]
    (loader,) = loaders(BASE.pipe(), 1)
    with loader:
        running = iter(loader)
        found = [next(running)["x"].tolist() for _ in range(2)]
        before = [json_copy(loader.state_dict(lag)) for lag in range(3)]
        with pytest.raises(DataflowError):
            loader.load_state_dict(wrong(json_copy(before[0])))
        assert [loader.state_dict(lag) for lag in range(3)] == before
        assert found + [batch["x"].tolist() for batch in running] == whole


def test_windows_of_a_state_that_do_not_fit_in_memory_leave_the_loader_as_it_was() -> None:
    # A window of the state is its rows, whatever the bytes that the pipeline asks for.
    rows = flow.from_columns({"x": np.arange(4_000_000)})
    with rows.shuffle("32MB").batch(1000).loader() as loader:
        large = loader.state_dict()
    with rows.shuffle("1MB").batch(1000).loader(memory_limit="80MB", threads=1, output="numpy") as loader:
        running = iter(loader)
        next(running)
        before = loader.state_dict()
        with pytest.raises(PlanError, match="memory_limit is 80 MB"):
            loader.load_state_dict(large)
        assert loader.state_dict() == before
        next(running)


def test_ranks_that_refuse_each_other_leave_a_loader_that_has_loaded_nothing() -> None:
    pipe = flow.from_columns({"x": range(96)}).filter(_no_third).batch(global_size=6, lanes=6)
    with pipe.loader() as loader:
        state = loader.state_dict()

    def refuse(state: Any) -> NoReturn:
        raise RankError("the ranks run different orders.", hint="use one pipeline")

    options = LoaderOptions(memory_limit=1 << 30, threads=1)
    world = World(rank=0, size=4)
    with Loader(pipe.node, 0, options, world, lambda batch, schema: batch, refuse) as alone:
        for _ in range(2):
            with pytest.raises(RankError):
                alone.load_state_dict(state)
            with pytest.raises(PlanError, match="not a multiple of lanes=6"):
                next(iter(alone))
        assert (alone.epoch, alone.step) == (0, 0)


def test_ranks_that_could_exchange_nothing_are_never_run() -> None:
    setup = make_setup(
        flow.from_columns({"x": range(96)}).filter(_no_third).batch(global_size=8, lanes=4).node,
        0,
        LoaderOptions(memory_limit=1 << 30, threads=1),
        World(rank=0, size=4),
    )
    with closing(ThreadPools(1, remote=False)) as pools, pytest.raises(InternalError, match="4 ranks"):
        Running(setup, Meters(), Place(0, 0, None, 0), None, None, pools, ByKernel())


def test_a_state_that_ranks_without_a_group_cannot_share_leaves_a_loader_that_does_not_run() -> None:
    pipe = flow.from_columns({"x": range(96)}).filter(_no_third).batch(global_size=6, lanes=6)
    with pipe.loader() as loader:
        state = loader.state_dict()
    for rank in range(4):
        with pipe.loader(rank=rank, world_size=4) as alone:
            with pytest.raises(PlanError, match="4 ranks without a process group"):
                alone.load_state_dict(state)
            with pytest.raises(PlanError, match="not a multiple of lanes=6 and world=4"):
                next(iter(alone))


def _no_third(row: dict[str, Any]) -> bool:
    return bool(row["x"] % 3)


@pytest.mark.parametrize(
    "wrong", [{"version": 99}, {"step": 10_000}, {"step": -1}, {"epoch": -1}, {"epoch": "1"}]
)
def test_a_state_that_no_loader_saved_is_a_plan_error(wrong: State) -> None:
    (loader,) = loaders(BASE.pipe(), 1)
    with loader, pytest.raises(PlanError):
        loader.load_state_dict({**loader.state_dict(), **wrong})


@pytest.mark.parametrize("state", [None, [], "state", {"epoch": 1}])
def test_what_is_no_state_is_a_plan_error(state: Any) -> None:
    (loader,) = loaders(BASE.pipe(), 1)
    with loader, pytest.raises(PlanError, match="no state"):
        loader.load_state_dict(state)


def test_a_world_that_only_a_state_allows_asks_for_it_first() -> None:
    pipe = flow.from_columns({"x": range(96)}).batch(global_size=32)
    with pipe.loader(rank=0, world_size=2) as loader:
        state = loader.state_dict()
    with pipe.loader(rank=0, world_size=3) as loader:
        with pytest.raises(PlanError, match="a global batch of 32 is not a multiple of lanes=3") as caught:
            len(loader)
        assert caught.value.hint == "use 30 or 33, or load the saved state first"
        assert "no batch yet, rank 0 of 3" in repr(loader)
        loader.load_state_dict(state)
        assert len(loader) == 3


def test_a_window_in_bytes_that_the_state_overrules_is_said(caplog: pytest.LogCaptureFixture) -> None:
    rows = flow.from_columns({"x": np.arange(96)})
    with rows.shuffle("160B").batch(8).loader() as loader:
        state = loader.state_dict()
    for window in ("160B", "80B"):
        with rows.shuffle(window).batch(8).loader() as loader:
            loader.load_state_dict(state)
            assert loader.state_dict()["windows"] == [20]
    assert [record.getMessage() for record in caplog.records] == [
        "the state's window of 20 rows goes on, not the 10 of the bytes that the pipeline asks for"
    ]


def test_a_world_larger_than_the_states_batch_is_refused() -> None:
    state = _state_of(BASE)
    (loader,) = loaders(replace(BASE, batch=10).pipe(), 1)
    loader.close()
    ranked = replace(BASE, batch=10).pipe().loader(rank=0, world_size=5)
    with ranked, pytest.raises(PlanError, match="world_size=5"):
        ranked.load_state_dict(state)


def test_another_source_of_the_same_size_is_refused() -> None:
    state = _state_of(BASE)
    other = fragments((20, 20), first=5).shuffle(8).batch(global_size=4, lanes=2).loader()
    with other, pytest.raises(DataflowError):
        other.load_state_dict(state)


# ---- merging


def _states_of_ranks(steps: list[int]) -> list[State]:
    found = []
    for rank, taken in enumerate(steps):
        with BASE.pipe().loader(rank=rank, world_size=len(steps), output="numpy") as loader:
            for _ in islice(iter(loader), taken):
                pass
            found.append(json_copy(loader.state_dict()))
    return found


def test_states_of_ranks_become_one_that_restores_on_any_number() -> None:
    merged = flow.merge_states(_states_of_ranks([3, 3]))
    rest, _ = _resumed(BASE.pipe(), merged, 7)
    assert [step["x"] for step in rest] == [batch.values for batch in BASE.batches(0)[3:]]


def test_states_of_different_steps_list_the_step_of_each_rank() -> None:
    with pytest.raises(PlanError, match=r"rank 0: epoch 0, step 3, rank 1: epoch 0, step 2"):
        flow.merge_states(_states_of_ranks([3, 2]))


def test_states_of_different_runs_and_no_states_do_not_merge() -> None:
    one, two = _states_of_ranks([1, 1])
    with pytest.raises(PlanError, match="shape"):
        flow.merge_states([one, {**two, "shape": {}}])
    with pytest.raises(PlanError, match="nothing"):
        flow.merge_states([])


# ---- a state of another order whose steps look alike


def _small(row: Row) -> bool:
    return bool(row["x"] < 60)


def _refused(
    saved: flow.Pipeline,
    other: flow.Pipeline,
    named: str,
    *,
    before: OnError = "raise",
    now: OnError = "raise",
) -> None:
    """A state of `saved` is refused by `other`, which names what differs, and is accepted by `saved`."""

    def state_of() -> State:
        with saved.loader(output="numpy", on_error=before) as loader:
            running = iter(loader)
            for _ in range(3):
                next(running)
            state = json_copy(loader.state_dict())
            following = next(running)["x"].tolist()
        with saved.loader(output="numpy", on_error=before) as loader:
            loader.load_state_dict(state)
            assert next(iter(loader))["x"].tolist() == following
        return state

    state = state_of()
    with other.loader(output="numpy", on_error=now) as loader:
        with pytest.raises(PlanError, match=named) as caught:
            loader.load_state_dict(state)
        assert caught.value.hint
        assert (loader.epoch, loader.step) == (0, 0)


@pytest.mark.parametrize("function", ["map", "filter"])
def test_leaving_bad_rows_out_is_part_of_the_order_and_replacing_them_is_not(function: str) -> None:
    pipe = Recipe(parts=((200,),), function=function, batch=10).pipe()
    _refused(pipe, pipe, "on_error", before="skip", now="raise")
    _refused(pipe, pipe, "on_error", before="raise", now="skip")
    _refused(pipe, pipe, "on_error", before="skip", now="replace")
    _, states = _run(pipe, epochs=1)
    with pipe.loader(on_error="replace") as loader:
        loader.load_state_dict(states[2])
        assert loader.step == 3


def test_a_filter_that_is_counted_is_another_order_than_one_that_is_not() -> None:
    plain = fragments((200,)).filter(_small)
    counted = plain.counted().batch(10, lanes=2)
    _refused(plain.batch(10, lanes=2), counted, "filter")
    _refused(counted, plain.batch(10, lanes=2), "filter")


def test_the_same_steps_in_another_order_are_another_order_of_rows() -> None:
    rows = fragments((100,))
    one, other = rows.skip(30).take(50).batch(10), rows.take(50).skip(30).batch(10)
    _refused(one, other, "steps")
    numbered = fragments((100,), first=1000)
    _refused(
        flow.concat(rows.take(50), numbered).batch(10),
        flow.concat(rows, numbered.take(50)).batch(10),
        "steps",
    )
    _refused(
        flow.concat(rows, numbered).take(120).batch(10),
        flow.concat(rows, numbered.take(120)).batch(10),
        "steps",
    )


def test_steps_that_keep_rows_and_columns_may_stand_anywhere() -> None:
    rows = fragments((100,))
    saved = rows.take(60).shuffle(7).batch(10)
    whole, states = _run(saved, epochs=1)
    changed = (
        rows.cast({"x": "int64"}).take(60).map(lambda row: row, schema={"x": "int64"}).shuffle(7).select("x")
    )
    rest, _ = _resumed(changed.batch(10), states[1], 4)
    assert rest == whole[2:]


def test_conditions_that_differ_in_the_middle_of_a_long_list_are_different_filters() -> None:
    one = list(range(100))
    other = [*one[:50], 150, *one[51:]]
    rows = fragments((200,))
    _refused(rows.filter([("x", "in", one)]).batch(10), rows.filter([("x", "in", other)]).batch(10), "filter")


@pytest.mark.parametrize("function", ["none", "filter"])
def test_a_state_with_the_place_of_another_kind_of_run_is_a_plan_error(function: str) -> None:
    saved = Recipe(parts=((40,),), function=function, batch=4).pipe()
    (loader,) = loaders(saved, 1)
    with loader:
        next(iter(loader))
        state = json_copy(loader.state_dict())
        if function == "filter":
            state = {name: value for name, value in state.items() if name not in ("cursors", "turn")}
        else:
            state |= {"cursors": [[4, 0]], "turn": 0}
        with pytest.raises(PlanError) as caught:
            loader.load_state_dict(state)
        assert caught.value.hint
