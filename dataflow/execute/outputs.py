"""The outputs of one lane behind operators that change the number of rows, in order, from a cursor on."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from itertools import islice

import numpy as np

from dataflow.errors import DataError
from dataflow.execute.agree import Offer
from dataflow.execute.feed import LaneFeed
from dataflow.execute.replace import Mend
from dataflow.execute.segment import Segment
from dataflow.graph.block import BadSample, Block
from dataflow.wording import counted

__all__ = ["Cursor", "LaneOutputs"]


@dataclass(frozen=True, slots=True)
class Cursor:
    """A place in a lane: the next source row, and how many outputs of it have been given."""

    row: int = 0
    sub: int = 0


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

    def in_front_of(self, row: int) -> int:
        """The rows of the block behind which the cursor is not behind lane row `row`."""
        if row >= self.stop:
            return self.block.rows
        return 0 if self.whole else int(np.searchsorted(self.block.origin, row - self.start))


class LaneOutputs:
    """A queue that is filled as far as it is asked for.

    Args:
        feed: the lane's windows from the cursor's row on.
        mend: puts other rows in the place of a block's bad ones, or leaves them bad.
        tolerant: bad rows are left out, and reported; else, and behind `mend`, the first ends the lane with its error.
    """

    def __init__(self, feed: LaneFeed, cursor: Cursor, mend: Mend | None, *, tolerant: bool) -> None:
        self.feed, self.cursor = feed, cursor
        self._mend, self._tolerant = mend, tolerant
        self._skip = cursor.sub
        self._held: deque[tuple[_Held, int]] = deque()
        self._rows = 0
        self._bad: deque[tuple[int, BadSample]] = deque()
        self._bearable: int | None = None
        self._stop = 0  # the lane row behind the last window that has come
        self._ended = False
        self.error: Exception | None = None

    def offer(self, cap: int, bearable: int | None = None) -> Offer:
        """What the lane can give, up to `cap` rows; waits for them. What goes wrong is in the offer.

        Args:
            bearable: how many more bad rows are borne, None: any number. No batch has a row behind one more than
                that: the lane is read no further, and fails there.
        """
        self._bearable = bearable
        while self._rows <= cap and not self._over:
            self._fetch()
        most = self._rows if self._last_straw is None else self._rows_in_front_of(self._last_straw)
        rows = min(most, cap)
        behind = rows == most
        over = self._last_straw is not None
        return Offer(
            rows, behind and self._ended and not over, self.cursor.row, self.cursor.sub,
            behind and (over or self.error is not None),
        )  # fmt: skip

    @property
    def _last_straw(self) -> int | None:
        """The lane row of the first bad one that is not borne, None where all that have been met are."""
        if self._bearable is None or len(self._bad) <= self._bearable:
            return None
        return self._bad[self._bearable][0]

    def _rows_in_front_of(self, row: int) -> int:
        return sum(max(0, held.in_front_of(row) - at) for held, at in self._held)

    def unbearable(self) -> list[BadSample]:
        """The bad rows up to the first that is not borne; none where all are."""
        if self._bearable is None or self._last_straw is None:
            return []
        return [bad for _, bad in islice(self._bad, self._bearable + 1)]

    @property
    def _whole(self) -> bool:
        """Whether operators want all rows of a window at once."""
        return self.feed.bench.work.program.chunk is None

    @property
    def _over(self) -> bool:
        return self._ended or self.error is not None or self._last_straw is not None

    def _fetch(self) -> None:
        try:
            found = self.feed.next_block()
            if found is None:
                self._ended = True
                return
            block, job = found
            if self._mend is not None:
                block = self._mend(block, job)
        except Exception as error:
            self.error = error
            return
        start, self._stop = job.window.start, job.window.stop
        if self._mend is not None or not self._tolerant:
            block = self._up_to_bad(block)
        # Those that were replaced are counted where the rows that stand in for them are delivered.
        self._bad.extend((start + bad.origin, bad) for bad in sorted(block.bad, key=lambda bad: bad.origin))
        skip = min(self._skip, block.rows)
        self._skip -= skip
        if block.rows > skip:
            self._held.append((_Held(block, start, job.window.stop, self._whole), skip))
            self._rows += block.rows - skip

    def _up_to_bad(self, block: Block) -> Block:
        """The rows in front of the first bad one, whose error ends the lane.

        None of a window whose outputs are permuted: a row that was never made has no place among them.
        """
        if not block.bad:
            return block
        first = min(block.bad, key=lambda bad: bad.origin)
        self.error = self.feed.bench.last.ends_with(first)
        front = 0 if self._whole else int(np.searchsorted(block.origin, first.origin))
        return block.slice(0, front)

    def take(self, rows: int) -> list[Segment]:
        """The next `rows` outputs, which an offer has promised; the cursor goes behind them.

        Raises:
            DataflowError: what making them raised, or here they are not what they were on another rank.
        """
        taken: list[Segment] = []
        while rows:
            if not self._held:
                self._fetch_promised(rows)
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

    def _fetch_promised(self, rows: int) -> None:
        if self.error is not None:
            raise self.error
        if self._ended:
            raise DataError(
                f"lane {self.feed.lane} ends {counted(rows, 'row')} before the batch that was dealt from it on "
                "another rank.",
                hint="functions must give the same rows for the same input on every rank; rng=True gives them "
                "random numbers that are",
            )
        self._fetch()

    def close(self) -> None:
        """Let go of the lane, and of its error, whose frames know this and a window."""
        self.feed.cancel()
        self._held.clear()
        self.error = None

    def left_bad(self) -> list[BadSample]:
        """The bad rows that have not been reported, in front of the cursor or behind it."""
        left = [bad for _, bad in self._bad]
        self._bad.clear()
        return left

    def passed_bad(self) -> list[BadSample]:
        """Bad rows in front of the cursor that have not been reported; at the lane's end it goes behind the last."""
        passed = []
        over = self._ended and not self._held and self._last_straw is None
        if over:
            self.cursor = Cursor(max(self.cursor.row, self._stop))
        while self._bad and (over or self._bad[0][0] < self.cursor.row):
            passed.append(self._bad.popleft()[1])
        return passed
