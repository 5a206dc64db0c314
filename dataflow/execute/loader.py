"""The loader: epochs one after the other, a position that can be saved and restored, and a clean end."""

from __future__ import annotations

import atexit
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from copy import deepcopy
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Generic, Self, TypeVar, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from connectors.contract import Json
from dataflow.errors import LoaderClosed, PlanError
from dataflow.execute.agree import Alone, Gathers, Ranks, Together
from dataflow.execute.ahead import Ahead
from dataflow.execute.assemble import HostBatch
from dataflow.execute.buffers import BufferPool
from dataflow.execute.dealt import DealtDriver, DealtPlace
from dataflow.execute.gather import is_narrow
from dataflow.execute.job import Bench
from dataflow.execute.known import KnownDriver, Made
from dataflow.execute.metrics import Meters, advice
from dataflow.execute.pools import ThreadPools
from dataflow.execute.quarantine import Quarantine, place_finder
from dataflow.execute.replace import REPLACED_BY, Replacer
from dataflow.execute.report import render_report
from dataflow.execute.setup import Setup, make_setup
from dataflow.execute.state import base_state, check_state
from dataflow.execute.streams import OpenStreams
from dataflow.execute.trace import Recorder
from dataflow.graph.block import BadSample, Block
from dataflow.graph.draw import Draw, Turn
from dataflow.graph.node import Node
from dataflow.options import LoaderOptions, World

__all__ = ["Loader"]

T = TypeVar("T")
# Delivered batches whose state can still be asked for.
_KEPT_STATES = 64
_RANGE_BYTES = 2 << 20


@dataclass(frozen=True, slots=True)
class _Place:
    """What the next batch will be, and what a state keeps beside that."""

    epoch: int
    step: int
    after: Mapping[str, Json] | None
    errors: int


class Loader(Generic[T]):
    """Iterates batches; one `for` is one epoch.

    Args:
        convert: makes of a rank's rows, and the schema they have where it is known, what the user gets.
        gathers: opens what ranks exchange numbers over, where lengths are not known beforehand; all ranks call it.
    """

    def __init__(
        self, node: Node, seed: int, options: LoaderOptions, world: World,
        convert: Callable[[HostBatch, pa.Schema | None], T],
        gathers: Callable[[], Gathers] | None = None,
    ) -> None:  # fmt: skip
        self._node, self._seed, self._options, self._world = node, seed, options, world
        self._convert, self._make_gathers = convert, gathers
        self._gathers: Gathers | None = None
        self._closed = False
        self._running: _Running | None = None
        # Weak: an iterator that nobody holds is one that was broken off.
        self._iterator: Callable[[], _EpochIterator[T] | None] = lambda: None
        self._meters = Meters(Recorder() if options.trace is not None else None)
        self._started_s: float | None = None
        self._delivered = 0
        self._setup = make_setup(node, seed, options, world)
        self._check_ranks()
        self._reset(_Place(0, 0, None, 0))

    def _reset(self, place: _Place) -> None:
        setup = self._setup
        self._base = base_state(setup.plan, setup.batching.batch, setup.batching.lanes, setup.shape)
        self._quarantine = Quarantine(self._options.errors, setup.plan.sources, place.errors)
        self._places: deque[_Place] = deque([place], maxlen=_KEPT_STATES + 1)
        # Whether the next `for` begins at the place itself, and not behind an epoch that was broken off.
        self._settled = True

    def _check_ranks(self) -> None:
        if self._setup.steps is not None or self._world.size == 1 or self._gathers is not None:
            return
        if self._make_gathers is None:
            raise PlanError(
                f"{self._world.size} ranks without a process group, and how many rows each gets is not known "
                "beforehand.",
                hint="call counted() on the pipeline, or initialise torch.distributed",
            )
        self._gathers = self._make_gathers()

    # ---- position

    @property
    def _place(self) -> _Place:
        return self._places[-1]

    @property
    def epoch(self) -> int:
        """The epoch of the next batch."""
        return self._place.epoch

    @property
    def step(self) -> int:
        """The step of the next batch in its epoch."""
        return self._place.step

    def __len__(self) -> int:
        """The steps of a whole epoch.

        Raises:
            TypeError: the pipeline changes the number of rows, so that only running it can tell.
        """
        if self._setup.steps is None:
            raise TypeError(
                "the length is known only when the epoch has run: a function decides about rows; counted() finds out"
            )
        return self._setup.steps.count

    @property
    def remaining(self) -> int:
        """The batches that the next (or the running) `for` yields.

        Raises:
            TypeError: as `len`.
        """
        iterator = self._iterator()
        running = iterator is not None and not iterator.ended
        return len(self) - (self.step if self._settled or running else 0)

    def set_epoch(self, epoch: int) -> None:
        """Let the next `for` run `epoch`: from its start, or from the restored place if that is in it.

        Raises:
            PlanError: it is no epoch.
        """
        if not isinstance(epoch, int) or isinstance(epoch, bool) or epoch < 0:
            raise PlanError(f"set_epoch({epoch!r}) is no epoch.", hint="epochs are whole numbers from 0 up")
        if self._settled and epoch == self.epoch:
            return
        self._stop_iterator()
        self._places[-1] = _Place(epoch, 0, None, self._quarantine.errors)
        self._settled = True

    # ---- state

    def state_dict(self, lag: int = 0) -> dict[str, Json]:
        """The place behind the batch delivered `lag` batches ago, as plain numbers and strings (JSON).

        Raises:
            PlanError: `lag` is negative, or more batches than are kept (64) or were delivered.
        """
        if not isinstance(lag, int) or not 0 <= lag < len(self._places):
            raise PlanError(
                f"state_dict(lag={lag!r}): the last {len(self._places) - 1} places are kept.",
                hint=f"save within {_KEPT_STATES} batches",
            )
        place = self._places[-1 - lag]
        state = {**self._base, "epoch": place.epoch, "step": place.step, "errors": place.errors}
        if self._setup.steps is None:
            state |= place.after or DealtPlace.start(self._setup.batching.lanes).state()
        return deepcopy(state)

    def load_state_dict(self, state: Mapping[str, Json]) -> None:
        """Go on behind the batch at which `state` was saved; on any number of ranks.

        Raises:
            PlanError: it is no state, or of another pipeline: names what differs.
            DataError: files of the saved run are gone or changed.
        """
        self._check_open()
        check_state(state)
        setup = make_setup(self._node, self._seed, self._options, self._world, state)
        self._stop_iterator()
        self.halt()
        self._setup = setup
        self._check_ranks()
        after = None
        if setup.steps is None:
            after = DealtPlace.from_state(state, setup.batching.lanes).state()
        errors = state.get("errors", 0)
        self._reset(_Place(cast(int, state["epoch"]), cast(int, state["step"]), after, cast(int, errors)))

    # ---- iteration

    def __iter__(self) -> Iterator[T]:
        self._check_open()
        self._stop_iterator()
        if not self._settled:
            self._places[-1] = _Place(self.epoch + 1, 0, None, self._quarantine.errors)
            self._settled = True
        place = self._place
        if self._running is None or self._running.at != (place.epoch, place.step):
            self.halt()
            self._running = _Running(self._setup, self._meters, place, self._gathers)
        if self._started_s is None:
            self._started_s = time.perf_counter()
        iterator = _EpochIterator(self, self._running, place.epoch)
        self._iterator = weakref.ref(iterator)
        return iterator

    def deliver(
        self, epoch: int, step: int, batch: HostBatch, after: Mapping[str, Json] | None, last: bool
    ) -> T:
        """Hand out one batch: count its bad rows, convert it, and move the place behind it."""
        running = self._running
        assert running is not None
        if self._setup.batching.remainder == "pad" and batch.valid is None:
            batch = replace(batch, valid=np.ones(batch.rows, np.bool_))
        for bad in (*batch.bad, *running.replaced_in(epoch, batch)):
            self._quarantine.add(bad)
        with self._meters.busy("deliver") as stage:
            stage.rows = batch.rows
            result = self._convert(_batch_operators(self._setup, batch), self._setup.delivered_schema)
        errors = self._quarantine.errors
        following = _Place(epoch + 1, 0, None, errors) if last else _Place(epoch, step + 1, after, errors)
        self._places.append(following)
        self._settled = last
        running.at = (following.epoch, following.step)
        self._delivered += batch.rows
        return result

    def is_last(self, made: Made, step: int) -> bool:
        """Whether `step` is the last of its epoch."""
        if self._setup.steps is None:
            return bool(made.last)
        return step + 1 == self._setup.steps.count

    @property
    def meters(self) -> Meters:
        """The counters of every stage."""
        return self._meters

    # ---- what it says

    def stats(self) -> dict[str, Json]:
        """Rows, bytes, busy and waiting seconds of every stage; what limits throughput, and what would help."""
        elapsed = 0.0 if self._started_s is None else time.perf_counter() - self._started_s
        stages = self._meters.snapshot()
        limit, hint = advice(stages, elapsed, self._options.threads)
        return {
            "elapsed_s": round(elapsed, 6), "rows": self._delivered, "epoch": self.epoch, "step": self.step,
            "rows_per_s": round(self._delivered / elapsed, 3) if elapsed else 0.0,
            "errors": self._quarantine.errors, "limited_by": limit, "advice": hint,
            "stages": cast(Json, stages),
        }  # fmt: skip

    def report(self) -> str:
        """`stats()` as a table of text."""
        return render_report(self.stats())

    # ---- end

    def close(self) -> None:
        """End threads, drop what was read ahead, write the trace; may be called twice."""
        if self._closed:
            return
        self._stop_iterator()
        self.halt()
        self._closed = True
        self._quarantine.close()
        if self._gathers is not None:
            self._gathers.shutdown()
        if self._options.trace is not None and self._meters.recorder is not None:
            self._meters.recorder.write(self._options.trace, rank=self._world.rank)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __del__(self) -> None:
        # The collector may run this on any thread, even on one of the loader's own: nothing is waited for.
        running = getattr(self, "_running", None)
        if running is not None:
            running.abandon()

    def _check_open(self) -> None:
        if self._closed:
            raise LoaderClosed("the loader is closed.", hint="make a new one with pipe.loader(...)")

    def _stop_iterator(self) -> None:
        iterator = self._iterator()
        if iterator is not None:
            iterator.ended = True

    def halt(self) -> None:
        """End the threads and drop what was made ahead; the place stays."""
        running, self._running = self._running, None
        if running is not None:
            running.close()


def _batch_operators(setup: Setup, batch: HostBatch) -> HostBatch:
    steps = setup.plan.batch_steps[1:]
    if not steps:
        return batch
    block = Block(batch.columns, batch.ids, np.arange(batch.rows), batch.owned)
    for step in steps:
        block = step.apply(block, Draw(setup.plan.seed, 0, step.kind))
    return HostBatch(dict(block.columns), batch.ids, block.owned, batch.valid, batch.replaced, batch.bad)


class _Running:
    """Threads and memory of a loader that is being iterated; `at` is the place of the next batch it gives."""

    def __init__(self, setup: Setup, meters: Meters, place: _Place, gathers: Gathers | None) -> None:
        self.at = (place.epoch, place.step)
        options, plan = setup.options, setup.plan
        remote = any(not source.index.store.is_local for source in plan.sources)
        self._pools = ThreadPools(options.threads, remote=remote)
        self._replaced: dict[int, dict[int, deque[BadSample]]] = {}
        self._passes = plan.stream.passes
        self._zipped = len(plan.stream.inputs)
        self._streams = OpenStreams(setup.slice_bytes, limit=2 * setup.batching.lanes + 2)
        range_rows = max(1, min(1024, int(_RANGE_BYTES / plan.row_bytes)))
        self._memory = BufferPool(setup.pace.limit_bytes)
        bench = Bench(
            program=plan.program, stream=plan.stream, seed=plan.seed, pools=self._pools,
            memory=self._memory, streams=self._streams, meters=meters,
            range_rows=range_rows, range_bytes=options.memory_limit // 4,
            tolerant=options.errors.on_error != "raise", place=place_finder(plan.sources),
            late=setup.steps is not None and options.errors.on_error == "raise" and plan.program.bare
            and is_narrow(plan.program.groups[0].schema),
        )  # fmt: skip
        mend = Replacer(bench, self._note) if options.errors.on_error == "replace" else None
        rank, world = setup.world.rank, setup.world.size
        self._ranks: Ranks | None = None
        if setup.steps is not None:
            known = KnownDriver(bench, setup.order, setup.steps, rank, world, setup.pace, mend)
            self.ahead = Ahead(known.run(place.epoch, place.step), self._let_go)
        else:
            lanes = setup.batching.lanes
            self._ranks = Alone() if gathers is None else Together(gathers, world, lanes)
            dealt = DealtDriver(
                bench, setup.order, setup.batching, rank, world, setup.pace, mend, self._ranks
            )
            at = DealtPlace.start(lanes) if place.after is None else DealtPlace.from_state(place.after, lanes)
            self.ahead = Ahead(dealt.run(place.epoch, place.step, at), self._let_go)
        _OPEN.add(self)

    def _note(self, sample: int, turn: Turn, bad: BadSample) -> None:
        epoch = cast(int, turn) // self._passes
        self._replaced.setdefault(epoch, {}).setdefault(sample, deque()).append(bad)

    def replaced_in(self, epoch: int, batch: HostBatch) -> list[BadSample]:
        """The bad rows in whose place others stand in a batch; of the rows that one row became, the first tells."""
        if batch.replaced is None:
            return []
        for past in [number for number in self._replaced if number < epoch]:
            # Rows that other ranks delivered, or nobody: an operator or the remainder left them out.
            del self._replaced[past]
        real = batch.replaced >= 0
        if batch.valid is not None:
            real &= batch.valid
        flat = batch.ids.reshape(batch.rows, -1)
        real &= (flat[:, self._zipped :] == 0).all(axis=1)
        noted = self._replaced.get(epoch, {})
        found: list[BadSample] = []
        for sample in flat[real, 0].tolist():
            # A row is bad again in every pass, and may be so in every input of a zip: each was noted.
            waiting = noted.get(sample)
            if waiting:
                first = waiting.popleft()
                found.append(first)
                while waiting and waiting[0].origin == first.origin and waiting[0].id != first.id:
                    found.append(waiting.popleft())
        return found

    def _let_go(self) -> None:
        """What the driver's thread does last."""
        self._pools.close()
        self._streams.close()
        self._memory.close()
        pa.default_memory_pool().release_unused()

    def abandon(self) -> None:
        """Tell all threads to end, and wait for none. Takes no lock, so that a finalizer may call it."""
        self.ahead.abandon()
        if self._ranks is not None:
            self._ranks.abandon()

    def close(self) -> None:
        """End all threads; may be called twice."""
        _OPEN.discard(self)
        self.abandon()
        if self._ranks is not None:
            self._ranks.close()
        self._pools.close()
        self.ahead.join()


# Loaders that are still open when the interpreter ends: their driver must not outlive it.
_OPEN: weakref.WeakSet[_Running] = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    for running in list(_OPEN):
        running.close()


class _EpochIterator(Generic[T]):
    """One `for`: the batches of one epoch from a place on."""

    def __init__(self, loader: Loader[T], running: _Running, epoch: int) -> None:
        self._loader, self._running, self._epoch = loader, running, epoch
        self._made: Made | None = None
        self._batches: deque[HostBatch] = deque()
        self._step = 0
        self.ended = False
        self._done = False

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> T:
        if self._done:
            raise StopIteration
        if self.ended:
            raise LoaderClosed(
                "this iterator is closed: another one was begun, or the loader was closed or moved.",
                hint="iterate a loader once at a time",
            )
        try:
            return self._delivered()
        except StopIteration:
            self._done = True
            raise
        except BaseException:
            # What was taken from the driver is lost with this iterator: the next one begins with a new driver.
            self.ended = True
            self._loader.halt()
            raise

    def _delivered(self) -> T:
        while not self._batches:
            made = self._running.ahead.get() if self._running.ahead.ready else self._waited()
            if made.ends_epoch:
                if made.epoch < self._epoch:
                    continue  # the mark of the epoch before, whose last batch was the last one asked for
                raise StopIteration
            batches = made.batches.result() if isinstance(made.batches, Future) else made.batches
            self._made, self._step = made, made.step
            self._batches.extend(batches)
        assert self._made is not None
        batch, step = self._batches.popleft(), self._step
        self._step += 1
        last = self._loader.is_last(self._made, step)
        result = self._loader.deliver(self._epoch, step, _split_off(batch), self._made.after, last)
        self._done = last
        return result

    def _waited(self) -> Made:
        with self._loader.meters.waiting("deliver"):
            return self._running.ahead.get()


def _split_off(batch: HostBatch) -> HostBatch:
    """The column that says which rows were replaced, as a field of the batch."""
    if REPLACED_BY not in batch.columns:
        return batch
    columns = dict(batch.columns)
    replaced = cast(npt.NDArray[np.int64], columns.pop(REPLACED_BY))
    return HostBatch(columns, batch.ids, batch.owned, batch.valid, replaced, batch.bad)
