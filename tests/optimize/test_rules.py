"""The plan rules: each does what it says, none changes the rows, their order or their draws."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dataflow as flow
from dataflow.graph.node import Node, walk
from dataflow.optimize.rules import RULES, optimize

Step = tuple[str, Any]


def _source() -> flow.Pipeline:
    rows = np.arange(30)
    return flow.from_columns({"a": rows, "b": rows * 2, "c": rows * 0.5, "d": [f"{row}" for row in rows]})


def _kinds(node: Node) -> list[str]:
    return [step.kind for step in walk(node)]


def _columns_read(node: Node) -> set[str]:
    return {
        name
        for step in walk(node)
        if step.source is not None and step.schema is not None
        for name in step.schema.names
    }


def test_only_columns_that_something_needs_are_read() -> None:
    assert _columns_read(optimize(_source().select("a").node)) == {"a"}
    assert _columns_read(optimize(_source().drop("b", "c").node)) == {"a", "d"}
    assert _columns_read(optimize(_source().rename({"a": "z"}).select("z", "c").node)) == {"a", "c"}
    assert _columns_read(optimize(_source().map(dict).node)) == {"a", "b", "c", "d"}


def test_a_filter_by_expression_reaches_the_source_and_needs_its_column_no_longer() -> None:
    node = optimize(
        _source().shuffle(5).select("a", "b").rename({"a": "z"}).filter([("b", ">", 3)]).select("z").node
    )
    filters = [step for step in walk(node) if step.traits.filters]
    assert [step.traits.selects for step in filters] == [True]
    assert _kinds(filters[0])[:2] == ["read", "filter"]
    assert _columns_read(node) == {"a"}


@pytest.mark.parametrize(
    "pipe",
    [
        lambda: _source().map(lambda row: {"a": row["a"]}, schema={"a": "int64"}).filter([("a", ">", 3)]),
        lambda: _source().cast({"a": "float64"}).filter([("a", ">", 3.5)]),
        lambda: _source().rename({"a": "z"}).filter([("z", ">", 3)]),
        lambda: _source().filter(lambda row: True).filter([("a", ">", 3)]),
        lambda: _source().take(10).filter([("a", ">", 3)]),
    ],
)
def test_a_filter_does_not_pass_what_it_depends_on(pipe: Any) -> None:
    conditions = [
        step for step in walk(optimize(pipe().node)) if step.traits.filters and step.expression is not None
    ]
    assert [step.input.kind != "read" for step in conditions] == [True]


def test_neighbours_that_pick_or_name_columns_become_one_step() -> None:
    node = optimize(_source().rename({"a": "x"}).rename({"x": "y"}).select("y", "b").select("y").node)
    assert _kinds(node).count("rename") == 1
    assert _kinds(node).count("select") <= 1


def test_draws_are_named_before_any_rule_can_move_them() -> None:
    def draw(row: dict[str, Any], rng: np.random.Generator) -> dict[str, Any]:
        return {**row, "drawn": rng.random()}

    node = optimize(_source().map(draw, rng=True).map(draw, rng=True, key="mine").map(draw, rng=True).node)
    assert [step.key for step in walk(node) if step.traits.random] == ["map:0", "mine", "map:2"]


def test_a_shuffle_behind_flat_map_becomes_one_of_outputs() -> None:
    many = _source().flat_map(lambda row: [row], schema={"a": "int64"})
    assert "output_shuffle" in _kinds(optimize(many.shuffle(5).node))
    assert "shuffle" not in _kinds(optimize(many.shuffle(5).node))
    kinds = _kinds(optimize(_source().shuffle(5).flat_map(lambda row: [row], schema={"a": "int64"}).node))
    assert "output_shuffle" not in kinds


def test_a_misplaced_shuffle_of_outputs_names_the_step_that_it_stands_behind() -> None:
    many = _source().flat_map(_one, schema={"a": "int64"})
    with pytest.raises(flow.PlanError, match=r"shuffle of what flat_map\(function=_one, .*\) gave"):
        many.shuffle(5).flat_map(_one, schema={"a": "int64"}).shuffle(5)
    with pytest.raises(flow.PlanError, match=r"behind flat_map\(function=_one, .*\) permutes"):
        _source().shuffle(4).flat_map(_one, schema={"a": "int64"}).shuffle(5)


def _one(row: dict[str, Any]) -> list[dict[str, Any]]:
    return [row]


def test_rules_leave_the_pipeline_that_was_written_alone() -> None:
    pipe = _source().shuffle(5).filter([("b", ">", 3)]).select("a")
    before = repr(pipe)
    optimize(pipe.node)
    assert repr(pipe) == before


_STEPS = st.sampled_from(
    [
        ("select", ("a", "b")), ("select", ("b", "a", "c")), ("drop", ("d",)), ("rename", ({"c": "e"},)),
        ("cast", ({"b": "float32"},)), ("filter", ([("a", ">", 4)],)), ("filter", ([("b", "<", 50)],)),
        ("take", (20,)), ("skip", (2,)), ("shuffle", (6,)), ("repeat", (2,)),
        ("filter", (lambda row: row["a"] % 3 > 0,)),
        ("map", (lambda row, rng: {**row, "a": row["a"], "drawn": rng.random()},)),
    ]
)  # fmt: skip


def _delivered(pipe: flow.Pipeline) -> list[dict[str, Any]]:
    with pipe.batch(3, remainder="keep").loader(output="arrow", ids=True) as loader:
        found: list[dict[str, Any]] = pa.Table.from_batches(list(loader)).to_pylist()
    return found


@given(st.lists(_STEPS, max_size=6))
@settings(max_examples=20)
def test_all_rules_together_change_no_row_no_order_and_no_draw(steps: list[Step]) -> None:
    pipe: flow.Pipeline = _source()
    for step in steps:
        longer = _tried(pipe, step)
        pipe = longer if longer is not None else pipe
    assert _delivered(pipe) == _delivered_without_rules(pipe)


def _delivered_without_rules(pipe: flow.Pipeline) -> list[dict[str, Any]]:
    with pytest.MonkeyPatch.context() as patch:
        # What a plan cannot do without: names of draws, and for `take` behind a filter its rows as index work.
        for rules in (RULES[:1], RULES[:2]):
            patch.setattr("dataflow.optimize.rules.RULES", rules)
            try:
                return _delivered(pipe)
            except flow.PlanError:
                continue
    raise AssertionError("a pipeline that only the rules make possible")


def _tried(pipe: flow.Pipeline, step: Step) -> flow.Pipeline | None:
    name, arguments = step
    try:
        made: flow.Pipeline = getattr(pipe, name)(*arguments, **({"rng": True} if name == "map" else {}))
        made.batch(1, remainder="keep").loader().close()
    except flow.PlanError:
        return None
    return made
