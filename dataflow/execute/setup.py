"""From a plan and options to what a loader runs with: batches, memory, windows."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import cast

import numpy as np
import pyarrow as pa

from connectors.contract import Json
from dataflow.errors import PlanError
from dataflow.execute.compile import Plan, compile_plan
from dataflow.execute.known import Pace
from dataflow.execute.outputs import first_cap
from dataflow.execute.shape import compare_shape, order_shape
from dataflow.execute.state import base_state, check_place
from dataflow.graph.node import BatchSizes, Node, split_at_batch
from dataflow.index.index import Index
from dataflow.options import LoaderOptions, World
from dataflow.order.batches import Batching, Steps, check_batch, check_length
from dataflow.order.epoch import EpochOrder
from dataflow.order.lanes import below
from dataflow.wording import counted

__all__ = ["Resident", "Setup", "check_start", "make_setup", "resident", "say_kept_batch", "sized"]

logger = logging.getLogger("dataflow.execute")

# Decoded bytes that one reader holds at a time, and of an unshuffled lane that are read at once.
_SLICE_BYTES = 32 << 20
_CHUNK_BYTES = 8 << 20
# What decoders, threads and the interpreter keep for themselves, measured with two threads.
_KEPT_BYTES = 32 << 20
# Of the limit: what Arrow's allocator may keep of freed memory, where all columns stay Arrow. A text whose windows take
# half of the limit then costs a tenth more processor time, for that memory is given back and cleared again; others,
# nothing.
_SPARE_SHARE = 1 / 8
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
    def lanes_here(self) -> int:
        """Lanes whose windows a rank has open at once, at most; the same number on every rank.

        A share reaches from one lane into the next. Where it is not known how many rows lanes give, a rank runs its
        own besides; those of its share move away from them as lanes in front end.
        """
        lanes, world = self.batching.lanes, self.world.size
        if world <= 2 or self.plan.lengths_known:
            return min(lanes, -(-lanes // world) + (lanes % world > 0))
        return min(lanes, 2 * -(-lanes // world) + 1)

    @property
    def overhead_bytes(self) -> int:
        """Memory beside windows and batches."""
        return sum(self.overheads.values())

    @cached_property
    def overheads(self) -> Mapping[str, int]:
        """That memory by what takes it, which is named as in "MB for"."""
        kept = min(_KEPT_BYTES, self.options.memory_limit // 4)
        return {
            "readers": self.reader_bytes,
            "bringing a window into order": self.arranging_bytes,
            "what operators made": self.output_bytes,
            "rows offered to the deal": self.offered_bytes,
            "decoders and allocators": kept + self.spare_bytes,
        }

    @cached_property
    def slice_bytes(self) -> int:
        """Decoded bytes that one reader yields at a time: a quarter of the memory is for all of them, if that is
        not less than a megabyte each."""
        readers = 2 * self.options.threads + self._paused_readers
        return max(1 << 20, min(_SLICE_BYTES, self.options.memory_limit // (4 * readers)))

    @property
    def reader_bytes(self) -> int:
        """What readers decode at a time, and what those hold that wait for the next window of their fragment."""
        waiting = sum(min(self.slice_bytes, fragment) for fragment in self._paused_fragments)
        return 2 * self.options.threads * self.slice_bytes + self.lanes_here * waiting

    @property
    def _paused_readers(self) -> int:
        """Readers that may wait for the next window of their fragment."""
        return self.lanes_here * len(self._paused_fragments)

    @cached_property
    def _paused_fragments(self) -> tuple[int, ...]:
        """For each part of a window that is read through fragments larger than it: decoded bytes of the largest."""
        found = []
        for group in self.plan.program.groups:
            indexes = [index for index in group.indexes.values() if not index.traits.row_ranges]
            rows = max((int(np.diff(index.starts).max(initial=0)) for index in indexes), default=0)
            if rows > self.window_rows:
                found.append(int(rows * group.row_bytes))
        return tuple(found)

    @property
    def arranging_bytes(self) -> int:
        """One more copy of one window's columns that stay Arrow."""
        return int(self.window_rows * self.plan.program.arrow_row_bytes)

    @property
    def offered_bytes(self) -> int:
        """What the lanes of this rank have made for the deal of batches, which looks ahead; more where a batch is not
        settled by that, because lanes give very unequal numbers of rows."""
        if self.plan.lengths_known:
            return 0
        own = -(-self.batching.lanes // self.world.size)
        rows = own * first_cap(self.batching.batch, self.batching.lanes)
        return int(rows * max(self.plan.row_bytes, self.plan.delivered_bytes))

    @property
    def spare_bytes(self) -> int:
        """What Arrow's allocator may keep of memory that was freed."""
        program = self.plan.program
        return int(_SPARE_SHARE * self.options.memory_limit * program.arrow_row_bytes / program.row_bytes)

    @property
    def room_bytes(self) -> int:
        """How far this process may grow before that memory is given back; what follows may take it to the limit."""
        return self.options.memory_limit - self.spare_bytes

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
        compare_shape(state, shape)
        if (steps is None) != ("cursors" in state):
            raise PlanError(
                "the state is of a run whose lengths were known, and here they are not."
                if steps is None
                else "the state is of a run whose lengths were not known, and here they are.",
                hint="use the pipeline that saved it, counted() or not as it was",
            )
        if steps is not None:
            check_place(state, steps.count)
    setup = sized(plan, batching, steps, world, options, shape.hashes)
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
            "the state's batch of %s goes on, not the %d that the pipeline asks for",
            counted(cast(int, state["batch"]), "row"),
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
    return Setup(plan, batching, steps, world, options, shape, _chunk_rows(plan, options))


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
    """What must be in memory on a rank: a window of each of `lanes` and one ahead, and what is beside them."""

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
    return Resident(
        lanes=setup.lanes_here,
        window_rows=setup.window_rows,
        row_bytes=setup.plan.row_bytes,
        overhead_bytes=setup.overhead_bytes,
    )


def _check_memory(setup: Setup) -> None:
    options, need = setup.options, resident(setup)
    if need.bytes > options.memory_limit:
        lanes, rows = counted(need.lanes, "lane"), counted(need.window_rows, "row")
        beside = [f"{size / 1e6:.0f} MB for {what}" for what, size in setup.overheads.items() if size >= 5e5]
        raise PlanError(
            f"{lanes} and one window ahead x {rows} x {need.row_bytes:.0f} bytes, {', '.join(beside)}, "
            f"need {need.bytes / 1e6:.0f} MB; memory_limit is {options.memory_limit / 1e6:.0f} MB.",
            hint="use a smaller shuffle(window=...), fewer lanes, or a larger memory_limit",
        )
