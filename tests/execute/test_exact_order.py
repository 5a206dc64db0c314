"""What a loader delivers, against the order that the design writes down, on any number of ranks and threads."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from recipes import CHANGING, KEEPING, Global, Recipe, delivered, loaders, recipes, values

from dataflow.errors import PlanError


def _flags(batch: dict[str, Any]) -> list[bool]:
    return batch["__valid__"].tolist() if "__valid__" in batch else [True] * len(batch["x"])


@given(recipes())
@settings(max_examples=40)
def test_every_rank_gets_its_share_of_the_order_as_it_is_written_down(case: tuple[Recipe, int]) -> None:
    recipe, world = case
    want = [recipe.batches(epoch) for epoch in range(2)]
    got = list(delivered(loaders(recipe.pipe(), world), epochs=2))
    assert len(got) == sum(map(len, want))
    for batch, step in zip([batch for epoch in want for batch in epoch], got, strict=True):
        shares = [batch.share(rank, world) for rank in range(world)]
        assert [Global(b["x"].tolist(), _flags(b)) for b in step] == shares


@given(recipes(CHANGING, worlds=(1,)))
@settings(max_examples=40)
def test_row_changing_pipelines_deal_their_lanes_in_turn(case: tuple[Recipe, int]) -> None:
    recipe, _ = case
    want = [batch for epoch in range(2) for batch in recipe.batches(epoch)]
    got = list(delivered(loaders(recipe.pipe(), 1), epochs=2))
    assert [Global(b["x"].tolist(), _flags(b)) for (b,) in got] == want


@given(recipes((*KEEPING, *CHANGING), worlds=(1,)), st.data())
@settings(max_examples=20)
def test_threads_prefetch_and_memory_do_not_change_what_is_delivered(
    case: tuple[Recipe, int], data: st.DataObject
) -> None:
    recipe, _ = case
    runs = []
    for threads, prefetch, memory in ((1, 1, 40_000_000), data.draw(_ways), data.draw(_ways)):
        options: dict[str, Any] = {"threads": threads, "prefetch": prefetch, "memory_limit": memory}
        steps = delivered(loaders(recipe.pipe(), 1, **options), epochs=2)
        runs.append([{name: column.tolist() for name, column in batch.items()} for (batch,) in steps])
    assert runs[0] == runs[1] == runs[2]


_ways = st.tuples(st.integers(1, 4), st.sampled_from([1, 2, 7, 128]), st.sampled_from([60_000_000, 10**9]))


@given(recipes(("none", "map rng", "batched rng")))
@settings(max_examples=20)
def test_global_batches_and_draws_are_the_same_on_any_number_of_ranks(case: tuple[Recipe, int]) -> None:
    recipe, world = case
    column = "x" if recipe.function == "none" else "drawn"
    alone = [(values(step), values(step, column)) for step in delivered(loaders(recipe.pipe(), 1))]
    ranked = [(values(step), values(step, column)) for step in delivered(loaders(recipe.pipe(), world))]
    assert ranked == alone


@given(recipes((*KEEPING, "filter", "flat_map"), worlds=(1,)))
@settings(max_examples=20)
def test_every_row_comes_exactly_once_a_pass(case: tuple[Recipe, int]) -> None:
    recipe, _ = case
    once = Counter(out for lane in recipe.lane_rows(0) for out in lane)
    got: Counter[int] = Counter()
    for (batch,) in delivered(loaders(recipe.pipe(), 1)):
        flags = _flags(batch)
        got.update(value for value, real in zip(batch["x"].tolist(), flags, strict=True) if real)
    missing = once - got
    assert not got - once
    assert missing.total() == (once.total() % recipe.batch if recipe.remainder == "drop" else 0)


@given(recipes())
@settings(max_examples=20)
def test_len_equals_what_is_iterated_in_early_and_late_epochs(case: tuple[Recipe, int]) -> None:
    recipe, world = case
    ranks = loaders(recipe.pipe(), world)
    lengths = {len(loader) for loader in ranks}
    for loader in ranks:
        loader.set_epoch(7)
    late = list(delivered(ranks))
    assert lengths == {len(late)} == {len(recipe.batches(7))} == {len(recipe.batches(0))}


@pytest.mark.parametrize("world", [2, 3, 5])
def test_only_the_last_batch_may_be_shorter_and_shares_differ_by_one_row_at_most(world: int) -> None:
    recipe = Recipe(parts=((13, 2, 21),), window=7, batch=10 * world, lanes=world, remainder="keep")
    sizes = [[len(b["x"]) for b in step] for step in delivered(loaders(recipe.pipe(), world))]
    assert all(step == [10] * world for step in sizes[:-1])
    assert max(sizes[-1]) - min(sizes[-1]) <= 1
    assert sum(map(sum, sizes)) == 36


@pytest.mark.parametrize("rows", [1, 2, 3])
def test_a_source_smaller_than_lanes_and_ranks_works(rows: int) -> None:
    recipe = Recipe(parts=((rows,),), window=4, passes=2, batch=7, lanes=7, remainder="pad")
    got = list(delivered(loaders(recipe.pipe(), 7)))
    assert [values(step) for step in got] == [batch.values for batch in recipe.batches(0)]


def test_one_file_with_all_rows_is_shared_by_all_ranks() -> None:
    recipe = Recipe(parts=((420,),), window=16, batch=28, lanes=7)
    got = list(delivered(loaders(recipe.pipe(), 7)))
    for rank in range(7):
        assert sum(len(step[rank]["x"]) for step in got) == 60
    assert sorted(value for step in got for value in values(step)) == list(range(420))


def test_fewer_rows_than_a_batch_are_an_error_that_names_pad() -> None:
    with pytest.raises(PlanError, match="pad"):
        Recipe(parts=((5,),), batch=6).pipe().loader()


def test_a_last_batch_with_fewer_rows_than_ranks_is_an_error_at_the_start_that_names_pad() -> None:
    recipe = Recipe(parts=((9,),), batch=8, remainder="keep", lanes=4)
    with pytest.raises(PlanError, match="pad"):
        recipe.pipe().loader(rank=0, world_size=4)


def test_a_batch_that_ranks_or_lanes_do_not_divide_names_the_nearest_sizes() -> None:
    with pytest.raises(PlanError, match=r"9.*12"):
        Recipe(parts=((99,),), batch=10, lanes=3).pipe().loader()
    # Not before it is used: a state of a run that began on another number of ranks may be loaded.
    with Recipe(parts=((99,),), batch=10).pipe().loader(rank=0, world_size=4) as loader:
        for use in (iter, len, lambda loader: loader.state_dict()):
            with pytest.raises(PlanError, match=r"8.*12"):
                use(loader)


def test_batch_size_is_a_ranks_and_lanes_are_the_world_by_default() -> None:
    pipe = Recipe(parts=((60,),)).rows().batch(5)
    got = list(delivered(loaders(pipe, 3)))
    assert [len(b["x"]) for b in got[0]] == [5, 5, 5]
    assert values(got[0]) == [*range(5), *range(20, 25), *range(40, 45)]


def test_an_epoch_without_a_batch_behind_a_filter_is_a_data_error() -> None:
    from dataflow.errors import DataError

    pipe = Recipe(parts=((9,),)).rows().filter(lambda row: False).batch(4)
    with pipe.loader() as loader, pytest.raises(DataError, match="not one batch"):
        next(iter(loader))
