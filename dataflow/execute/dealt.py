"""The driver behind row-changing operators: batches are dealt round-robin from the lanes that still have rows.

How many rows a lane gives is known only when it has run. Each rank runs its own lanes; one batch ahead of
assembly all ranks tell each other what their lanes can give, so that every rank deals the same batch.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from connectors.contract import Json
from dataflow.errors import DataError, InternalError, PlanError, RankError
from dataflow.execute.agree import Offer, Ranks, lanes_of
from dataflow.execute.assemble import HostBatch, LaneRows, assemble, padded
from dataflow.execute.feed import ALL_ROWS, LaneFeed, Mend, ReadAhead, Segment
from dataflow.execute.job import Bench
from dataflow.execute.known import Made, Pace
from dataflow.graph.block import BadSample, Block
from dataflow.order.batches import Batching, split
from dataflow.order.deal import deal
from dataflow.order.epoch import EpochOrder

__all__ = ["Cursor", "DealtDriver", "DealtPlace"]


@dataclass(frozen=True, slots=True)
class Cursor:
    """A place in a lane: the next source row, and how many outputs of it have been given."""

    row: int = 0
    sub: int = 0


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
    def from_state(cls, state: Mapping[str, Json], lanes: int) -> DealtPlace:
        """What `state` made.

        Raises:
            PlanError: it has no cursor for each lane.
        """
        try:
            pairs: list[list[int]] = state["cursors"]  # type: ignore[assignment]
            cursors = tuple(Cursor(int(row), int(sub)) for row, sub in pairs)
            turn = int(state["turn"])  # type: ignore[arg-type]
        except (KeyError, TypeError, ValueError):
            cursors, turn = (), 0
        if len(cursors) != lanes or not 0 <= turn < lanes or any(c.row < 0 or c.sub < 0 for c in cursors):
            raise PlanError(
                f"the state has no cursor for each of its {lanes} lanes.",
                hint="pass what state_dict() returned",
            )
        return cls(cursors, turn)


@dataclass(frozen=True, slots=True)
class _Held:
    """A block of outputs, and the lane rows of its window. `whole`: it has all outputs of the window, permuted."""

    block: Block
    start: int
    stop: int
    whole: bool

    def behind(self, row: int) -> Cursor:
        """The cursor behind row `row - 1` of the block."""
        if self.whole:
            return Cursor(self.start, row) if row < self.block.rows else Cursor(self.stop, 0)
        origin = self.block.origin
        last = int(origin[row - 1])
        if row < len(origin) and origin[row] == last:
            return Cursor(self.start + last, row - int(np.searchsorted(origin, last)))
        return Cursor(self.start + last + 1, 0)


class _Lane:
    """The outputs of one lane from a cursor on."""

    def __init__(self, feed: LaneFeed, cursor: Cursor, mend: Mend | None, tolerant: bool) -> None:
        self.feed, self.cursor = feed, cursor
        self._mend, self._tolerant = mend, tolerant
        self._skip = cursor.sub
        self._held: deque[tuple[_Held, int]] = deque()
        self._rows = 0
        self._bad: deque[tuple[int, BadSample]] = deque()
        self._ended = False
        self.error: Exception | None = None

    def offer(self, cap: int) -> Offer:
        """What the lane can give, up to `cap` rows."""
        while self._rows <= cap and not self._ended and self.error is None:
            self._fetch()
        rows = min(self._rows, cap)
        behind = rows == self._rows
        return Offer(
            rows, behind and self._ended, self.cursor.row, self.cursor.sub, behind and self.error is not None
        )

    def _fetch(self) -> None:
        try:
            found = self.feed.next_block()
        except Exception as error:
            self.error = error
            return
        if found is None:
            self._ended = True
            return
        block, job = found
        start, whole = job.window.start, self.feed.bench.program.chunk is None
        if self._mend is not None:
            block = self._mend(block, job)
        elif block.bad and not self._tolerant:
            first = min(block.bad, key=lambda bad: bad.origin)
            self.error = self.feed.bench.located(first)
            block = block.slice(0, int(np.searchsorted(block.origin, first.origin)))
        if self._mend is None:
            # Those that were replaced are counted where the rows that stand in for them are delivered.
            self._bad.extend((start + bad.origin, bad) for bad in block.bad)
        skip = min(self._skip, block.rows)
        self._skip -= skip
        if block.rows > skip:
            self._held.append((_Held(block, start, job.window.stop, whole), skip))
            self._rows += block.rows - skip

    def take(self, rows: int) -> list[Segment]:
        """The next `rows` outputs, which an offer has promised; the cursor goes behind them."""
        taken: list[Segment] = []
        while rows:
            if not self._held:
                if self.error is not None:
                    raise self.error
                if self._ended:
                    raise InternalError(f"lane {self.feed.lane} gave less than it offered.")
                self._fetch()
                continue
            held, at = self._held.popleft()
            stop = min(held.block.rows, at + rows)
            taken.append(Segment(held.block, at, stop))
            self.cursor = held.behind(stop)
            if stop < held.block.rows:
                self._held.appendleft((held, stop))
            rows -= stop - at
            self._rows -= stop - at
        return taken

    def passed_bad(self) -> list[BadSample]:
        """Bad rows in front of the cursor that have not been reported."""
        passed = []
        over = self._ended and not self._held
        while self._bad and (over or self._bad[0][0] < self.cursor.row):
            passed.append(self._bad.popleft()[1])
        return passed


class _Settled(NamedTuple):
    """What all ranks know of the next batch: the rows of each lane, whose turn it is behind it, the place in front
    of it; or the error that it is."""

    counts: tuple[int, ...]
    turn: int
    place: DealtPlace
    error: Exception | None


def _too_few(rows: int, world: int) -> DataError:
    return DataError(f"the last batch has {rows} rows for {world} ranks.", hint="use remainder='pad'")


class DealtDriver:
    """Makes the batches of one rank, epoch after epoch, from a place on."""

    def __init__(
        self, bench: Bench, make_order: Callable[[int], EpochOrder], batching: Batching, rank: int, world: int,
        pace: Pace, mend: Mend | None, ranks: Ranks,
    ) -> None:  # fmt: skip
        self._bench, self._make_order, self._batching = bench, make_order, batching
        self._rank, self._world, self._pace = rank, world, pace
        self._mend, self._ranks = mend, ranks
        self._own = lanes_of(rank, world, batching.lanes)
        self._lanes: dict[int, _Lane] = {}
        self._ahead = ReadAhead(bench, pace.row_bytes, pace.limit_bytes, pace.ahead_bytes)

    def run(self, epoch: int, step: int, place: DealtPlace) -> Generator[Made, None, None]:
        """Batches from a place on, without end; an epoch's last is followed by one that `ends_epoch`."""
        try:
            while True:
                yield from self._run_epoch(epoch, step, place)
                epoch, step, place = epoch + 1, 0, DealtPlace.start(self._batching.lanes)
        finally:
            for lane in self._lanes.values():
                lane.feed.cancel()
            self._lanes.clear()

    def _run_epoch(self, epoch: int, step: int, place: DealtPlace) -> Iterator[Made]:
        order = self._make_order(epoch)
        self._lanes = {lane: self._open(order, epoch, lane, place.cursors[lane]) for lane in self._own}
        self._ahead.add(epoch, [lane.feed for lane in self._lanes.values()])
        now = self._settle(place)
        if now.error is not None:
            raise now.error
        if not self._is_batch(now) and step == 0:
            raise DataError(
                f"epoch {epoch} gives {sum(now.counts)} rows, not one batch of {self._batching.batch}.",
                hint="use remainder='pad', or a smaller batch",
            )
        while self._is_batch(now):
            batch = self._share(order, epoch, now)
            after = self._settle(DealtPlace(now.place.cursors, now.turn))
            last = after.error is None and not self._is_batch(after)
            # What is wrong with the next batch is said when that is due: this one is whole.
            yield Made(epoch, step, [batch], after=after.place.state(), last=last)
            if after.error is not None:
                raise after.error
            step, now = step + 1, after
        yield Made(epoch, step, [], ends_epoch=True)

    def _open(self, order: EpochOrder, epoch: int, lane: int, cursor: Cursor) -> _Lane:
        passes = self._bench.stream.passes
        turns = range(epoch * passes, (epoch + 1) * passes)
        stride = self._batching.batch // self._batching.lanes
        feed = LaneFeed(self._bench, order, turns, lane, cursor.row, ALL_ROWS, stride)
        return _Lane(feed, cursor, self._mend, self._bench.tolerant)

    def _is_batch(self, settled: _Settled) -> bool:
        return sum(settled.counts) >= (self._batching.batch if self._batching.remainder == "drop" else 1)

    def _settle(self, place: DealtPlace) -> _Settled:
        """The next batch: `place` has the lane whose turn it is, the cursors are what the lanes' owners say."""
        cap = max(1, 4 * self._batching.batch // self._batching.lanes)
        while True:
            self._ahead.top_up()
            offers = self._ranks.exchange([self._lanes[lane].offer(cap) for lane in self._own])
            now = DealtPlace(tuple(Cursor(offer.row, offer.sub) for offer in offers), place.turn)
            dealt = deal(
                [o.rows for o in offers], [o.ended for o in offers], place.turn, self._batching.batch
            )
            if dealt is not None:
                rows = sum(dealt[0])
                few = self._batching.remainder == "keep" and 0 < rows < self._world
                return _Settled(*dealt, now, _too_few(rows, self._world) if few else None)
            error = self._failure(offers)
            if error is not None:
                return _Settled((), place.turn, now, error)
            cap *= 2

    def _failure(self, offers: Sequence[Offer]) -> Exception | None:
        """Where a lane has failed that the deal reaches: its error here, a RankError on the other ranks."""
        failed = [lane for lane, offer in enumerate(offers) if offer.failed]
        for lane in failed:
            if lane in self._own and (error := self._lanes[lane].error) is not None:
                return error
        if not failed:
            return None
        owner = failed[0] * self._world // self._batching.lanes
        return RankError(
            f"rank {owner} failed in lane {failed[0]}.", hint=f"its own error is in the log of rank {owner}"
        )

    def _share(self, order: EpochOrder, epoch: int, settled: _Settled) -> HostBatch:
        """This rank's part of a dealt batch, its lanes moved behind the whole batch."""
        counts, place = settled.counts, settled.place
        pad = self._batching.remainder == "pad"
        size = self._batching.batch if pad else sum(counts)
        share = split(counts, [0] * len(counts), size, self._rank, self._world)
        wanted = {part.lane: part for part in share.parts}
        for lane in wanted:
            if lane not in self._lanes:
                self._lanes[lane] = self._open(order, epoch, lane, place.cursors[lane])
        rows: list[LaneRows] = []
        bad: list[BadSample] = []
        for number, outputs in sorted(self._lanes.items()):
            given = outputs.take(counts[number])
            part = wanted.get(number)
            if part is not None:
                rows.append(LaneRows(part.rows, _cut(given, part.start, part.rows)))
            if number in self._own:
                bad.extend(outputs.passed_bad())
        batch = assemble(rows, 1, self._bench.memory)[0] if rows else None
        if batch is None:
            raise InternalError("a rank got no row of a batch.")
        if share.slots is not None and share.valid is not None:
            batch = padded(batch, share.slots, share.valid)
        return batch.with_bad(bad)


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
