"""`filter`: by function, by expression, by terms; counted beforehand or not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from gathered import numbers, rows, values
from hypothesis import given, settings
from hypothesis import strategies as st

import dataflow as flow
from dataflow.errors import PlanError, StageError


@given(
    low=st.integers(-2, 22), window=st.sampled_from([None, 1, 6, 50]), passes=st.integers(1, 2),
    take=st.none() | st.integers(1, 20),
)  # fmt: skip
@settings(max_examples=30)
def test_all_kinds_of_condition_keep_the_same_rows(
    low: int, window: Any, passes: int, take: int | None
) -> None:
    source = numbers(20) if take is None else numbers(20).take(take)
    if window is not None:
        source = source.shuffle(window)
    if passes > 1:
        source = source.repeat(passes)
    by_function = source.filter(lambda row: row["x"] >= low)
    kinds = [
        by_function, source.filter([("x", ">=", low)]), source.filter(pc.field("x") >= low),
        source.filter(lambda columns: columns["x"] >= low, batched=True), by_function.counted(),
    ]  # fmt: skip
    kept = [value for value in range(20 if take is None else take) if value >= low]
    assert {kind.count() for kind in kinds} == {passes * len(kept)}
    if kept:
        orders = [values(kind) for kind in kinds]
        assert sorted(orders[0]) == sorted(kept * passes)
        assert all(order == orders[0] for order in orders)


@pytest.mark.parametrize(
    ("terms", "kept"),
    [
        ([("x", "==", 3)], [3]),
        ([("x", "=", 3)], [3]),
        ([("x", "!=", 3), ("x", "<", 5)], [0, 1, 2, 4]),
        ([("x", "in", [1, 18, 99])], [1, 18]),
        ([("x", "not in", list(range(19)))], [19]),
        ([[("x", "<", 1)], [("x", ">", 18)]], [0, 19]),
    ],
)
def test_terms_are_an_and_and_lists_of_terms_an_or(terms: Any, kept: list[int]) -> None:
    assert values(numbers().filter(terms)) == kept


# The stubs of pyarrow know no null among its scalars.
NULL: Any = pc.scalar(None)  # type: ignore[arg-type]
TYPED_NULL: Any = pc.scalar(pa.scalar(None, pa.int64()))  # type: ignore[arg-type]
WITH_NULLS = pa.table({"x": [0, None, 2, 3], "s": ["a", "b", None, "!= null["]})


@pytest.mark.parametrize(
    ("condition", "kept"),
    [
        ([("x", "!=", None)], ["a", None, "!= null["]),
        ([("x", "==", None)], ["b"]),
        ([("x", "=", None)], ["b"]),
        ([[("x", "==", None)], [("s", "==", None), ("x", ">", 1)]], ["b", None]),
        ([("x", "in", [None, 3])], ["b", "!= null["]),
        (~pc.field("x").is_null() & (pc.field("s") != "!= null["), ["a"]),
        (pc.field("s") == "!= null[", ["!= null["]),
        (pc.if_else(pc.field("x") > 0, pc.field("x"), NULL).is_null(), ["a", "b"]),
    ],
)
def test_nulls_are_kept_or_left_out_where_they_are_asked_for(condition: Any, kept: list[str | None]) -> None:
    assert [row["s"] for row in rows(flow.from_arrow(WITH_NULLS).filter(condition))] == kept


@pytest.mark.parametrize(
    "condition",
    [
        pc.field("x") != None,  # noqa: E711
        pc.field("x") == None,  # noqa: E711
        (pc.field("s") == "a") & ~(pc.field("x") != NULL),
        pc.field("x") == NULL,
        pc.equal(pc.field("x"), TYPED_NULL),
        [("x", "<", None)],
    ],
)
def test_a_comparison_with_none_that_holds_for_no_row_is_an_error(condition: Any) -> None:
    with pytest.raises(PlanError, match="None") as caught:
        flow.from_arrow(WITH_NULLS).filter(condition)
    assert "is_null()" in caught.value.hint or "'=='" in caught.value.hint


@pytest.mark.parametrize(
    ("condition", "named"),
    [
        ([("x", "~", 3)], "'~' is no operator"),
        ([("y", ">", 3)], "no column 'y'"),
        (pc.field("xx") > 3, "no column 'xx'"),
        ([("x", ">", "three")], "cannot be evaluated"),
        ([("x", ">")], "no condition"),
        ("x > 3", "no condition"),
        (7, "no condition"),
        ([], "no condition"),
    ],
)
def test_a_wrong_condition_fails_when_written(condition: Any, named: str) -> None:
    with pytest.raises(PlanError, match=named) as caught:
        numbers().filter(condition)
    assert caught.value.hint


def test_rows_are_kept_beside_tensors_that_name_the_order_of_their_axes() -> None:
    images: Any = pa.FixedShapeTensorArray.from_numpy_ndarray(np.zeros((4, 2, 3), np.uint8))
    pipe = flow.from_arrow(pa.table({"x": range(4), "image": images}))
    assert values(pipe.filter([("x", ">", 1)])) == [2, 3]


def test_batched_is_for_functions() -> None:
    with pytest.raises(PlanError, match="for functions"):
        numbers().filter([("x", ">", 3)], batched=True)


def test_a_null_is_not_kept_by_an_expression_nor_by_its_opposite() -> None:
    source = flow.from_arrow(pa.table({"x": pa.array([1, None, 3, None], pa.int64())}))
    assert values(source.filter([("x", ">", 1)])) == [3]
    assert values(source.filter([("x", "<=", 1)])) == [1]
    assert source.filter(lambda row: row["x"] is None).count() == 2


def test_a_filter_on_what_a_function_made_is_evaluated_behind_it() -> None:
    made = numbers().map(
        lambda row: {"x": row["x"], "half": row["x"] // 2}, schema={"x": "int64", "half": "int64"}
    )
    pipe = made.filter([("half", "==", 4)])
    assert values(pipe) == [8, 9]
    with pipe.batch(1).loader() as loader, pytest.raises(TypeError):
        len(loader)


def test_a_filter_on_a_column_that_a_function_leaves_alone_gives_a_known_length() -> None:
    pipe = (
        numbers()
        .map(lambda row: {"half": row["x"] // 2}, add=True, schema={"half": "int64"})
        .filter([("x", ">", 15)])
    )
    with pipe.batch(1).loader() as loader:
        assert len(loader) == 4
    assert rows(pipe) == [{"x": x, "half": x // 2} for x in range(16, 20)]


def test_a_filter_does_not_change_the_draws_of_the_rows_it_keeps() -> None:
    def draw(row: dict[str, Any], rng: np.random.Generator) -> dict[str, Any]:
        return {"drawn": rng.integers(1 << 40)}

    drawn = numbers().map(draw, rng=True, add=True, schema={"drawn": "int64"})
    every = values(drawn, "drawn")
    assert values(drawn.filter([("x", ">", 15)]), "drawn") == every[16:]
    assert values(drawn.filter(lambda row: row["x"] > 15), "drawn") == every[16:]
    assert (
        values(numbers().filter([("x", ">", 15)]).map(draw, rng=True, schema={"drawn": "int64"}), "drawn")
        == every[16:]
    )


def test_a_filter_over_inputs_whose_types_were_widened_keeps_rows_of_each() -> None:
    small = flow.from_columns({"x": np.arange(5, dtype=np.int8)})
    both = flow.concat(small, numbers(5, first=298))
    assert values(both.filter([("x", "in", [3, 300])])) == [3, 300]
    assert values(both.filter([("x", "==", 300)])) == [300]


def test_a_batched_function_must_return_one_flag_a_row() -> None:
    for wrong in (lambda columns: columns["x"], lambda columns: [True], lambda columns: True):
        with pytest.raises(StageError, match="not bool"):
            values(numbers().filter(wrong, batched=True))


def test_counted_runs_a_function_once_a_row_beforehand_and_never_again() -> None:
    calls: list[int] = []

    def odd(row: dict[str, Any]) -> bool:
        calls.append(int(row["x"]))
        return bool(row["x"] % 2)

    pipe = numbers().filter(odd).counted().batch(2)
    assert calls == []
    with pipe.loader(output="numpy") as loader:
        assert sorted(calls) == list(range(20))
        assert len(loader) == 5
        assert [batch["x"].tolist() for batch in loader] == [[1, 3], [5, 7], [9, 11], [13, 15], [17, 19]]
        assert len(list(loader)) == 5
    assert sorted(calls) == list(range(20))


def test_counted_behind_a_random_or_multiplying_operator_is_a_plan_error() -> None:
    drawn = numbers().map(lambda row, rng: {"x": rng.integers(9)}, rng=True).filter(lambda row: True)
    many = numbers().flat_map(lambda row: [row]).filter(lambda row: True)
    for pipe in (drawn, many):
        with pytest.raises(PlanError, match="counted") as caught:
            pipe.counted()
        assert "in front" in caught.value.hint


@pytest.mark.parametrize("as_terms", [True, False])
@pytest.mark.parametrize("kind", [int, str])
def test_conditions_whose_long_lists_differ_only_in_the_middle_keep_different_rows(
    tmp_path: Path, as_terms: bool, kind: type[int] | type[str]
) -> None:
    one = [kind(value) for value in range(100)]
    other = [*one[:50], kind(300), *one[51:]]
    pq.write_table(pa.table({"x": [kind(value) for value in range(400)]}), tmp_path / "a.parquet")

    def kept(listed: list[Any]) -> list[Any]:
        # Made anew each time, so that what is kept on disk of the one may be found for the other.
        condition: Any = [("x", "in", listed)] if as_terms else pc.field("x").isin(listed)
        return values(flow.read(tmp_path / "a.parquet").filter(condition))

    assert kept(one) == one
    assert kept(other) == [*one[:50], *one[51:], kind(300)]
    assert kept(one) == one


def test_counted_works_behind_a_function_whose_columns_are_not_known() -> None:
    pipe = numbers().map(lambda row: {"y": row["x"] + 1}).filter(lambda row: row["y"] % 5 == 0).counted()
    assert pipe.count() == 4
    assert values(pipe, "y") == [5, 10, 15, 20]


def test_counted_behind_counted_reads_the_columns_of_both() -> None:
    source = flow.from_columns({"x": np.arange(30), "y": np.arange(30) % 2, "z": np.arange(30) % 3})
    once = source.filter(lambda row: row["y"] == 0).counted()
    twice = once.filter(lambda row: row["z"] == 0).counted().select("x")
    assert values(twice) == [0, 6, 12, 18, 24]


@pytest.mark.parametrize("batched", [True, False])
def test_count_says_that_a_function_failed(batched: bool) -> None:
    def keep(given: dict[str, Any]) -> Any:
        if np.any(given["x"] == 7):
            raise ValueError("boom")
        return given["x"] >= 0

    with pytest.raises(StageError, match="ValueError: boom") as caught:
        numbers(5000).filter(keep, batched=batched).count()
    assert caught.value.hint


@pytest.mark.parametrize("threads", [1, 3])
def test_a_batched_condition_gets_fixed_blocks_of_its_size(threads: int) -> None:
    seen: set[tuple[int, ...]] = set()

    def look(columns: dict[str, Any]) -> Any:
        seen.add(tuple(columns["x"].tolist()))
        return columns["x"] % 2 == 0

    pipe = numbers(100).filter(look, batched=True, batch_size=30)
    for kind in (pipe.batch(5), pipe.counted().batch(5)):
        seen.clear()
        with kind.loader(output="numpy", threads=threads) as loader:
            assert len(list(loader)) == 10
        assert seen == {tuple(range(start, min(100, start + 30))) for start in range(0, 100, 30)}


@pytest.mark.parametrize("size", [0, -1, 1.5, True, None])
def test_what_is_no_size_of_blocks_is_a_plan_error_when_written(size: Any) -> None:
    with pytest.raises(PlanError, match="batch_size") as caught:
        numbers().filter(lambda columns: columns["x"] > 3, batched=True, batch_size=size)
    assert caught.value.hint
