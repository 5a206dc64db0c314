"""The driver where the lengths of lanes are known: which rows make which batch is arithmetic."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Future

import pyarrow as pa

from dataflow.errors import InternalError
from dataflow.execute.assemble import HostBatch, LaneRows, assemble, padded
from dataflow.execute.dense import dense_shape
from dataflow.execute.feed import LaneFeed, LanePlace
from dataflow.execute.finish import Finish
from dataflow.execute.made import Made
from dataflow.execute.needs import Needs
from dataflow.execute.read_ahead import ReadAhead
from dataflow.execute.replace import Mend
from dataflow.execute.row_queue import RowQueue
from dataflow.execute.setup import Setup
from dataflow.execute.workbench import Bench
from dataflow.options import World
from dataflow.order.batches import RankShare, Steps

__all__ = ["KnownDriver"]

# A run of rows that are not of one size is taken in so many times as many steps as have been weighed: rows may be a
# thousand times as large as those of the run before.
_LEAP = 4


class _Epoch:
    """The lanes of one epoch on this rank, from a step on."""

    def __init__(self, setup: Setup, bench: Bench, mend: Mend | None, epoch: int, step: int) -> None:
        self.number, self.step = epoch, step
        self.first_turn = epoch * bench.work.stream.passes
        steps, order = _known(setup), setup.order(epoch)
        stride = steps.batching.batch // steps.batching.lanes
        rows = steps.taken(step)

        def queue(lane: int, needs: Needs) -> RowQueue:
            place = LanePlace(epoch, lane, int(rows[lane]))
            return RowQueue(LaneFeed(bench, order, place, needs, stride), mend)

        needed = _needs(steps, step, setup.world)
        self.lanes = {lane: queue(lane, needs) for lane, needs in needed.items()}

    def close(self) -> None:
        """Let go of all lanes."""
        for lane in self.lanes.values():
            lane.close()


def _known(setup: Setup) -> Steps:
    """The steps of a setup whose lanes have known lengths."""
    if setup.steps is None:
        raise InternalError("lengths are not known, and the driver needs them.")
    return setup.steps


def _needs(steps: Steps, step: int, here: World) -> dict[int, Needs]:
    """Which rows of which lanes a rank delivers from `step` to the end of the epoch."""
    rank, world = here.rank, here.size
    regular = min(steps.regular, steps.count)
    extra: dict[int, list[tuple[int, int]]] = {}
    for late in range(max(step, regular), steps.count):
        for last in steps.share(late, rank, world).parts:
            extra.setdefault(last.lane, []).append((last.start, last.start + last.rows))
    stride = steps.batching.batch // steps.batching.lanes
    needs = {lane: Needs(0, 0, 0, 0, tuple(ranges)) for lane, ranges in extra.items()}
    if step < regular:
        for part in steps.plan_run(step, regular, rank, world):
            ranges = tuple(extra.get(part.lane, ()))
            needs[part.lane] = Needs(part.first, part.rows, stride, regular * stride, ranges)
    return dict(sorted(needs.items()))


class KnownDriver:
    """Makes the batches of one rank, epoch after epoch, from a position on.

    Args:
        reaches: whether an epoch may be read ahead now.
    """

    def __init__(self, setup: Setup, bench: Bench, mend: Mend | None, reaches: Callable[[int], bool]) -> None:
        self._setup, self._bench, self._mend, self._reaches = setup, bench, mend, reaches
        self._steps, self._pace = _known(setup), setup.budget.pace
        self._rank, self._world = setup.world.rank, setup.world.size
        self._ahead = ReadAhead(bench, self._pace)
        self._epochs: list[_Epoch] = []
        self._finish = Finish(setup.plan.batch_steps[1:], setup.plan.seed, bench.meters)
        self._step_bytes = 0.0
        self._even = _is_even(setup.plan.schema)

    def run(self, epoch: int, step: int) -> Generator[Made, None, None]:
        """Batches from (`epoch`, `step`) on, without end; an epoch's last is followed by one that `ends_epoch`."""
        try:
            self._open(epoch, step)
            while True:
                now = self._epochs[0]
                yield from self._run_epoch(now)
                yield Made(now.number, self._steps.count, [], ends_epoch=True)
                if len(self._epochs) == 1:
                    self._open(now.number + 1, 0)
                self._epochs.pop(0).close()
        finally:
            for open_epoch in self._epochs:
                open_epoch.close()
            self._epochs.clear()

    def _open(self, epoch: int, step: int) -> None:
        opened = _Epoch(self._setup, self._bench, self._mend, epoch, step)
        self._epochs.append(opened)
        self._ahead.add(epoch, [lane.feed for lane in opened.lanes.values()])

    def _top_up(self) -> None:
        self._ahead.top_up()
        following = self._epochs[0].number + 1
        if self._ahead.exhausted and len(self._epochs) == 1 and self._reaches(following):
            # All of this epoch is being read: begin the next one, so that the boundary costs nothing.
            self._open(following, 0)
            self._ahead.top_up()

    def _run_epoch(self, now: _Epoch) -> Iterator[Made]:
        step, count = now.step, self._steps.count
        regular = min(self._steps.regular, count)
        steps = 1
        while step < count:
            self._top_up()
            if step < regular:
                # The first run is one batch, so that it comes as soon as its rows are there.
                stop = min(regular, step + steps)
                try:
                    done, made = self._run(now, step, stop)
                except Exception:
                    # The bad row may belong to a later one of these steps: those before it are delivered.
                    done, made = self._run(now, step, step + 1)
                steps = self._next_steps(done)
                yield Made(now.number, step, made)
                del made  # once taken, the user alone holds it while the next one is made
                step += done
            else:
                yield Made(
                    now.number, step, self._last(now, self._steps.share(step, self._rank, self._world))
                )
                step += 1

    def _next_steps(self, steps: int) -> int:
        """Twice as many steps as the run before had, within the bounds; what operators give is known only now."""
        if self._finish.works:
            return 1  # where one fails, those in front of it are delivered
        fitting = int(self._pace.run_bytes / max(1.0, self._step_bytes))
        return max(1, min(2 * steps, self._pace.run_steps, fitting))

    def _run(
        self, now: _Epoch, start: int, stop: int
    ) -> tuple[int, list[HostBatch] | Future[list[HostBatch]]]:
        """How many of the regular steps from `start` on fit into one run, and their batches; where it raises, nothing
        is taken."""
        until = stop if self._even else start + 1
        lanes = self._taken(now, start, until)
        nbytes = _bytes_of(lanes)
        while until < stop and 2 * nbytes <= self._pace.run_bytes:
            leap = min(_LEAP, self._pace.run_bytes / max(1.0, nbytes))
            again = min(stop, start + int(leap * (until - start)))
            try:
                more = self._taken(now, until, again)
            except Exception:
                break  # it is raised again when its step is due
            lanes = [lane.followed_by(behind) for lane, behind in zip(lanes, more, strict=True)]
            nbytes, until = nbytes + _bytes_of(more), again
        steps = until - start
        self._step_bytes = nbytes / steps
        if len(lanes) == 1 and len(lanes[0].segments) == 1 and not self._finish.works:
            return steps, self._assemble(now, lanes, steps)
        return steps, self._bench.pools.compute(self._assemble, now, lanes, steps)

    def _taken(self, now: _Epoch, start: int, stop: int) -> list[LaneRows]:
        """The rows of regular steps; waits for them. Where it raises, nothing is taken."""
        lanes: list[LaneRows] = []
        self._bench.operators.want((now.first_turn, stop - 1))
        parts = self._steps.plan_run(start, stop, self._rank, self._world)
        try:
            with self._bench.meters.waiting("assemble"):
                for part in parts:
                    lanes.append(LaneRows(part.rows, now.lanes[part.lane].take(part.rows * (stop - start))))
        except Exception:
            for part, lane in zip(parts, lanes, strict=False):
                now.lanes[part.lane].give_back(lane.segments)
            raise
        return lanes

    def _assemble(
        self, now: _Epoch, lanes: list[LaneRows], steps: int, share: RankShare | None = None
    ) -> list[HostBatch]:
        """The batches of these steps as they are delivered; of the last one that is padded, as `share` has it."""
        with self._bench.meters.busy("assemble") as stage:
            batches = assemble(lanes, steps, self._bench.memory.buffers)
            stage.rows = sum(batch.rows for batch in batches)
            if share is not None and share.slots is not None and share.valid is not None:
                batches = [padded(batches[0], share.slots, share.valid)]
        return [self._finish(batch, now.number) for batch in batches]

    def _last(self, now: _Epoch, share: RankShare) -> list[HostBatch]:
        lanes = [LaneRows(part.rows, now.lanes[part.lane].take(part.rows)) for part in share.parts]
        return self._assemble(now, lanes, 1, share)


def _is_even(schema: pa.Schema | None) -> bool:
    """Whether all rows are of one size."""
    return schema is not None and all(dense_shape(column.type) is not None for column in schema)


def _bytes_of(lanes: Sequence[LaneRows]) -> float:
    return sum([segment.nbytes for lane in lanes for segment in lane.segments])
