"""The loader: epochs one after the other, a position that can be saved and restored, and a clean end."""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from copy import deepcopy
from dataclasses import replace
from types import TracebackType
from typing import Generic, NoReturn, Self, TypeVar, cast

import numpy as np
import pyarrow as pa

from connectors.contract import Json
from dataflow.errors import ConnectorError, DataError, InternalError, LoaderClosed, PlanError
from dataflow.execute.advice import advice
from dataflow.execute.agree import Gathers
from dataflow.execute.assemble import HostBatch
from dataflow.execute.clock import Clock
from dataflow.execute.course import Course, resume
from dataflow.execute.dealt import DealtPlace
from dataflow.execute.develop import ByKernel, Development
from dataflow.execute.executor import Executor, ThreadExecutor
from dataflow.execute.iteration import EpochIterator, check_process
from dataflow.execute.metrics import Meters
from dataflow.execute.position import Place, Position
from dataflow.execute.quarantine import Quarantine
from dataflow.execute.remainder import say_left_out
from dataflow.execute.report import render_report
from dataflow.execute.row_names import place_finder
from dataflow.execute.running import Running, Taken
from dataflow.execute.setup import check_start, make_setup
from dataflow.execute.state import NUMBERS_BELOW, State
from dataflow.execute.trace import Recorder
from dataflow.execute.writable import check_files
from dataflow.given import as_whole, check_flags
from dataflow.graph.node import Node
from dataflow.options import LoaderOptions, World
from dataflow.wording import counted

__all__ = ["Loader"]

T = TypeVar("T")
_BY_KERNEL = ByKernel()


class Loader(Generic[T]):
    """Iterates batches; one `for` is one epoch.

    Args:
        convert: makes of a rank's rows, and the schema they have where it is known, what the user gets.
        gathers: opens what ranks exchange numbers over, where lengths are not known beforehand; all ranks call it
            with what no step changes of their states, which must be the same on all.
        development: what makes images behind `batch`; without, the kernel makes all of them.
    """

    def __init__(
        self, node: Node, seed: int, options: LoaderOptions, world: World,
        convert: Callable[[HostBatch, pa.Schema | None], T],
        gathers: Callable[[Mapping[str, Json]], Gathers] | None = None,
        development: Development = _BY_KERNEL,
    ) -> None:  # fmt: skip
        self._node, self._seed, self._options, self._world = node, seed, options, world
        self._convert, self._make_gathers = convert, gathers
        self._gathers: Gathers | None = None
        self._executor: Executor = ThreadExecutor()
        self._development = development
        self._closed = False
        self._process = os.getpid()
        self._running: Running | None = None
        # Weak: an iterator that nobody holds is one that was broken off.
        self._iterator: Callable[[], EpochIterator[T] | None] = lambda: None
        self._meters = Meters(Recorder() if options.trace is not None else None)
        self._clock = Clock()
        self._delivered = 0
        self._begun: Course | None = None
        self._position = Position(Place(0, 0, None, 0))
        self._quarantine = Quarantine(options.errors, {}, 0)
        check_files(options)
        try:
            check_start(node, world.size)
        except PlanError:
            if world.size == 1:
                raise
            # A state of a run that began on another number of ranks may be loaded; else `_course` says it.
            return
        course = Course.steady(make_setup(node, seed, options, world, images=self._development.backend))
        self._meet(course)
        self._stand(course, Place(0, 0, None, 0))

    def _stand(self, course: Course, place: Place) -> None:
        """Be at a place of a course, with nothing delivered yet."""
        self._begun, self._position = course, Position(place)
        # Rows keep their numbers when files join, so that one list of sources places those of all epochs.
        self._quarantine = Quarantine(self._options.errors, course.later.plan.indexes, place.errors)

    @property
    def _course(self) -> Course:
        """Which setup each epoch has.

        Raises:
            PlanError: no run can begin on this number of ranks, and no state was loaded.
        """
        if self._begun is None:
            try:
                check_start(self._node, self._world.size)
            except PlanError as error:
                raise PlanError(error.message, hint=f"{error.hint}, or load the saved state first") from None
            raise InternalError("a loader that may start has no course.")
        return self._begun

    def _meet(self, course: Course) -> None:
        """Open what ranks exchange numbers over, where a course needs that.

        Raises:
            PlanError: there is no process group.
            RankError: the ranks run different orders.
        """
        lengths_known = course.later.steps is not None
        if lengths_known or self._world.size == 1 or self._gathers is not None:
            return
        if self._make_gathers is None:
            raise PlanError(
                f"{self._world.size} ranks without a process group, and how many rows each gets is not known "
                "beforehand.",
                hint="initialise torch.distributed, or, where filters alone decide about rows, call counted()",
            )
        self._gathers = self._make_gathers(course.later.base_state)

    # ---- position

    @property
    def epoch(self) -> int:
        """The epoch of the next batch."""
        return self._position.place.epoch

    @property
    def step(self) -> int:
        """The step of the next batch in its epoch."""
        return self._position.place.step

    def __len__(self) -> int:
        """The steps of a whole epoch: of the one that the running `for` is in, else of that of the next `for`.

        Raises:
            TypeError: the pipeline changes the number of rows, so that only running it can tell.
        """
        steps = self._course.at(self._due[0]).steps
        if steps is None:
            raise TypeError(
                "the length is known only when the epoch has run: a function decides about rows; of filters counted() "
                "finds it out"
            )
        return steps.count

    @property
    def rank(self) -> int:
        """Which of the data-parallel ranks this loader is for, from 0."""
        return self._world.rank

    @property
    def world_size(self) -> int:
        """How many data-parallel ranks share the rows."""
        return self._world.size

    @property
    def remaining(self) -> int:
        """The batches that the next (or the running) `for` yields.

        Raises:
            TypeError: as `len`.
        """
        return len(self) - self._due[1]

    @property
    def _due(self) -> tuple[int, int]:
        """Epoch and step at which the running, else the next, `for` goes on."""
        iterator = self._iterator()
        if self._position.settled or (iterator is not None and not iterator.closed):
            return self.epoch, self.step
        return self.epoch + 1, 0

    def set_epoch(self, epoch: int) -> None:
        """Let the next `for` run `epoch`: from its start, or from the restored place if that is in it.

        Raises:
            PlanError: it is no epoch.
        """
        # A state may hold the epoch behind it as well.
        last = NUMBERS_BELOW - 2
        epoch = as_whole(
            epoch,
            f"set_epoch({epoch!r}) is no epoch.",
            hint=f"epochs are whole numbers from 0 to {last:,}",
            least=0,
            below=last + 1,
        )
        if self._position.settled and epoch == self.epoch:
            return
        self._stop_iterator()
        self._position.start(epoch, self._quarantine.errors)

    # ---- state

    def state_dict(self, lag: int = 0) -> dict[str, Json]:
        """The place behind the batch delivered `lag` batches ago, as plain numbers and strings (JSON).

        Raises:
            PlanError: `lag` is negative, or more batches than are kept (64) or were delivered.
        """
        place = self._position.before(lag)
        setup = self._course.at(place.epoch)
        state = {**setup.base_state, "epoch": place.epoch, "step": place.step, "errors": place.errors}
        if setup.steps is None:
            state |= place.after or DealtPlace.start(setup.batching.lanes).state()
        return deepcopy(state)

    def load_state_dict(self, state: Mapping[str, Json], *, new_files: bool = False) -> None:
        """Go on behind the batch at which `state` was saved; on any number of ranks.

        Files that are there since then are left out, with a warning. With `new_files` they join, behind the
        old ones, at the next epoch that begins; states of that epoch and later ones have them.

        Raises:
            PlanError: it is no state, or of another pipeline: names what differs. Or the new files do not fit
                in memory, or in the pipeline.
            DataError: files of the saved run are gone or changed, or new ones would change the old ones' rows.
        """
        self._check_open()
        check_flags("load_state_dict", new_files=new_files)
        saved = State.read(state)
        course = resume(
            self._node,
            self._seed,
            self._options,
            self._world,
            saved,
            new_files=new_files,
            images=self._development.backend,
        )
        place = _place_of(saved)
        # What is refused leaves the loader as it is: nothing is stopped before all has been asked.
        self._meet(course)
        self._stop_iterator()
        self._halt()
        self._quarantine.close()
        self._stand(course, place)

    # ---- iteration

    def __iter__(self) -> Iterator[T]:
        self._check_open()
        if self._running is not None:
            self._running.check_caller()
        self._stop_iterator()
        if not self._position.settled:
            self._pass_end()
        place = self._position.place
        setup = self._course.at(place.epoch)
        running = self._running
        if running is None or running.setup is not setup or running.at != (place.epoch, place.step):
            self._halt()
            until = self._course.until(place.epoch)
            pools = self._executor.pools(setup)
            running = self._running = Running(
                setup, self._meters, place, until, self._gathers, pools, self._development
            )
        if not self._clock.started:
            say_left_out(setup)
        iterator = EpochIterator(running, self._clock.start(), self._deliver, self._pass_end, self._give_up)
        self._iterator = weakref.ref(iterator)
        return iterator

    def _pass_end(self) -> None:
        self._position.start(self.epoch + 1, self._quarantine.errors)

    def _deliver(self, taken: Taken) -> T:
        """Hand out one batch: convert it, and only then count its bad rows and move the place behind it."""
        setup, batch = self._course.at(taken.epoch), taken.batch
        if setup.batching.remainder == "pad" and batch.valid is None:
            batch = replace(batch, valid=np.ones(batch.rows, np.bool_))
        self._quarantine.check(batch.bad)
        with self._meters.busy("deliver") as stage:
            stage.rows = rows = batch.rows
            try:
                result = self._convert(batch, setup.delivered_schema)
            except DataError as error:
                if error.sample is not None and not error.file:
                    error.locate(*place_finder(setup.plan.indexes)(error.sample))
                raise
        self._quarantine.add(batch.bad)
        self._position.pass_batch(taken.place_behind(self._quarantine.errors))
        self._delivered += rows
        return result

    # ---- what it says

    def stats(self) -> dict[str, Json]:
        """Rows, bytes, busy and waiting seconds of every stage; what limits throughput, and what would help.

        `elapsed_s` is the time between the begin and the end of each `for`; `images` says what makes images, and why;
        nothing where there are none.
        """
        elapsed = self._clock.elapsed_s
        stages = self._meters.snapshot()
        limit, hint = advice(stages, elapsed, self._options.threads)
        return {
            "elapsed_s": round(elapsed, 6), "rows": self._delivered, "epoch": self.epoch, "step": self.step,
            "rows_per_s": round(self._delivered / elapsed, 3) if elapsed else 0.0,
            "errors": self._quarantine.errors, "limited_by": limit, "advice": hint,
            "images": list(self._development.says), "stages": cast(Json, stages),
        }  # fmt: skip

    def __repr__(self) -> str:
        begun = None if self._begun is None else self._course.at(self.epoch).batching.batch
        batch = "no batch yet" if begun is None else f"global batch of {counted(begun, 'row')}"
        rank = f"rank {self._world.rank} of {self._world.size}"
        return f"<{type(self).__name__}: {batch}, {rank}, epoch {self.epoch}, step {self.step}>"

    def report(self) -> str:
        """`stats()` as a table of text."""
        return render_report(self.stats())

    # ---- end

    def close(self) -> None:
        """End threads, drop what was read ahead, write the trace; may be called twice.

        Raises:
            ConnectorError: the trace cannot be written; all else has ended.
        """
        if self._closed:
            return
        self._closed = True
        # The last one here is the first to be called; what one of them raises keeps none of the others from it.
        with ExitStack() as ending:
            ending.callback(self._write_trace)
            if self._gathers is not None:
                ending.callback(self._gathers.shutdown)
            ending.callback(self._quarantine.close)
            ending.callback(self._executor.close)
            ending.callback(self._halt)
            ending.callback(self._stop_iterator)

    def _write_trace(self) -> None:
        file = self._options.trace
        if file is None or self._meters.recorder is None:
            return
        try:
            self._meters.recorder.write(file, rank=self._world.rank)
        except OSError as problem:
            raise ConnectorError(
                f"the timeline could not be written to trace={str(file)!r}: {problem.strerror or problem}.",
                hint="make room or rights there; no batch is lost by it, and states that were saved hold",
            ) from problem

    def __reduce__(self) -> NoReturn:
        # What asks for it: pickle, and both kinds of copy.
        raise PlanError(
            "a loader cannot be pickled or copied: its threads and its place are those of one process.",
            hint="pickle the pipeline and loader.state_dict(), and make a loader of them where it runs; for a "
            "DataLoader use loader.as_iterable_dataset() with num_workers=0",
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.close()
        except ConnectorError as problem:
            if error is None:
                raise
            # What ended the run is what the user sees.
            error.add_note(f"and {problem.message}")

    def __del__(self) -> None:
        # The collector may run this on any thread, even on one of the loader's own: nothing is waited for.
        running = getattr(self, "_running", None)
        if running is not None:
            running.abandon()

    def _check_open(self) -> None:
        if self._closed:
            raise LoaderClosed("the loader is closed.", hint="make a new one with pipe.loader(...)")
        check_process(self._process)

    def _stop_iterator(self) -> None:
        iterator = self._iterator()
        if iterator is not None:
            iterator.close()

    def _give_up(self, error: BaseException) -> None:
        """End what runs behind an error; the rows that it leaves behind go to the quarantine before."""
        if self._running is not None:
            self._quarantine.add_last(self._running.bad_behind(error))
        self._halt()

    def _halt(self) -> None:
        """End the threads and drop what was made ahead; the place stays."""
        running, self._running = self._running, None
        if running is not None:
            running.close()


def _place_of(state: State) -> Place:
    """The place that a state was saved at."""
    after = None if state.deal is None else DealtPlace.of(state.deal).state()
    return Place(state.epoch, state.step, after, state.errors)
