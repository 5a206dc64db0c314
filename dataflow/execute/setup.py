"""From a plan and options to what a loader runs with."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import pyarrow as pa

from connectors.contract import Json
from dataflow.errors import PlanError
from dataflow.execute.budget import Budget
from dataflow.execute.compile import Plan, compile_plan
from dataflow.execute.shape import compare_shape, order_shape
from dataflow.execute.state import State, base_state
from dataflow.graph.node import BatchSizes, Node, split_at_batch
from dataflow.index.index import Index
from dataflow.ops.images.backend import ImageBackend
from dataflow.options import LoaderOptions, PassOptions, World
from dataflow.order.batches import Batching, Steps, check_batch, check_length
from dataflow.order.epoch import EpochOrder
from dataflow.order.lanes import below
from dataflow.wording import counted

__all__ = ["Setup", "check_start", "make_setup", "say_kept_batch", "say_kept_windows"]

logger = logging.getLogger("dataflow.execute")


@dataclass(frozen=True)
class Setup:
    """What a loader runs with. `steps` is None where lengths are not known beforehand."""

    plan: Plan
    batching: Batching
    steps: Steps | None
    world: World
    options: LoaderOptions
    shape: Mapping[str, str]

    @cached_property
    def budget(self) -> Budget:
        """What memory is for what."""
        return Budget(self.plan, self.batching, self.world, self.options)

    def order(self, epoch: int) -> EpochOrder:
        """The order of one epoch."""
        plan = self.plan
        return EpochOrder(
            plan.stream,
            seed=plan.seed,
            lanes=self.batching.lanes,
            turn=epoch,
            chunk_rows=self.budget.chunk_rows,
        )

    @cached_property
    def base_state(self) -> Mapping[str, Json]:
        """The part of a state that no step changes."""
        return base_state(self.plan, self.batching.batch, self.batching.lanes, self.shape)

    @cached_property
    def delivered_schema(self) -> pa.Schema | None:
        """The columns of a batch, where they are known."""
        return self.plan.delivered_schema


def make_setup(
    node: Node, seed: int, options: LoaderOptions, world: World, state: State | None = None,
    indexes: Mapping[int, Index] | None = None, images: ImageBackend | None = None,
) -> Setup:  # fmt: skip
    """Compile a pipeline for this rank, as it is or as `state` was saved of it.

    `indexes`, by the id() of a source, stand in for the sources' own; `images` makes images behind `batch`.

    Raises:
        PlanError: steps, sizes, memory or state do not fit.
        DataflowError: sources cannot be opened.
    """
    batch_step = _batch_step(node)
    windows = None if state is None else state.windows
    tolerant = options.errors.on_error != "raise"
    passes = PassOptions(memory_limit=options.memory_limit, threads=options.threads)
    plan = compile_plan(node, seed, windows, indexes, tolerant=tolerant, passes=passes, images=images)
    plan = replace(plan, skips_bad_rows=options.errors.on_error == "skip")
    # Leaving rows out shapes the order; replacing or raising does not.
    skips = "skip" if plan.skips_bad_rows else "keep"
    batching = _batching(batch_step.batch_sizes, world, state)
    steps = _steps(plan, batching, world)
    shape = order_shape(batch_step.input, plan, {"remainder": batching.remainder, "on_error": skips})
    if state is not None:
        compare_shape(state, shape)
        _check_steps(state, steps)
    setup = Setup(plan, batching, steps, world, options, shape.hashes)
    setup.budget.check()
    return setup


def check_start(node: Node, world_size: int) -> None:
    """Refuse a world on which no run of a pipeline can begin; one that began on another may go on there.

    Raises:
        PlanError: the batch is not a multiple of the lanes and of the world; names the nearest values.
    """
    batch, lanes = _batch_step(node).batch_sizes.begun_on(world_size)
    check_batch(batch, lanes, world_size)


def say_kept_batch(node: Node, world_size: int, state: State) -> None:
    """Warn where the batch of a state, which goes on, is not the one that the pipeline asks for."""
    asked, _ = _batch_step(node).batch_sizes.begun_on(world_size)
    if asked != state.batch:
        logger.warning(
            "the state's batch of %s goes on, not the %d that the pipeline asks for",
            counted(state.batch, "row"),
            asked,
        )


def say_kept_windows(plan: Plan) -> None:
    """Warn where the rows of a state's windows, which go on, are not those of the bytes that the pipeline asks for."""
    for kept, asked in zip(plan.windows, plan.windows_asked, strict=True):
        if kept != asked:
            logger.warning(
                "the state's window of %s goes on, not the %d of the bytes that the pipeline asks for",
                counted(kept, "row"),
                asked,
            )


def _batch_step(node: Node) -> Node:
    """The step that batches."""
    _, steps = split_at_batch(node)
    if not steps:
        raise PlanError(
            "the pipeline makes no batches.", hint="end it with .batch(32), or .batch(global_size=1024)"
        )
    return steps[0]


def _steps(plan: Plan, batching: Batching, world: World) -> Steps | None:
    """The steps of an epoch; None where lengths are not known."""
    if not plan.lengths_known:
        return None
    lanes = batching.lanes
    steps = Steps(batching, [below(plan.stream.total, lane, lanes) for lane in range(lanes)])
    check_length(steps, world.size)
    return steps


def _check_steps(state: State, steps: Steps | None) -> None:
    """Refuse a state that says where it stands in another way than this run does, or stands behind its end."""
    if (steps is None) != (state.deal is not None):
        raise PlanError(
            "the state is of a run whose lengths were known, and here they are not."
            if steps is None
            else "the state is of a run whose lengths were not known, and here they are.",
            hint="use the pipeline that saved it, counted() or not as it was",
        )
    if steps is not None:
        state.check_step(steps.count)


def _batching(sizes: BatchSizes, world: World, state: State | None) -> Batching:
    if state is not None:
        batch, lanes = state.batch, state.lanes
        if world.size > batch:
            raise PlanError(
                f"world_size={world.size} is larger than the state's batch of {batch}.",
                hint="use fewer ranks",
            )
    else:
        batch, lanes = sizes.begun_on(world.size)
        check_batch(batch, lanes, world.size)
    return Batching(batch=batch, lanes=lanes, remainder=sizes.remainder)
