"""Every operator that users may write keeps the contract of `dataflow/graph/node.py`; see `operator_cases/`."""

from __future__ import annotations

import itertools
import pickle
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from meeting import meeting_loaders
from operator_case import OperatorCase, cases, write_sources
from recipes import delivered, json_copy, loaders

import dataflow as flow
import dataflow.ops
from connectors.tensors import shape_of, to_arrow
from dataflow.execute.compile import Plan, compile_plan
from dataflow.execute.loader import Loader
from dataflow.execute.sample import FileOrder
from dataflow.graph.block import Block, Column, as_arrow, concat_blocks
from dataflow.graph.draw import Draw
from dataflow.graph.node import Node, makes_batches, walk
from dataflow.graph.registry import node_kinds

# Of 15 rows: batches that one, two and three ranks share, and a last one that is not full.
_BATCH = 6
_CASES = cases()
_LITTLE_MEMORY = "16MB"
# One row as NumPy gives it: its columns by name, each with what is in it, to the byte.
Row = tuple[tuple[str, object], ...]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("sources")
    write_sources(made)
    return made


@pytest.fixture(params=_CASES, ids=str, scope="module")
def case(request: pytest.FixtureRequest) -> OperatorCase:
    found: OperatorCase = request.param
    return found


@pytest.fixture(scope="module")
def pipe(case: OperatorCase, folder: Path) -> flow.Pipeline:
    return case.build(folder)


@dataclass(frozen=True)
class Whole:
    """What one rank delivers on one thread, and the states in front of epoch 0 and behind each of its steps."""

    steps: list[list[Row]]
    start: dict[str, Any]
    states: list[dict[str, Any]]
    next_epoch: list[list[Row]]
    again: list[Row]  # the first step of epoch 0


@pytest.fixture(scope="module")
def whole(pipe: flow.Pipeline) -> Whole:
    steps, states = [], []
    with batched(pipe).loader(output="numpy", ids=True, threads=1) as loader:
        start = loader.state_dict()
        for batch in loader:
            steps.append(rows_of(batch))
            states.append(json_copy(loader.state_dict()))
        next_epoch = [rows_of(batch) for batch in loader]
        loader.set_epoch(0)
        again = rows_of(next(iter(loader)))
    return Whole(steps, start, states, next_epoch, again)


@pytest.fixture(scope="module")
def every(pipe: flow.Pipeline) -> Block:
    return in_file_order(pipe)


# ---- what is delivered


def batched(pipe: flow.Pipeline, lanes: int = 3) -> flow.Pipeline:
    """The pipeline with batches, where it has none."""
    if makes_batches(pipe.node):
        return pipe
    return pipe.batch(global_size=_BATCH, lanes=lanes, remainder="pad")


def planned(pipe: flow.Pipeline) -> Plan:
    return compile_plan(pipe.node, pipe.seed_value or 0)


def in_file_order(pipe: flow.Pipeline) -> Block:
    """All rows of the first pass of epoch 0, in one block, whatever shuffles them."""
    plan = planned(pipe)
    return FileOrder(plan.root, plan.stream, plan.seed).read(0, plan.stream.n)


def known(pipe: flow.Pipeline) -> bool:
    """Whether the number of rows is known beforehand, so that ranks need not talk."""
    return planned(pipe).lengths_known


def ranks_of(pipe: flow.Pipeline, world: int) -> list[Loader[Any]]:
    return loaders(pipe, world, threads=1) if known(pipe) else meeting_loaders(pipe, world)


def exact(value: object) -> object:
    """A value with its type and its bytes, which compares and has an order among its like."""
    if isinstance(value, np.ndarray) and value.dtype != object:
        return str(value.dtype), value.shape, value.tobytes()
    if isinstance(value, list | np.ndarray):
        return tuple(map(exact, value))
    return type(value).__name__, repr(value)


def rows_of(batch: dict[str, Any]) -> list[Row]:
    """The rows of a NumPy batch."""
    return [tuple(zip(batch, row, strict=True)) for row in zip(*map(_values, batch.values()), strict=True)]


def _values(column: Any) -> list[object]:
    # A one-dimensional array gives scalars, which have no bytes of their own to look at.
    cut = [column[row : row + 1] for row in range(len(column))]
    return [exact(value) for value in cut]


def steps_of(ranks: Sequence[Loader[Any]], epochs: int = 1) -> list[list[Row]]:
    """The rows of every global batch, those of the first rank first."""
    return [[row for batch in step for row in rows_of(batch)] for step in delivered(ranks, epochs)]


def real(steps: Sequence[Sequence[Row]]) -> list[Row]:
    """The rows of all batches in an order that lanes do not change, without those that only fill the last one."""
    rows = [dict(row) for step in steps for row in step]
    padding = exact(np.array([False]))
    kept = [row for row in rows if row.pop("__valid__", None) != padding]
    return sorted((tuple(row.items()) for row in kept), key=repr)


# ---- the contract


def test_every_operator_has_a_case() -> None:
    package = dataflow.ops.__name__
    kinds = {name: kind for name, kind in node_kinds().items() if kind.__module__.startswith(f"{package}.")}
    written = {name for name, kind in kinds.items() if kind.in_specs}
    assert {case.operator for case in _CASES} == written


def test_a_restore_behind_any_step_yields_the_same_rest_on_any_threads_in_any_memory(
    pipe: flow.Pipeline, whole: Whole
) -> None:
    options: dict[str, Any] = {"output": "numpy", "ids": True, "threads": 2, "memory_limit": _LITTLE_MEMORY}
    with batched(pipe).loader(**options) as loader:
        for place, state in enumerate(whole.states):
            loader.load_state_dict(state)
            rest = [rows_of(batch) for batch in loader]
            assert rest == (whole.steps[place + 1 :] or whole.next_epoch), place


def test_epochs_differ_where_something_draws_and_can_be_gone_through_again(
    pipe: flow.Pipeline, whole: Whole
) -> None:
    draws = any(step.traits.random or step.traits.shuffles for step in walk(pipe.node))
    assert (whole.steps != whole.next_epoch) == draws
    assert whole.again == whole.steps[0]


def test_ranks_change_no_batch(pipe: flow.Pipeline, whole: Whole) -> None:
    if pipe.node.traits.combines:
        pytest.skip("it mixes the rows of each rank")
    assert steps_of(ranks_of(batched(pipe), 3)) == whole.steps


def test_lanes_change_no_row(pipe: flow.Pipeline, whole: Whole) -> None:
    if makes_batches(pipe.node):
        pytest.skip("the lanes are its own")
    if any(step.traits.random and step.traits.chunk for step in walk(pipe.node)):
        pytest.skip("draws of a block are its own, and blocks are those of a window, so of a lane")
    assert real(steps_of(ranks_of(batched(pipe, lanes=1), 2))) == real(whole.steps)


def test_what_comes_out_has_the_names_and_types_that_are_declared(pipe: flow.Pipeline) -> None:
    declared = planned(pipe).schema if not makes_batches(pipe.node) else pipe.schema
    assert declared is not None
    assert pipe.schema is None or pipe.schema == declared
    with batched(pipe).loader(output="arrow", threads=1) as loader:
        batch = next(iter(loader))
    names = [name for name in batch.schema.names if name != "__valid__"]
    assert batch.select(names).schema.equals(declared, check_metadata=True)
    batch.validate(full=True)


def test_a_spec_that_is_written_and_read_gives_the_same(
    pipe: flow.Pipeline, every: Block, whole: Whole
) -> None:
    again = flow.load_spec(json_copy(pipe.to_spec()), allow_modules=["operator_cases"])
    assert again.to_spec() == pipe.to_spec()
    assert_alike(again, every, whole)


def test_a_pickled_pipeline_gives_the_same(pipe: flow.Pipeline, every: Block, whole: Whole) -> None:
    assert_alike(pickle.loads(pickle.dumps(pipe)), every, whole)


def assert_alike(pipe: flow.Pipeline, every: Block, whole: Whole) -> None:
    """Check that a pipeline gives these rows; that it does so in the same order is what its state says."""
    assert same(in_file_order(pipe), every)
    with batched(pipe).loader(output="numpy", ids=True, threads=1) as loader:
        assert loader.state_dict() == whole.start


def test_a_column_that_is_asked_for_alone_is_the_same(pipe: flow.Pipeline, every: Block) -> None:
    if makes_batches(pipe.node):
        pytest.skip("columns are chosen in front of batch")
    for name in every.columns:
        assert same(in_file_order(pipe.select(name)), only(every, [name]))


def test_a_step_behind_batch_does_there_what_it_does_in_front_of_it(
    pipe: flow.Pipeline, whole: Whole
) -> None:
    step = pipe.node
    if not step.inputs or not step.traits.after_batch or step.traits.combines:
        pytest.skip("it may not stand in both places")
    behind = batched(replace(pipe, node=step.input)).then(step)
    assert steps_of(loaders(behind, 1)) == whole.steps


# ---- the contract of a kernel


@dataclass(frozen=True)
class Kernel:
    """The kernel of a step, which knows its columns, and all rows that come to it."""

    node: Node
    block: Block
    draw: Draw

    def __call__(self, block: Block) -> Block:
        return self.node.apply(block, self.draw)


@pytest.fixture(scope="module")
def kernel(case: OperatorCase, pipe: flow.Pipeline) -> Kernel:
    step = [step for step in walk(pipe.node) if step.kind == case.operator][-1]
    if not step.traits.kernel:
        pytest.skip("it has no work to do on blocks")
    below = planned(replace(pipe, node=step.input))
    block = in_file_order(replace(pipe, node=step.input))
    draw = Draw(below.seed, 0, step.key or step.kind)
    made = step.over(below.root)
    return Kernel(
        made.resolved_with(made.probe(block, draw)) if made.traits.needs_schema else made, block, draw
    )


def same(one: Block, other: Block) -> bool:
    """Whether two blocks have the same rows: names, types, values, ids and origins."""
    return (
        list(one.columns) == list(other.columns)
        and one.record_batch().equals(other.record_batch())
        and np.array_equal(one.ids, other.ids)
        and np.array_equal(one.origin, other.origin)
    )


def only(block: Block, names: Sequence[str]) -> Block:
    return block.with_columns({name: block.columns[name] for name in names})


def in_arrow(column: Column, kind: pa.DataType) -> Any:
    """A column in Arrow's form, as a type of the same values."""
    if isinstance(column, np.ndarray):
        assert shape_of(kind) == (column.dtype, column.shape[1:])
        return to_arrow(column, kind)
    return column.cast(kind)


def memory_of(block: Block) -> list[bytes]:
    """All bytes that a block lies in."""
    arrays = [as_arrow(column) for column in block.columns.values()]
    buffers = [buffer for array in arrays for buffer in array.buffers() if buffer is not None]
    return [*map(bytes, buffers), block.ids.tobytes(), block.origin.tobytes()]


def test_a_kernel_gives_the_same_however_rows_are_grouped(kernel: Kernel) -> None:
    if kernel.node.traits.chunk or kernel.node.traits.whole_window:
        pytest.skip("it says which rows it wants together")
    whole, rows = kernel(kernel.block), kernel.block.rows
    cuts = [[0, cut, rows] for cut in range(1, rows)] + [list(range(rows + 1))]
    for cut in cuts:
        parts = [kernel(kernel.block.slice(start, stop)) for start, stop in itertools.pairwise(cut)]
        assert same(concat_blocks(parts), whole), cut
    picked = np.arange(rows)[::3]
    kept = np.isin(whole.origin, kernel.block.origin[picked])
    assert same(kernel(kernel.block.take(picked)), whole.take(np.flatnonzero(kept)))


def test_a_kernel_gives_the_same_of_arrow_columns_and_of_arrays(kernel: Kernel) -> None:
    schema = kernel.node.input.schema
    assert schema is not None
    arrow = {name: in_arrow(c, schema.field(name).type) for name, c in kernel.block.columns.items()}
    assert same(kernel(kernel.block.with_columns(arrow)), kernel(kernel.block))


def test_a_kernel_changes_nothing_of_what_comes_in(kernel: Kernel) -> None:
    before = memory_of(kernel.block)
    kernel(kernel.block)
    assert memory_of(kernel.block) == before


def test_columns_that_a_kernel_says_to_own_are_writable_and_no_others(kernel: Kernel) -> None:
    shared = replace(kernel.block, owned=False)
    out = kernel(shared)
    if out.owned:
        mine = [column for column in out.columns.values() if isinstance(column, np.ndarray)]
        theirs = [column for column in shared.columns.values() if isinstance(column, np.ndarray)]
        assert all(column.flags.writeable for column in mine)
        assert not any(np.shares_memory(one, other) for one in mine for other in theirs)


def test_a_kernel_gives_columns_as_its_schema_says(kernel: Kernel) -> None:
    out = kernel(kernel.block)
    assert kernel.node.schema is not None
    assert list(out.columns) == kernel.node.schema.names
    for field in kernel.node.schema:
        # A dense column has forgotten which of Arrow's types for its shape it had.
        found = in_arrow(out.columns[field.name], field.type)
        assert found.type == field.type


def test_traits_tell_the_truth_about_rows(kernel: Kernel) -> None:
    traits, out = kernel.node.traits, kernel(kernel.block)
    if traits.keeps_rows:
        assert np.array_equal(out.ids, kernel.block.ids)
        assert np.array_equal(out.origin, kernel.block.origin)
    else:
        assert traits.filters or traits.many or traits.whole_window
    if traits.filters:
        assert np.isin(out.ids, kernel.block.ids).all()
        assert len(np.unique(out.ids, axis=0)) == out.rows
    if traits.many:
        assert out.ids.shape == (out.rows, kernel.block.ids.reshape(kernel.block.rows, -1).shape[1] + 1)
        assert len(np.unique(out.ids, axis=0)) == out.rows
        assert (np.diff(out.origin) >= 0).all()


def test_columns_that_are_not_read_may_be_missing(kernel: Kernel) -> None:
    reads, out = kernel.node.traits.reads, kernel(kernel.block)
    if reads is None:
        pytest.skip("it may read any column")
    got = kernel(only(kernel.block, [name for name in kernel.block.columns if name in reads]))
    assert np.array_equal(got.ids, out.ids)
    assert same(only(got, list(got.columns)), only(out, list(got.columns)))
    writes = kernel.node.traits.writes
    assert writes is None or {name for name in out.columns if name in writes} <= set(got.columns)


def test_columns_that_are_not_written_pass_through(kernel: Kernel) -> None:
    traits, out = kernel.node.traits, kernel(kernel.block)
    if traits.writes is None:
        pytest.skip("it may write any column")
    untouched = [name for name in kernel.block.columns if name not in traits.writes]
    if traits.keeps_columns:
        assert set(untouched) <= set(out.columns)
    rows = np.flatnonzero(np.isin(kernel.block.origin, out.origin))
    passed = [name for name in untouched if name in out.columns]
    if not traits.many:
        assert same(only(out, passed), only(kernel.block.take(rows), passed))
    assert set(out.columns) <= set(kernel.block.columns) | traits.writes


def test_only_a_random_kernel_gives_other_values_in_another_epoch(kernel: Kernel) -> None:
    first, later = kernel(kernel.block), kernel.node.apply(kernel.block, replace(kernel.draw, turn=1))
    assert same(kernel(kernel.block), first)
    assert same(first, later) != kernel.node.traits.random
