"""The operators below `batch`: which of them are work, and what must be known of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest

import dataflow as flow
from dataflow.errors import PlanError
from dataflow.execute.compile import compile_plan
from dataflow.execute.program import compile_program
from dataflow.graph.block import Block
from dataflow.graph.draw import Draw
from dataflow.graph.node import Node, Traits
from dataflow.options import OnError

SOURCE = flow.from_columns({"x": np.arange(8), "y": np.arange(8)})


@dataclass(frozen=True, kw_only=True, eq=False)
class Double(Node):
    """Twice `x`, also behind batch."""

    @property
    def traits(self) -> Traits:
        names = frozenset(["x"])
        return Traits(kernel=True, after_batch=True, reads=names, writes=names)

    def apply(self, block: Block, draw: Draw) -> Block:
        return block.with_columns({**block.columns, "x": block.columns["x"] * 2})


@pytest.mark.parametrize(
    "behind",
    [
        lambda pipe: pipe.select("x"),
        lambda pipe: pipe.drop("y"),
        lambda pipe: pipe.rename({"x": "z"}),
        lambda pipe: pipe.filter([("x", ">", 1)]).select("y"),
    ],
)
def test_picking_and_naming_columns_is_no_work(behind: Callable[[flow.Pipeline], flow.Pipeline]) -> None:
    assert compile_plan(behind(SOURCE).node, 0).program.bare


def test_a_step_that_changes_values_is_work_though_it_may_stand_behind_batch() -> None:
    pipe = SOURCE.then(Double()).shuffle(4)
    assert not compile_plan(pipe.node, 0).program.bare
    (facts,) = pipe.outline().shuffles
    assert facts.moves_past == (Double.kind,)
    with SOURCE.batch(8).then(Double()).loader(output="numpy") as loader:
        (batch,) = loader
    assert batch["x"].tolist() == [0, 2, 4, 6, 8, 10, 12, 14]


def test_a_concat_of_columns_that_nobody_knows_is_the_fault_of_the_pipeline() -> None:
    unknown = SOURCE.map(lambda row: row)
    with pytest.raises(PlanError, match=r"concat: the columns of its input map.* are not known") as caught:
        compile_program(flow.concat(SOURCE, unknown).node)
    assert "schema=" in caught.value.hint


@pytest.mark.parametrize("on_error", ["raise", "replace"])
def test_only_leaving_out_bad_rows_leaves_the_length_open(on_error: OnError) -> None:
    with SOURCE.batch(2).loader(on_error=on_error) as loader:
        assert len(loader) == 4
    with SOURCE.batch(2).loader(on_error="skip") as skipping, pytest.raises(TypeError):
        len(skipping)
