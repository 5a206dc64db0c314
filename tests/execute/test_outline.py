"""What `explain` says of lanes, windows and memory: the figures, against the plain lists of the recipes."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from recipes import CHANGING, KEEPING, Recipe, delivered, fragments, loaders, recipes

import dataflow as flow
from dataflow.errors import PlanError
from dataflow.execute.setup import make_setup
from dataflow.options import LoaderOptions, World
from loaders import arguments

# ---- lane reads


@pytest.mark.parametrize(("lanes", "world"), [(1, 3), (2, 4), (4, 2), (4, 3), (6, 4), (3, 3)])
def test_lane_reads_are_the_lanes_whose_rows_each_rank_is_given(lanes: int, world: int) -> None:
    # In file order, lane l of 120 rows is rows l * 120 / lanes and those that follow.
    pipe = fragments((50, 70)).batch(global_size=12, lanes=lanes)
    steps = list(delivered(loaders(pipe, world)))
    read = {(rank, int(x) * lanes // 120) for step in steps for rank, b in enumerate(step) for x in b["x"]}
    ranks = pipe.outline(world_size=world).ranks
    assert ranks is not None
    assert (ranks.lane_reads, ranks.refusal) == (len(read), None)
    each = [sum(rank == r for r, _ in read) for rank in range(world)]
    assert (ranks.fewest_reads, ranks.most_reads) == (min(each), max(each))


def test_a_restore_on_ranks_that_do_not_divide_the_batch_is_counted_exactly() -> None:
    pipe = fragments((40,)).batch(global_size=8, lanes=4)
    ranks = pipe.outline(world_size=3).ranks
    assert ranks is not None
    # The ranks take 3, 3 and 2 rows of lanes with 2 rows each.
    assert (ranks.lane_reads, ranks.fewest_reads, ranks.most_reads) == (5, 1, 2)
    assert ranks.refusal is not None
    assert "12" in ranks.refusal
    (begun,) = loaders(pipe, 1)
    state = begun.state_dict()
    begun.close()
    # A size a rank says nothing of B, which the state has.
    read = {
        (rank, int(x) // 10)
        for step in delivered(loaders(fragments((40,)).batch(size=3), 3, state))
        for rank, batch in enumerate(step)
        for x in batch["x"]
    }
    assert len(read) == 5
    with pytest.raises(PlanError, match="not a multiple"):
        len(pipe.loader(rank=0, world_size=3))


@pytest.mark.parametrize(
    ("batch", "world"),
    [({"size": 3, "lanes": 4}, 2), ({"global_size": 8}, 3), ({"global_size": 8, "lanes": 4}, 16)],
    ids=["lanes", "world", "more ranks than rows"],
)
def test_where_no_run_can_be_there_are_no_reads_but_a_reason(batch: dict[str, int], world: int) -> None:
    pipe = fragments((400,)).shuffle(10).batch(**batch)  # type: ignore[arg-type]
    ranks = pipe.outline(world_size=world).ranks
    assert ranks is not None
    assert (ranks.lane_reads, ranks.fewest_reads, ranks.most_reads) == (None, None, None)
    with pytest.raises(PlanError) as caught:
        len(pipe.loader(rank=0, world_size=world))
    refusal = f"{caught.value.message.rstrip('.')}; {caught.value.hint}"
    assert refusal == f"{ranks.refusal}, or load the saved state first"
    assert "lane reads" not in pipe.explain(world_size=world)


def test_lanes_are_the_world_size_unless_they_are_asked_for() -> None:
    ranks = fragments((400,)).batch(8).outline(world_size=5).ranks
    assert ranks is not None
    assert (ranks.global_batch, ranks.lanes, ranks.lanes_asked, ranks.lane_reads) == (40, 5, False, 5)


# ---- windows


@given(recipes(functions=[*KEEPING, *CHANGING]), st.integers(0, 3))
def test_windows_are_those_of_the_first_pass_of_epoch_0(case: tuple[Recipe, int], seed: int) -> None:
    recipe, world = replace(case[0], seed=seed), case[1]
    found = recipe.pipe().outline(world_size=world).windows
    assert found is not None
    # What a filter on columns leaves out is not known before its pass.
    plain = replace(recipe, modulus=1)
    assert found.before_filters is (recipe.modulus > 1)
    assert found.fragments == len(plain._pieces)
    if not isinstance(recipe.window, int):
        assert found.windows is None
        return
    counts = [len(windows) for windows in plain.lane_windows(0, 0)]
    assert found.windows == sum(counts)
    assert (found.fewest_windows, found.most_windows) == (min(counts), max(counts))


@pytest.mark.parametrize("cheap", [True, False])
def test_fragments_longer_than_the_window_are_counted_with_their_slices(cheap: bool) -> None:
    pipe = fragments((10, 25, 10, 41), cheap=cheap).shuffle(10)
    found = pipe.outline().windows
    assert found is not None
    cut, other = (found.permuted, found.streamed) if cheap else (found.streamed, found.permuted)
    assert (cut.fragments, cut.slices) == (2, 3 + 5)
    assert (other.fragments, other.slices) == (0, 0)
    fate = "permuted like fragments" if cheap else "read one behind the other as a stream"
    assert f"  2 fragments longer than the window: 8 slices, {fate}" in pipe.explain().splitlines()


def test_of_two_kinds_of_sources_each_has_its_own_slices() -> None:
    joined = flow.concat(fragments((30, 5), cheap=True), fragments((40, 10), cheap=False)).shuffle(10)
    found = joined.outline().windows
    assert found is not None
    assert (found.permuted.fragments, found.permuted.slices) == (1, 3)
    assert (found.streamed.fragments, found.streamed.slices) == (1, 4)


@pytest.mark.parametrize("window", ["1kB", "5 kB", "64MB", 70, "8B"])
def test_a_window_in_bytes_is_the_rows_that_a_state_keeps(window: int | str) -> None:
    columns = {"x": np.zeros((500, 4)), "y": np.zeros(500)}
    pipe = flow.from_columns(columns).select("x").shuffle(window).batch(4)
    (shuffle,) = pipe.outline().shuffles
    with pipe.loader(output="numpy") as loader:
        assert [shuffle.window_rows] == loader.state_dict()["windows"]
    assert (shuffle.window, shuffle.counts_source_rows, shuffle.moves_past) == (window, False, ())


def _double(row: dict[str, Any]) -> dict[str, Any]:
    return {"x": 2 * row["x"]}


def _few(row: dict[str, Any]) -> bool:
    return bool(row["x"] % 3 == 0)


def _twice(row: dict[str, Any]) -> list[dict[str, Any]]:
    return [row, row]


TYPES = {"x": "int64"}


@pytest.mark.parametrize(
    ("pipe", "past", "source_rows"),
    [
        (fragments((40,)).rename({"x": "y"}).shuffle(8), (), False),
        (fragments((40,)).take(9).shuffle(8), (), False),
        (fragments((40,)).shuffle(8).filter([("x", ">", 3)]).map(_double), (), False),
        (fragments((40,)).map(_double).shuffle(8), ("map",), False),
        (fragments((40,)).filter([("x", ">", 3)]).shuffle(8), ("filter",), True),
        (fragments((40,)).filter(_few).map(_double).filter(_few).shuffle(8), ("filter", "map"), True),
        (fragments((40,)).split({"a": 0.5})["a"].shuffle(8), ("split",), True),
    ],
)
def test_a_shuffle_says_what_it_moves_past_and_what_its_window_counts(
    pipe: flow.Pipeline, past: tuple[str, ...], source_rows: bool
) -> None:
    (shuffle,) = pipe.outline().shuffles
    assert (shuffle.moves_past, shuffle.counts_source_rows) == (past, source_rows)
    assert not shuffle.permutes_outputs
    lines = pipe.explain().splitlines()
    assert any("its window counts source rows" in line for line in lines) is source_rows
    assert any("it moves to the source, past " + ", ".join(past) in line for line in lines) is bool(past)


def test_a_shuffle_behind_flat_map_permutes_what_windows_of_source_rows_gave() -> None:
    pipe = fragments((40,)).flat_map(_twice, schema=TYPES).shuffle(8).batch(4)
    (shuffle,) = pipe.outline().shuffles
    assert (shuffle.window_rows, shuffle.permutes_outputs, shuffle.counts_source_rows) == (8, True, True)
    windows = pipe.outline().windows
    assert windows is not None
    assert windows.windows == 5


def test_behind_a_shuffle_at_the_source_outputs_are_permuted_in_its_windows() -> None:
    for at_source, rows in ((20, 20), ("full", None)):
        pipe = fragments((5,) * 8).shuffle(at_source).flat_map(_twice, schema=TYPES).shuffle(20).batch(4)
        first, second = pipe.outline().shuffles
        assert (first.window_rows, first.permutes_outputs) == (rows, False)
        assert (second.window_rows, second.permutes_outputs) == (20, True)


def test_single_rows_have_no_windows() -> None:
    outline = fragments((40, 40)).shuffle("full").batch(8).outline()
    assert outline.windows is not None
    assert (outline.windows.windows, outline.shuffles[0].window_rows) == (None, None)


# ---- memory


@given(recipes())
def test_memory_is_what_a_loader_is_checked_for(case: tuple[Recipe, int]) -> None:
    # Padded, a run of any number of rows can begin.
    recipe, world = replace(case[0], modulus=1, remainder="pad"), case[1]
    pipe = recipe.pipe()
    found = pipe.outline(world_size=world).memory
    assert found is not None
    options = LoaderOptions(memory_limit=found.memory_limit, threads=found.threads)
    need = make_setup(pipe.node, recipe.seed, options, World(size=world)).budget
    assert (found.lanes, found.window_rows, found.row_bytes) == (
        need.lanes_here,
        need.window_rows,
        need.plan.row_bytes,
    )
    assert (found.overhead_bytes, found.resident_bytes) == (need.beside_bytes, round(need.resident_bytes))


def test_what_does_not_fit_by_default_has_the_figures_of_the_error(monkeypatch: pytest.MonkeyPatch) -> None:
    pipe = flow.from_columns({"x": np.zeros((2000, 1000))}).shuffle(2000).batch(8, lanes=4)
    monkeypatch.setattr(arguments, "default_memory_limit", lambda: 8_000_000)
    monkeypatch.setattr(arguments, "available_cores", lambda: 1)
    with pytest.raises(PlanError) as caught:
        pipe.loader(memory_limit="8MB", threads=1)
    needed = re.search(r"need (\d+ MB)", str(caught.value))
    assert needed is not None
    lines = [line.strip() for line in pipe.explain(world_size=1).splitlines()]
    assert f"resident on a rank: {needed[1]}" in lines
    assert "memory_limit: 8 MB" in lines
    assert any(line.startswith("too little") for line in lines)


# ---- what it costs, and where it must not fail


def _fails(*_: object) -> Any:
    raise AssertionError("explain runs no function")


def test_no_function_and_no_filter_is_run_and_no_row_is_read(tmp_path: Path) -> None:
    place = tmp_path / "rows.parquet"
    pq.write_table(pa.table({"x": range(100)}), place, row_group_size=10)
    taken = flow.read(place).filter([("x", "<", 50)]).take(60)
    pipe = taken.map(_fails).filter(_fails).flat_map(_fails).shuffle(20).batch(5)
    counted = flow.read(place).filter(_fails).counted().shuffle(20).batch(5)
    place.unlink()
    windows = pipe.outline().windows
    assert windows is not None
    assert (windows.fragments, windows.windows, windows.before_filters) == (10, 5, True)
    assert "all source rows count here" in counted.explain()


@given(recipes(functions=[*KEEPING, *CHANGING]), st.integers(1, 7))
def test_every_pipeline_explains_itself_for_any_number_of_ranks(case: tuple[Recipe, int], world: int) -> None:
    recipe, _ = case
    text = recipe.pipe().explain(world_size=world)
    assert "\nranks\n" in text
    rows = recipe.rows().explain(world_size=world)
    assert "\nranks\n" not in rows
    assert "\nmemory\n" not in rows
    facts = text[text.index("\nsources\n") :].splitlines()
    assert max(map(len, facts)) <= 110


def test_without_rows_it_says_so() -> None:
    outline = fragments((0,)).shuffle(3).batch(2, lanes=2).outline()
    assert outline.windows is not None
    assert (outline.windows.fragments, outline.windows.windows) == (0, 0)
    assert outline.sources[0].rows == 0


def test_zipped_inputs_with_filters_of_their_own_explain_themselves() -> None:
    kept = fragments((30, 10)).filter([("x", "<", 20)])
    others = fragments((25,), column="y").filter([("y", ">=", 5)])
    found = flow.zip(kept, others).shuffle(7).batch(4).outline().windows
    assert found is not None
    assert found.before_filters


def test_joined_inputs_whose_columns_only_functions_know_say_how_to_tell() -> None:
    pipe = flow.concat(fragments((8,)).map(_double), fragments((8,)).map(_double)).shuffle(4).batch(4)
    outline = pipe.outline()
    assert (outline.windows, outline.memory) == (None, None)
    assert outline.ranks is not None
    assert "schema=" in pipe.explain()
    told = flow.concat(fragments((8,)).map(_double, schema=TYPES), fragments((8,)))
    assert told.shuffle(4).batch(4).outline().memory is not None


@pytest.mark.parametrize("world", [0, -2])
def test_no_number_of_ranks_is_an_error(world: int) -> None:
    with pytest.raises(PlanError, match="no number of ranks") as caught:
        fragments((8,)).explain(world_size=world)
    assert "whole number from 1" in caught.value.hint
