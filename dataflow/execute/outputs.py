"""The outputs of one lane behind operators that change the number of rows, in order, from a cursor on."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import numpy as np

from dataflow.errors import DataError
from dataflow.execute.agree import Offer
from dataflow.execute.feed import LaneFeed, Mend, Segment
from dataflow.graph.block import BadSample, Block

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


class LaneOutputs:
    """A queue that is filled as far as it is asked for.

    Args:
        feed: the lane's windows from the cursor's row on.
        mend: puts other rows in the place of a block's bad ones.
        tolerant: bad rows are left out, and reported; else the first one ends the lane with its error.
    """

    def __init__(self, feed: LaneFeed, cursor: Cursor, mend: Mend | None, *, tolerant: bool) -> None:
        self.feed, self.cursor = feed, cursor
        self._mend, self._tolerant = mend, tolerant
        self._skip = cursor.sub
        self._held: deque[tuple[_Held, int]] = deque()
        self._rows = 0
        self._bad: deque[tuple[int, BadSample]] = deque()
        self._ended = False
        self.error: Exception | None = None

    def offer(self, cap: int) -> Offer:
        """What the lane can give, up to `cap` rows; waits for them. What goes wrong is in the offer."""
        while self._rows <= cap and not self._over:
            self._fetch()
        rows = min(self._rows, cap)
        behind = rows == self._rows
        return Offer(
            rows, behind and self._ended, self.cursor.row, self.cursor.sub, behind and self.error is not None
        )

    @property
    def _over(self) -> bool:
        return self._ended or self.error is not None

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
        start = job.window.start
        if self._mend is None:
            # Those that were replaced are counted where the rows that stand in for them are delivered.
            block = block if self._tolerant else self._up_to_bad(block)
            self._bad.extend((start + bad.origin, bad) for bad in block.bad)
        skip = min(self._skip, block.rows)
        self._skip -= skip
        if block.rows > skip:
            whole = self.feed.bench.program.chunk is None
            self._held.append((_Held(block, start, job.window.stop, whole), skip))
            self._rows += block.rows - skip

    def _up_to_bad(self, block: Block) -> Block:
        """The rows in front of the first bad one, whose error ends the lane."""
        if not block.bad:
            return block
        first = min(block.bad, key=lambda bad: bad.origin)
        self.error = self.feed.bench.ends_with(first)
        return block.slice(0, int(np.searchsorted(block.origin, first.origin)))

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
                f"lane {self.feed.lane} ends {rows} rows before the batch that was dealt from it on another rank.",
                hint="functions must give the same rows for the same input on every rank; rng=True gives them "
                "random numbers that are",
            )
        self._fetch()

    def passed_bad(self) -> list[BadSample]:
        """Bad rows in front of the cursor that have not been reported."""
        passed = []
        over = self._ended and not self._held
        while self._bad and (over or self._bad[0][0] < self.cursor.row):
            passed.append(self._bad.popleft()[1])
        return passed
