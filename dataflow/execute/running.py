"""What runs while a loader is iterated: its threads, its memory, and the batches that they make ahead."""

from __future__ import annotations

import atexit
import os
import weakref
from collections.abc import Generator, Mapping
from contextlib import closing
from typing import NamedTuple

import pyarrow as pa

from connectors.contract import Json
from dataflow.errors import InternalError, PlanError
from dataflow.execute.agree import Alone, Gathers, Ranks, Together
from dataflow.execute.ahead import DEPTH, Ahead
from dataflow.execute.arrow_use import ArrowUse
from dataflow.execute.assemble import HostBatch
from dataflow.execute.buffers import BufferPool
from dataflow.execute.dealt import DealtDriver, DealtPlace
from dataflow.execute.develop import Development
from dataflow.execute.finish import Finish
from dataflow.execute.horizon import Horizon
from dataflow.execute.incoming import Incoming
from dataflow.execute.known import KnownDriver
from dataflow.execute.last_bad import LastBad
from dataflow.execute.made import Made
from dataflow.execute.memory import Memory
from dataflow.execute.mended import Mended
from dataflow.execute.metrics import Meters
from dataflow.execute.one_by_one import OneByOne
from dataflow.execute.operate import Operators
from dataflow.execute.pools import Pools
from dataflow.execute.position import Place
from dataflow.execute.replace import Replacer
from dataflow.execute.room import Room
from dataflow.execute.row_names import place_finder
from dataflow.execute.row_work import RowWork
from dataflow.execute.setup import Setup
from dataflow.execute.state import Deal
from dataflow.execute.streams import OpenStreams
from dataflow.execute.workbench import Bench
from dataflow.graph.block import BadSample

__all__ = ["Running", "Taken"]


# What operators get at a time.
_RANGE_BYTES, _RANGE_ROWS = 2 << 20, 1024
# A process may often have 1,024 in all.
_OPEN_FILES = 32


class Taken(NamedTuple):
    """One batch of one rank, the epoch and step that it is, and what a state keeps behind it."""

    batch: HostBatch
    epoch: int
    step: int
    after: Mapping[str, Json] | None
    last: bool  # of its epoch

    def place_behind(self, errors: int) -> Place:
        """The place of the batch that follows, with the bad rows counted so far."""
        if self.last:
            return Place(self.epoch + 1, 0, None, errors)
        return Place(self.epoch, self.step + 1, self.after, errors)


class Running:
    """Gives the batches of one rank from a place on; `at` is the epoch and step of the next one.

    Args:
        until: the epoch that another setup runs, so that this one stops in front of it; None for no end.
        gathers: what ranks exchange numbers over, None for a rank that runs all lanes.
        pools: where its tasks are done; closed with it.
        development: what makes the images that the plan leaves to be made of batches.
    """

    def __init__(
        self, setup: Setup, meters: Meters, place: Place, until: int | None, gathers: Gathers | None,
        pools: Pools, development: Development,
    ) -> None:  # fmt: skip
        self.setup, self.at = setup, (place.epoch, place.step)
        self._process = os.getpid()
        self._meters, self._pools = meters, pools
        self._streams = OpenStreams(
            setup.budget.slice_bytes, limit=2 * setup.batching.lanes + 2, open_files=_OPEN_FILES
        )
        self._memory = BufferPool(setup.budget.pace.limit_bytes)
        self._mended = Mended(setup.plan.stream)
        self._ranks: Ranks | None = None
        if setup.steps is None:
            if gathers is None and setup.world.size > 1:
                raise InternalError(f"{setup.world.size} ranks have nothing to exchange numbers over.")
            state = {**setup.base_state, **(place.after or DealtPlace.start(setup.batching.lanes).state())}
            self._ranks = Alone() if gathers is None else Together(gathers, setup.world.size, state)
        self._last = LastBad(place_finder(setup.plan.indexes))
        self._abandoned = False
        self._horizon = Horizon(place.epoch, setup.options.epochs, until)
        share = -(-setup.batching.batch // setup.world.size)
        self._developer = development.open(setup.plan, share, setup.options.threads, meters)
        self._finish = Finish(setup.plan.late_steps, setup.plan.seed, meters)
        self._ahead = Ahead(
            _within(self._horizon, self._driver(place)), self._let_go, min(DEPTH, setup.options.prefetch)
        )
        self._incoming = Incoming(self._ahead, self._developer, meters)
        _OPEN.add(self)

    def _bench(self) -> Bench:
        plan, options, budget = self.setup.plan, self.setup.options, self.setup.budget
        arrow = ArrowUse(budget.reader_bytes, budget.room_bytes)
        room = Room(
            budget.pace.limit_bytes + budget.arranging_bytes, options.memory_limit, budget.cut_bytes,
            budget.pace.row_bytes,
            in_use=lambda: self._memory.leased_bytes + arrow.all_bytes,
        )  # fmt: skip
        most_rows = max(1, min(_RANGE_ROWS, int(_RANGE_BYTES / max(plan.row_bytes, plan.delivered_bytes))))
        return Bench(
            work=RowWork(plan.program, plan.stream, plan.seed, tolerant=options.errors.on_error != "raise"),
            pools=self._pools,
            operators=Operators(self._pools, budget.output_bytes, most_rows),
            arranging=OneByOne(self._pools.compute),
            streams=self._streams,
            memory=Memory(self._memory, arrow, room),
            meters=self._meters,
            last=self._last,
        )

    def _driver(self, place: Place) -> Generator[Made, None, None]:
        setup, bench = self.setup, self._bench()
        mend = Replacer(bench, self._mended.note) if setup.options.errors.on_error == "replace" else None
        if setup.steps is not None:
            return KnownDriver(setup, bench, mend, self._horizon.reaches).run(place.epoch, place.step)
        assert self._ranks is not None
        dealt = DealtDriver(setup, bench, mend, self._ranks, place.errors)
        lanes = setup.batching.lanes
        at = DealtPlace.start(lanes) if place.after is None else DealtPlace.of(Deal.read(place.after, lanes))
        return dealt.run(place.epoch, place.step, at)

    def take(self) -> Taken | None:
        """The next batch of the epoch that this is in; waits for it. None where the epoch has no further one.

        Raises:
            DataflowError: what making it raised.
        """
        epoch, step = self.at
        self._horizon.begin(epoch)
        found = self._incoming.take(epoch)
        if found is None:
            self.at = (epoch + 1, 0)
            return None
        batch, made = found
        if isinstance(batch, BadSample):
            raise self._last.ends_with(batch)
        if self.setup.plan.late_steps:
            batch = self._finish(batch, epoch)
        if batch.replaced is not None:
            batch = batch.with_bad((*batch.bad, *self._mended.found_in(epoch, batch)))
        steps = self.setup.steps
        last = bool(made.last) if steps is None else step + 1 == steps.count
        self.at = (epoch + 1, 0) if last else (epoch, step + 1)
        return Taken(batch, epoch, step, made.after, last)

    def bad_behind(self, error: BaseException) -> list[BadSample]:
        """The bad rows that no batch reports, because the run has ended: with the error of one, or without a batch."""
        return [*self._incoming.left_bad, *self._last.ended_by(error)]

    def check_caller(self) -> None:
        """Refuse a caller that this itself has called: it would wait for itself.

        Raises:
            PlanError: a function of the pipeline asks its own loader.
        """
        if self._pools.runs_here:
            raise PlanError(
                "a function of the pipeline iterates the loader that runs it.",
                hint="iterate another loader, or the same one outside of the pipeline",
            )

    def _let_go(self) -> None:
        """What the driver's thread does last."""
        self._pools.close()
        self._streams.close()
        self._memory.close()
        if self._abandoned:
            # Else its batches are due still.
            self._close_developer()
        pa.default_memory_pool().release_unused()

    def _close_developer(self) -> None:
        if self._developer is not None:
            self._developer.close()

    def abandon(self) -> None:
        """Tell all threads to end, and wait for none. Takes no lock, so that a finalizer may call it."""
        self._abandoned = True
        self._ahead.abandon()
        if self._ranks is not None:
            self._ranks.abandon()

    def close(self) -> None:
        """End all threads; may be called twice. Behind a fork there are none: the locks of the parent's, which one of
        them may hold for ever, are left alone."""
        _OPEN.discard(self)
        if os.getpid() != self._process:
            return
        self.abandon()
        if self._ranks is not None:
            self._ranks.close()
        self._pools.close()
        self._ahead.join()
        self._close_developer()
        self._last.clear()


# Those that still run when the interpreter ends: their driver must not outlive it.
_OPEN: weakref.WeakSet[Running] = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    for running in list(_OPEN):
        running.close()


def _within(horizon: Horizon, driver: Generator[Made, None, None]) -> Generator[Made, None, None]:
    """What a driver makes up to the horizon, where it gives the mark of that end as often as it is asked for.

    A driver that ended there would take with it the batches that are still in the making.
    """
    with closing(driver):
        for made in driver:
            while made.ends_epoch and not horizon.reaches(made.epoch + 1):
                yield made
            yield made
            del made  # as in the driver
