"""`flat_map`: several rows, or none, of one; and the shuffle of what it gives."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from gathered import numbers, rows, values
from hypothesis import given, settings
from hypothesis import strategies as st

import dataflow as flow
from dataflow.errors import PlanError, StageError

Row = dict[str, Any]
SCHEMA = {"x": "int64", "copy": "int64"}


def _copies(row: Row) -> Iterator[Row]:
    for copy in range(int(row["x"]) % 4):
        yield {"x": row["x"], "copy": copy}


EXPECTED = [(x, copy) for x in range(20) for copy in range(x % 4)]


def _pairs(found: list[Row]) -> list[tuple[int, int]]:
    return [(row["x"], row["copy"]) for row in found]


def test_rows_take_the_place_of_their_row_in_order() -> None:
    assert _pairs(rows(numbers().flat_map(_copies))) == EXPECTED
    assert numbers().flat_map(_copies).count() == len(EXPECTED)
    assert numbers().flat_map(_copies).repeat(3).count() == 3 * len(EXPECTED)


def test_ids_have_the_number_of_the_row_in_its_call_at_every_level() -> None:
    pipe = numbers(8).flat_map(_copies).flat_map(lambda row: [row, row]).batch(1)
    with pipe.loader(output="numpy", ids=True) as loader:
        ids = [batch["__id__"][0].tolist() for batch in loader]
    assert ids == [[x, copy, again] for x in range(8) for copy in range(x % 4) for again in range(2)]


@given(window=st.integers(1, 25), lanes=st.integers(1, 3), epoch=st.integers(0, 2))
@settings(max_examples=30)
def test_a_shuffle_behind_it_permutes_what_each_window_gave(window: int, lanes: int, epoch: int) -> None:
    pipe = numbers().flat_map(_copies, schema=SCHEMA).shuffle(window)
    with pipe.batch(global_size=lanes, lanes=lanes, remainder="keep").loader(output="numpy") as loader:
        loader.set_epoch(epoch)
        found = [
            pair for batch in loader for pair in zip(batch["x"].tolist(), batch["copy"].tolist(), strict=True)
        ]
    assert Counter(found) == Counter(EXPECTED)
    if lanes == 1:
        at = 0
        for first in range(0, 20, window):
            part = [pair for pair in EXPECTED if first <= pair[0] < first + window]
            assert Counter(found[at : at + len(part)]) == Counter(part)
            at += len(part)


def test_such_a_shuffle_mixes_and_gives_another_order_in_every_epoch() -> None:
    pipe = numbers().flat_map(_copies, schema=SCHEMA).shuffle(100)
    orders = [_pairs(rows(pipe, epoch)) for epoch in range(3)]
    assert len({tuple(order) for order in [*orders, EXPECTED]}) == 4


def test_draws_are_the_source_rows_own() -> None:
    def draw(row: Row, rng: np.random.Generator) -> list[Row]:
        return [{"x": row["x"], "drawn": rng.integers(1 << 40)}] * int(rng.integers(3))

    schema = {"x": "int64", "drawn": "int64"}
    plain = rows(numbers().flat_map(draw, rng=True, schema=schema))
    mixed = rows(numbers().shuffle(5).flat_map(draw, rng=True, schema=schema))
    key = lambda row: (row["x"], row["drawn"])  # noqa: E731
    assert sorted(mixed, key=key) == sorted(plain, key=key)
    assert mixed != plain
    assert rows(numbers().flat_map(draw, rng=True, schema=schema), epoch=1) != plain


@pytest.mark.parametrize("returned", [{"x": 1}, 7, [7], [["x"]], None])
def test_a_result_that_is_no_list_of_rows_is_an_error_that_names_the_function(returned: Any) -> None:
    with pytest.raises(StageError, match=r"flat_map\(test_flat_map:") as caught:
        values(numbers().flat_map(lambda row: returned, schema={"x": "int64"}))
    assert "list of dicts" in caught.value.hint


def test_a_function_that_gives_nothing_at_first_needs_a_schema() -> None:
    def late(row: Row) -> list[Row]:
        return [row] if row["x"] >= 17 else []

    with pytest.raises(PlanError, match="no row for the first") as caught:
        numbers().flat_map(late).batch(1).loader()
    assert "schema" in caught.value.hint
    assert values(numbers().flat_map(late, schema={"x": "int64"})) == [17, 18, 19]


@pytest.mark.parametrize("verb", ["take", "skip"])
def test_counting_rows_behind_it_is_a_plan_error_that_says_where_to_put_it(verb: str) -> None:
    with pytest.raises(PlanError, match=f"{verb}.*flat_map") as caught:
        getattr(numbers().flat_map(_copies, schema=SCHEMA), verb)(3).batch(1).loader()
    assert f"put {verb} in front" in caught.value.hint


def test_full_shuffles_and_second_shuffles_behind_it_are_plan_errors() -> None:
    many = numbers().flat_map(_copies, schema=SCHEMA)
    with pytest.raises(PlanError, match="full"):
        many.shuffle("full").batch(1).loader()
    with pytest.raises(PlanError, match="shuffle"):
        many.shuffle(3).shuffle(3).batch(1).loader()


def test_no_function_is_a_plan_error_when_written() -> None:
    with pytest.raises(PlanError, match="no function"):
        numbers().flat_map([1])  # type: ignore[arg-type]


def test_every_output_has_a_random_stream_of_its_own_at_every_level() -> None:
    def twice(row: Row) -> list[Row]:
        return [{"x": row["x"]}] * 2

    def drawn(row: Row, rng: np.random.Generator) -> Row:
        return {"drawn": rng.integers(1 << 60)}

    def drawn_twice(row: Row, rng: np.random.Generator) -> list[Row]:
        return [{"drawn": rng.integers(1 << 60)} for _ in range(2)]

    one = {"x": "int64"}
    nested = numbers(4).flat_map(twice, schema=one).flat_map(twice, schema=one)
    single = values(nested.map(drawn, rng=True, schema={"drawn": "int64"}), "drawn")
    assert len(set(single)) == len(single) == 16
    again = values(nested.flat_map(drawn_twice, rng=True, schema={"drawn": "int64"}), "drawn")
    assert len(set(again)) == len(again) == 32
    beside = flow.zip(numbers(4), numbers(4, column="y")).flat_map(twice, schema=one)
    zipped = values(beside.map(drawn, rng=True, schema={"drawn": "int64"}), "drawn")
    assert len(set(zipped)) == len(zipped) == 8


def test_a_shuffle_mixes_the_outputs_of_every_level_and_of_a_zip() -> None:
    def three(row: Row) -> list[Row]:
        return [{"x": int(row["x"]) * 3 + place} for place in range(3)]

    one = {"x": "int64"}
    beside = flow.zip(numbers(40), numbers(40, column="y"))
    for source in (numbers(40), beside):
        pipe = source.flat_map(three, schema=one).flat_map(three, schema=one).shuffle(40)
        found = values(pipe)
        assert sorted(found) == list(range(360))
        # Outputs of one row, and of one output, lie apart: by chance about 3 of 359 pairs stay in place.
        assert sum(later - former == 1 for former, later in pairwise(found)) < 20


def test_rows_of_other_columns_than_the_schema_are_a_stage_error_that_names_the_function() -> None:
    def wrong(row: Row) -> list[Row]:
        return [{"x": row["x"]}]

    for schema in (SCHEMA, {"copy": "int64"}):
        with pytest.raises(StageError, match="wrong") as caught:
            rows(numbers().flat_map(wrong, schema=schema))
        assert caught.value.hint


@pytest.mark.parametrize("lanes", [1, 2])
def test_batches_have_rows_of_a_concat_whose_branches_have_ids_of_several_shapes(lanes: int) -> None:
    several = numbers(400).flat_map(lambda row: [row] * 2, schema={"x": "int64"})
    pipe = flow.concat(several, numbers(400, first=400)).batch(global_size=6, lanes=lanes, remainder="keep")
    with pipe.loader(output="numpy", ids=True) as loader:
        batches = list(loader)
    assert {batch["__id__"].shape[1:] for batch in batches} == {(2,)}
    found = sorted(value for batch in batches for value in batch["x"].tolist())
    assert found == sorted([*range(400), *range(800)])
