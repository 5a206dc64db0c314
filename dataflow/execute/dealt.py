"""The driver behind row-changing operators: batches are dealt round-robin from the lanes that still have rows.

How many rows a lane gives is known only when it has run. Each rank runs its own lanes; one batch ahead of
assembly all ranks tell each other what their lanes can give, so that every rank deals the same batch.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from connectors.contract import Json
from dataflow.errors import DataError, InternalError, RankError
from dataflow.execute.agree import Ranks, Word, lanes_of
from dataflow.execute.assemble import HostBatch, LaneRows, assemble, padded
from dataflow.execute.feed import LaneFeed, LanePlace
from dataflow.execute.finish import Finish
from dataflow.execute.made import Made
from dataflow.execute.needs import ALL_ROWS
from dataflow.execute.open_lanes import OpenLanes
from dataflow.execute.outputs import Cursor, LaneOutputs
from dataflow.execute.quarantine import too_many
from dataflow.execute.read_ahead import ReadAhead
from dataflow.execute.remainder import say_left_over
from dataflow.execute.replace import Mend
from dataflow.execute.segment import Segment
from dataflow.execute.setup import Setup
from dataflow.execute.state import Deal
from dataflow.execute.workbench import Bench
from dataflow.graph.block import BadSample
from dataflow.order.batches import RankShare, split
from dataflow.order.deal import Dealt, deal, first_cap
from dataflow.order.epoch import EpochOrder
from dataflow.order.reach import reach
from dataflow.wording import counted

__all__ = ["DealtDriver", "DealtPlace"]


@dataclass(frozen=True, slots=True)
class DealtPlace:
    """Where an epoch stands: the cursor of every lane, and the lane at which the deal goes on."""

    cursors: tuple[Cursor, ...]
    turn: int

    @classmethod
    def start(cls, lanes: int) -> DealtPlace:
        return cls((Cursor(),) * lanes, 0)

    def state(self) -> dict[str, Json]:
        """As it stands in a state."""
        return {"cursors": [[c.row, c.sub] for c in self.cursors], "turn": self.turn}

    @classmethod
    def of(cls, deal: Deal) -> DealtPlace:
        """Where a state says that the deal stood."""
        return cls(tuple(Cursor(row, sub) for row, sub in deal.cursors), deal.turn)


class _Settled(NamedTuple):
    """The next batch: the rows that each lane gives and whose turn it is behind it, which all ranks know; this
    rank's share; the place in front of it. Or the error that it is, and the bad rows that are too many."""

    counts: tuple[int, ...]
    turn: int
    share: RankShare
    place: DealtPlace
    error: Exception | None = None
    too_many: tuple[BadSample, ...] = ()


_NO_SHARE = RankShare((), None, None)


class DealtDriver:
    """Makes the batches of one rank, epoch after epoch, from a place on.

    Args:
        errors: the bad rows in front of that place.
    """

    def __init__(self, setup: Setup, bench: Bench, mend: Mend | None, ranks: Ranks, errors: int = 0) -> None:
        self._setup, self._bench, self._mend, self._ranks = setup, bench, mend, ranks
        self._batching, self._rank, self._world = setup.batching, setup.world.rank, setup.world.size
        self._own = lanes_of(self._rank, self._world, self._batching.lanes)
        self._ahead = ReadAhead(bench, setup.budget.pace)
        self._finish = Finish(setup.plan.batch_steps[1:], setup.plan.seed, bench.meters)
        self._errors, self._max_errors = errors, setup.options.errors.max_errors
        self._straws: list[BadSample] = []  # the bad rows of a batch up to the first that is not borne
        self._said = False

    def run(self, epoch: int, step: int, place: DealtPlace) -> Generator[Made, None, None]:
        """Batches from a place on, without end; an epoch's last is followed by one that `ends_epoch`."""
        try:
            while True:
                yield from self._run_epoch(epoch, step, place)
                epoch, step, place = epoch + 1, 0, DealtPlace.start(self._batching.lanes)
        finally:
            # However it ends, the other ranks must not wait for this one.
            self._ranks.close()

    def _run_epoch(self, epoch: int, step: int, place: DealtPlace) -> Iterator[Made]:
        make = partial(self._outputs, self._setup.order(epoch), epoch)
        with closing(OpenLanes(make, self._ahead, epoch, self._own)) as lanes:
            lanes.keep(self._reach(range(self._batching.lanes)), place.cursors)
            now = self._settle(lanes, epoch, step, place, None)
            if now.error is not None:
                yield from self._ends_with(epoch, step, now.error, now.too_many)
            if not self._is_batch(now) and step == 0:
                left = tuple(lanes.left_bad())
                yield Made(epoch, step, [], left_bad=left)
                raise self._no_batch(epoch, sum(now.counts), len(left))
            while self._is_batch(now):
                batch, failure = self._tried(lanes, now, epoch)
                behind = DealtPlace(now.place.cursors, now.turn)
                try:
                    after = self._settle(lanes, epoch, step + 1, behind, failure)
                    last = after.error is None and not self._is_batch(after)
                    if last:
                        batch, failure = self._with_left(lanes, batch)
                        if self._bench.work.tolerant:
                            self._heard(Word(epoch, step + 1, failure is not None, lanes.offers(0)), failure)
                except DataError as error:
                    yield from self._ends_with(epoch, step, error, tuple(self._straws))
                assert batch is not None
                # What is wrong with the next batch is said when that is due: this one is whole.
                yield Made(epoch, step, [batch], after=after.place.state(), last=last)
                # By now it was taken: it must not be held while the next one is made.
                del batch
                if after.error is not None:
                    yield from self._ends_with(epoch, step + 1, after.error, after.too_many)
                step, now = step + 1, after
            self._say_left_out(epoch, sum(now.counts))
        yield Made(epoch, step, [], ends_epoch=True)

    @staticmethod
    def _ends_with(
        epoch: int, step: int, error: Exception, too_many: tuple[BadSample, ...]
    ) -> Iterator[Made]:
        """The end of the run at an error; the bad rows that it is about are written down, too.

        Raises:
            Exception: the error.
        """
        if too_many:
            yield Made(epoch, step, [], left_bad=too_many)
        raise error

    def _outputs(self, order: EpochOrder, epoch: int, lane: int, cursor: Cursor) -> LaneOutputs:
        stride = self._batching.batch // self._batching.lanes
        feed = LaneFeed(self._bench, order, LanePlace(epoch, lane, cursor.row), ALL_ROWS, stride)
        return LaneOutputs(feed, cursor, self._mend, tolerant=self._bench.work.tolerant)

    def _reach(self, alive: Sequence[int]) -> set[int]:
        """The lanes from which this rank's shares come as long as these lanes go on."""
        if not alive:
            return set()
        places = reach(len(alive), self._batching.batch, self._rank, self._world)
        return {alive[place] for place in places}

    def _is_batch(self, settled: _Settled) -> bool:
        return sum(settled.counts) >= (self._batching.batch if self._batching.remainder == "drop" else 1)

    # ---- what the next batch is

    def _settle(
        self, lanes: OpenLanes, epoch: int, step: int, place: DealtPlace, failure: Exception | None
    ) -> _Settled:
        """The batch of `step`: `place` has the lane whose turn it is, the cursors are what the lanes' owners say.

        Args:
            failure: what kept this rank from its share of the batch in front.

        Raises:
            DataflowError: `failure`; a RankError where another rank has one, or the ranks cannot agree.
        """
        cap = first_cap(self._batching.batch, self._batching.lanes)
        while True:
            words = self._heard(
                Word(epoch, step, failure is not None, lanes.offers(cap, self._bearable)), failure
            )
            offers = [offer for word in words for offer in word.offers]
            now = DealtPlace(tuple(Cursor(offer.row, offer.sub) for offer in offers), place.turn)
            found = deal(
                [o.rows for o in offers], [o.ended for o in offers], place.turn, self._batching.batch
            )
            if isinstance(found, Dealt):
                settled = self._settled(found, now)
                alive = [lane for lane, offer in enumerate(offers) if offer.rows or not offer.ended]
                lanes.keep(self._reach(alive) | {part.lane for part in settled.share.parts}, now.cursors)
                return settled
            if offers[found.lane].failed:
                error, bad = self._lane_error(lanes, found.lane)
                return _Settled((), place.turn, _NO_SHARE, now, error, bad)
            # A lane that has failed and was not reached belongs to a later batch.
            cap *= 2

    def _settled(self, dealt: Dealt, place: DealtPlace) -> _Settled:
        counts, turn = dealt
        rows = sum(counts)
        size = self._batching.batch if self._batching.remainder == "pad" else rows
        share = split(counts, [0] * len(counts), size, self._rank, self._world)
        error = None
        if self._batching.remainder == "keep" and 0 < rows < self._world:
            error = DataError(
                f"the last batch has {counted(rows, 'row')} for {self._world} ranks.",
                hint="use remainder='pad'",
            )
        return _Settled(counts, turn, share, place, error)

    def _heard(self, word: Word, failure: Exception | None) -> list[Word]:
        """Every rank's word. A batch that one rank cannot have its share of is an error on all of them."""
        try:
            words = self._ranks.exchange(word)
        except RankError:
            if failure is None:
                raise
        if failure is not None:
            raise failure
        failed = [rank for rank, said in enumerate(words) if said.failed]
        if failed:
            raise RankError(
                f"ranks {failed} failed to make their share of step {word.step - 1}.",
                hint=f"the error itself is in the log of rank {failed[0]}",
            )
        return words

    @property
    def _bearable(self) -> int | None:
        """How many more bad rows may be left out; None: any number."""
        return None if self._max_errors is None else max(0, self._max_errors - self._errors)

    def _lane_error(self, lanes: OpenLanes, lane: int) -> tuple[Exception, tuple[BadSample, ...]]:
        """What ended a lane that has failed: its error on the rank that owns it, a RankError on the others.

        And its bad rows where that is because they are too many.
        """
        bad = tuple(lanes.unbearable(lane)) if lane in self._own else ()
        if bad and self._max_errors is not None:
            return too_many(self._errors + len(bad), self._max_errors, bad[-1], self._bench.last.place), bad
        error = lanes.error(lane) if lane in self._own else None
        if error is not None:
            return error, ()
        owner = lane * self._world // self._batching.lanes
        failed = RankError(
            f"rank {owner} failed in lane {lane}.", hint=f"its own error is in the log of rank {owner}"
        )
        return failed, ()

    # ---- this rank's share of it

    def _tried(
        self, lanes: OpenLanes, settled: _Settled, epoch: int
    ) -> tuple[HostBatch | None, Exception | None]:
        """This rank's share, or what went wrong with it: the others must hear of that first."""
        try:
            return self._share(lanes, settled, epoch), None
        except Exception as error:
            return None, error

    def _share(self, lanes: OpenLanes, settled: _Settled, epoch: int) -> HostBatch:
        """This rank's part of a dealt batch; the lanes are moved behind the whole batch."""
        share = settled.share
        given = lanes.take(settled.counts)
        rows = [LaneRows(part.rows, _cut(given[part.lane], part.start, part.rows)) for part in share.parts]
        if not rows:
            raise InternalError("a rank got no row of a batch.")
        batch = assemble(rows, 1, self._bench.memory.buffers)[0]
        if share.slots is not None and share.valid is not None:
            batch = padded(batch, share.slots, share.valid)
        return self._finish(batch, epoch).with_bad(self._reported(lanes.passed_bad()))

    def _with_left(
        self, lanes: OpenLanes, batch: HostBatch | None
    ) -> tuple[HostBatch | None, Exception | None]:
        """The last batch of an epoch, which reports the bad rows behind it, too; or that they are too many."""
        assert batch is not None
        try:
            return batch.with_bad((*batch.bad, *self._reported(lanes.left_bad()))), None
        except DataError as error:
            return None, error

    def _reported(self, bad: list[BadSample]) -> list[BadSample]:
        """Bad rows that a batch reports: they count for those that follow it.

        Raises:
            DataError: those of all lanes of this rank are more than `max_errors`; no rank delivers the batch.
        """
        most = self._max_errors
        if bad and most is not None and self._errors + len(bad) > most:
            self._straws = bad[: max(0, most - self._errors) + 1]
            raise too_many(self._errors + len(self._straws), most, self._straws[-1], self._bench.last.place)
        self._errors += len(bad)
        return bad

    # ---- the end of an epoch

    def _no_batch(self, epoch: int, rows: int, bad: int) -> DataError:
        beside = f" beside {counted(bad, 'bad row')} on this rank" if bad else ""
        return DataError(
            f"epoch {epoch} gives {counted(rows, 'row')}{beside}, not one batch of {self._batching.batch}.",
            hint="look at the bad rows: quarantine= lists them"
            if bad
            else "use remainder='pad', or a smaller batch"
            if rows
            else "no row is kept: look at the filters",
        )

    def _say_left_out(self, epoch: int, rows: int) -> None:
        """One line at the first epoch's end at which rows are left out; rank 0 speaks for all."""
        if rows and not self._said and self._rank == 0:
            self._said = True
            say_left_over(epoch, rows, self._batching.batch)


def _cut(segments: Sequence[Segment], start: int, rows: int) -> list[Segment]:
    """Rows `start` to `start + rows` of segments one behind the other."""
    out, at = [], 0
    for segment in segments:
        size = segment.stop - segment.start
        low, high = max(start - at, 0), min(start + rows - at, size)
        if low < high:
            out.append(Segment(segment.block, segment.start + low, segment.start + high))
        at += size
    return out
