"""From a plan and options to what a loader runs with: batches, memory, windows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial

import pyarrow as pa

from connectors.contract import Json
from dataflow.errors import PlanError
from dataflow.execute.compile import Plan, compile_plan
from dataflow.execute.known import Pace
from dataflow.execute.state import check_place, compare_shape, order_shape
from dataflow.graph.node import BatchSizes, Node, walk
from dataflow.index.cache import find_files
from dataflow.index.identity import compare
from dataflow.index.index import Index
from dataflow.options import LoaderOptions, World
from dataflow.order.batches import Batching, Steps, check_batch, check_length
from dataflow.order.epoch import EpochOrder
from dataflow.order.lanes import below

__all__ = ["Setup", "make_setup"]

# Decoded bytes that one reader holds at a time, and of an unshuffled lane that are read at once.
_SLICE_BYTES = 32 << 20
_CHUNK_BYTES = 8 << 20
# What Arrow's allocator and the decoders keep for themselves, measured with two threads.
_KEPT_BYTES = 32 << 20
# Assembled together: enough that a task's cost is small beside it, little enough for the first batch to come soon.
_RUN_BYTES = 4 << 20
_MOST_STEPS = 64


@dataclass(frozen=True)
class Setup:
    """What a loader runs with. `steps` is None where lengths are not known beforehand."""

    plan: Plan
    batching: Batching
    steps: Steps | None
    world: World
    options: LoaderOptions
    shape: Mapping[str, str]
    chunk_rows: int
    slice_bytes: int

    def order(self, epoch: int) -> EpochOrder:
        """The order of one epoch."""
        plan = self.plan
        return EpochOrder(
            plan.stream, seed=plan.seed, lanes=self.batching.lanes, turn=epoch, chunk_rows=self.chunk_rows
        )

    @cached_property
    def delivered_schema(self) -> pa.Schema | None:
        """The columns of a batch, where they are known."""
        schema = self.plan.schema
        for step in self.plan.batch_steps[1:]:
            schema = step.infer([schema])
        return schema

    @property
    def share_rows(self) -> int:
        """Rows of a batch on this rank, at most."""
        return -(-self.batching.batch // self.world.size)

    @property
    def overhead_bytes(self) -> int:
        """Memory beside windows and batches: what readers decode at a time, and what decoders and allocators keep."""
        return 2 * self.options.threads * self.slice_bytes + min(_KEPT_BYTES, self.options.memory_limit // 4)

    @property
    def pace(self) -> Pace:
        """How far to work ahead."""
        options, plan = self.options, self.plan
        batch_bytes = self.share_rows * max(plan.row_bytes, plan.delivered_bytes)
        run = min(_MOST_STEPS, max(1, options.prefetch // 2), max(1, int(_RUN_BYTES / batch_bytes)))
        limit = max(1, options.memory_limit - self.overhead_bytes)
        remote = any(not source.index.store.is_local for source in plan.sources)
        return Pace(run, plan.row_bytes, limit, min(limit, (256 if remote else 32) << 20))


def make_setup(
    node: Node, seed: int, options: LoaderOptions, world: World, state: Mapping[str, Json] | None = None
) -> Setup:
    """Compile a pipeline for this rank, as it is or as `state` was saved of it.

    Raises:
        PlanError: steps, sizes, memory or state do not fit.
        DataflowError: sources cannot be opened, or are not those of the state.
    """
    batch_step = _batch_step(node)
    indexes = None if state is None else _saved_indexes(node, state)
    windows = None if state is None else [int(rows) for rows in state["windows"]]  # type: ignore[union-attr, arg-type]
    plan = compile_plan(node, seed, windows, indexes)
    # Leaving rows out shapes the order; replacing or raising does not.
    skips = "skip" if options.errors.on_error == "skip" else "keep"
    if skips == "skip":
        plan = replace(plan, program=replace(plan.program, keeps_rows=False))
    batching = _batching(batch_step.batch_sizes, world, state)
    steps = None
    if plan.lengths_known:
        total = plan.stream.total
        steps = Steps(batching, [below(total, lane, batching.lanes) for lane in range(batching.lanes)])
        check_length(steps, world.size)
    shape = order_shape(batch_step.input, plan, {"remainder": batching.remainder, "on_error": skips})
    if state is not None:
        compare_shape(state["shape"], shape)  # type: ignore[arg-type]
        if (steps is None) != ("cursors" in state):
            raise PlanError(
                "the state is of a run whose lengths were known, and here they are not, or the other way round.",
                hint="use the pipeline that saved it",
            )
        if steps is not None:
            check_place(state, steps.count)
    slice_bytes = max(1 << 20, min(_SLICE_BYTES, options.memory_limit // (8 * options.threads)))
    setup = Setup(plan, batching, steps, world, options, shape, _chunk_rows(plan, options), slice_bytes)
    _check_memory(setup)
    return setup


def _batch_step(node: Node) -> Node:
    """The step that batches."""
    step = node
    while not step.traits.batches:
        if not step.inputs or not step.traits.after_batch:
            raise PlanError(
                "the pipeline makes no batches.", hint="end it with .batch(32), or .batch(global_size=1024)"
            )
        step = step.input
    return step


def _batching(sizes: BatchSizes, world: World, state: Mapping[str, Json] | None) -> Batching:
    if state is not None:
        batch, lanes = int(state["batch"]), int(state["lanes"])  # type: ignore[arg-type]
        if world.size > batch:
            raise PlanError(
                f"world_size={world.size} is larger than the state's batch of {batch}.",
                hint="use fewer ranks",
            )
    else:
        batch = sizes.global_size if sizes.global_size is not None else (sizes.size or 0) * world.size
        lanes = sizes.lanes or world.size
        check_batch(batch, lanes, world.size)
    return Batching(batch=batch, lanes=lanes, remainder=sizes.remainder)


def _saved_indexes(node: Node, state: Mapping[str, Json]) -> dict[int, Index]:
    """The index of each source as the state has it, by the source's place of first appearance."""
    sources = list({id(step.source): step.source for step in walk(node) if step.source is not None}.values())
    saved: list[Mapping[str, Json]] = state["sources"]  # type: ignore[assignment]
    if len(saved) != len(sources):
        raise PlanError(
            f"the state has {len(saved)} sources, and the pipeline {len(sources)}.",
            hint="use the pipeline that saved it",
        )
    found = {}
    for source, was in zip(sources, saved, strict=True):
        at, options = getattr(source, "index_url", None), getattr(source, "storage_options", None)
        lookup = partial(find_files, index=at, storage_options=options)
        found[id(source)] = compare(was, source.index, lookup).now
    return found


def _chunk_rows(plan: Plan, options: LoaderOptions) -> int:
    """Rows that are read together where the order has no windows; a multiple of what batched functions want."""
    if plan.output_window is not None:
        return plan.output_window
    chunk = plan.program.chunk or 1
    # A replaced row is drawn from its window, which must then be the same whatever memory there is.
    most = (
        _CHUNK_BYTES if options.errors.on_error == "replace" else min(_CHUNK_BYTES, options.memory_limit / 8)
    )
    wanted = int(most / plan.row_bytes)
    return max(1, wanted // chunk) * chunk


def _check_memory(setup: Setup) -> None:
    plan, options = setup.plan, setup.options
    lanes = setup.batching.lanes
    world = setup.world.size
    here = min(lanes, -(-lanes // world) + (lanes % world > 0))
    window = plan.stream.window
    rows = window if isinstance(window, int) else setup.chunk_rows
    rows = min(rows, -(-plan.stream.n // lanes) or 1)
    # One window is read ahead while those of the lanes here are delivered.
    needed = (here + 1) * rows * plan.row_bytes + setup.overhead_bytes
    if needed > options.memory_limit:
        raise PlanError(
            f"{here} lanes and one window ahead x {rows} rows x {plan.row_bytes:.0f} bytes, and "
            f"{setup.overhead_bytes / 1e6:.0f} MB for {options.threads} readers, need {needed / 1e6:.0f} MB; "
            f"memory_limit is {options.memory_limit / 1e6:.0f} MB.",
            hint="use a smaller shuffle(window=...), fewer lanes, or a larger memory_limit",
        )
