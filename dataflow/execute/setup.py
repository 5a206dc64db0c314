"""From a plan and options to what a loader runs with: batches, memory, windows."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import pyarrow as pa

from connectors.contract import Json
from dataflow.errors import PlanError
from dataflow.execute.compile import Plan, compile_plan
from dataflow.execute.known import Pace
from dataflow.execute.state import base_state, check_place, compare_shape, order_shape
from dataflow.graph.node import BatchSizes, Node, split_at_batch
from dataflow.index.index import Index
from dataflow.options import LoaderOptions, World
from dataflow.order.batches import Batching, Steps, check_batch, check_length
from dataflow.order.epoch import EpochOrder
from dataflow.order.lanes import below

__all__ = ["Resident", "Setup", "check_start", "make_setup", "resident", "say_kept_batch", "sized"]

logger = logging.getLogger("dataflow.execute")

# Decoded bytes that one reader holds at a time, and of an unshuffled lane that are read at once.
_SLICE_BYTES = 32 << 20
_CHUNK_BYTES = 8 << 20
# What Arrow's allocator and the decoders keep for themselves, measured with two threads.
_KEPT_BYTES = 32 << 20
# Enough for a few hundred decoded images.
_OUTPUT_BYTES = 64 << 20
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
    def base_state(self) -> Mapping[str, Json]:
        """The part of a state that no step changes."""
        return base_state(self.plan, self.batching.batch, self.batching.lanes, self.shape)

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
        """Memory beside windows and batches: what readers decode at a time, what it takes to bring a window into
        order, what lies behind the operators, and what decoders and allocators keep."""
        kept = min(_KEPT_BYTES, self.options.memory_limit // 4)
        return self.reader_bytes + self.arranging_bytes + self.output_bytes + kept

    @property
    def reader_bytes(self) -> int:
        """What readers decode at a time."""
        return 2 * self.options.threads * self.slice_bytes

    @property
    def arranging_bytes(self) -> int:
        """Two more copies of one window's columns that stay Arrow."""
        return int(2 * self.window_rows * self.plan.program.arrow_row_bytes)

    @property
    def window_rows(self) -> int:
        """Rows of a window, at most."""
        window = self.plan.stream.window
        rows = window if isinstance(window, int) else self.chunk_rows
        return min(rows, -(-self.plan.stream.n // self.batching.lanes) or 1)

    @property
    def output_bytes(self) -> int:
        """What operators may have made that no batch has taken."""
        return 0 if self.plan.program.bare else min(_OUTPUT_BYTES, self.options.memory_limit // 16)

    @property
    def pace(self) -> Pace:
        """How far to work ahead."""
        options, plan = self.options, self.plan
        batch_bytes = self.share_rows * max(plan.row_bytes, plan.delivered_bytes)
        run = min(_MOST_STEPS, max(1, options.prefetch // 2), max(1, int(_RUN_BYTES / batch_bytes)))
        limit = max(1, options.memory_limit - self.overhead_bytes)
        remote = any(not source.index.store.is_local for source in plan.sources)
        return Pace(run, _RUN_BYTES, plan.row_bytes, limit, min(limit, (256 if remote else 32) << 20))


def make_setup(
    node: Node, seed: int, options: LoaderOptions, world: World, state: Mapping[str, Json] | None = None,
    indexes: Mapping[int, Index] | None = None,
) -> Setup:  # fmt: skip
    """Compile a pipeline for this rank, as it is or as `state` was saved of it.

    `indexes`, by the id() of a source, stand in for the sources' own.

    Raises:
        PlanError: steps, sizes, memory or state do not fit.
        DataflowError: sources cannot be opened.
    """
    batch_step = _batch_step(node)
    windows = None if state is None else [int(rows) for rows in state["windows"]]  # type: ignore[union-attr, arg-type]
    tolerant = options.errors.on_error != "raise"
    plan = compile_plan(node, seed, windows, indexes, tolerant=tolerant)
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
    setup = sized(plan, batching, steps, world, options, shape)
    _check_memory(setup)
    return setup


def check_start(node: Node, world_size: int) -> None:
    """Refuse a world on which no run of a pipeline can begin; one that began on another may go on there.

    Raises:
        PlanError: the batch is not a multiple of the lanes and of the world; names the nearest values.
    """
    batch, lanes = _batch_step(node).batch_sizes.begun_on(world_size)
    check_batch(batch, lanes, world_size)


def say_kept_batch(node: Node, world_size: int, state: Mapping[str, Json]) -> None:
    """Warn where the batch of a state, which goes on, is not the one that the pipeline asks for."""
    asked, _ = _batch_step(node).batch_sizes.begun_on(world_size)
    if asked != state["batch"]:
        logger.warning(
            "the state's batch of %d rows goes on, not the %d that the pipeline asks for",
            state["batch"],
            asked,
        )


def sized(
    plan: Plan,
    batching: Batching,
    steps: Steps | None,
    world: World,
    options: LoaderOptions,
    shape: Mapping[str, str],
) -> Setup:
    """What a loader would run with, whether or not its windows fit in memory."""
    slice_bytes = max(1 << 20, min(_SLICE_BYTES, options.memory_limit // (8 * options.threads)))
    return Setup(plan, batching, steps, world, options, shape, _chunk_rows(plan, options), slice_bytes)


def _batch_step(node: Node) -> Node:
    """The step that batches."""
    _, steps = split_at_batch(node)
    if not steps:
        raise PlanError(
            "the pipeline makes no batches.", hint="end it with .batch(32), or .batch(global_size=1024)"
        )
    return steps[0]


def _batching(sizes: BatchSizes, world: World, state: Mapping[str, Json] | None) -> Batching:
    if state is not None:
        batch, lanes = int(state["batch"]), int(state["lanes"])  # type: ignore[arg-type]
        if world.size > batch:
            raise PlanError(
                f"world_size={world.size} is larger than the state's batch of {batch}.",
                hint="use fewer ranks",
            )
    else:
        batch, lanes = sizes.begun_on(world.size)
        check_batch(batch, lanes, world.size)
    return Batching(batch=batch, lanes=lanes, remainder=sizes.remainder)


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


@dataclass(frozen=True, kw_only=True)
class Resident:
    """What must be in memory on a rank: a window of each of `lanes` and one ahead, and what readers hold."""

    lanes: int
    window_rows: int
    row_bytes: float
    overhead_bytes: int

    @property
    def bytes(self) -> float:
        """All of it."""
        return (self.lanes + 1) * self.window_rows * self.row_bytes + self.overhead_bytes


def resident(setup: Setup) -> Resident:
    """What is in memory at once, at the least, where this rank reads as many lanes as a rank may."""
    plan, lanes, world = setup.plan, setup.batching.lanes, setup.world.size
    return Resident(
        lanes=min(lanes, -(-lanes // world) + (lanes % world > 0)),
        window_rows=setup.window_rows,
        row_bytes=plan.row_bytes,
        overhead_bytes=setup.overhead_bytes,
    )


def _check_memory(setup: Setup) -> None:
    options, need = setup.options, resident(setup)
    if need.bytes > options.memory_limit:
        raise PlanError(
            f"{need.lanes} lanes and one window ahead x {need.window_rows} rows x {need.row_bytes:.0f} bytes, and "
            f"{need.overhead_bytes / 1e6:.0f} MB for {options.threads} readers, need {need.bytes / 1e6:.0f} MB; "
            f"memory_limit is {options.memory_limit / 1e6:.0f} MB.",
            hint="use a smaller shuffle(window=...), fewer lanes, or a larger memory_limit",
        )
