"""`RowQueue`: the rows of one lane, taken from the front."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import numpy as np

from dataflow.errors import InternalError
from dataflow.execute.feed import LaneFeed
from dataflow.execute.replace import Mend
from dataflow.execute.segment import Segment

__all__ = ["RowQueue"]


class RowQueue:
    """The rows of one lane that this rank delivers, taken from the front; each bad row raises or is replaced.

    Args:
        mend: puts other rows in the place of a block's bad ones, or leaves them bad. The error of the first that
            is left is raised when its turn comes.
    """

    def __init__(self, feed: LaneFeed, mend: Mend | None) -> None:
        self.feed, self._mend = feed, mend
        self._ready: deque[Segment] = deque()
        self._error: Exception | None = None

    def take(self, rows: int) -> list[Segment]:
        """The next `rows` rows; waits for them. Nothing is taken where it raises.

        Raises:
            DataflowError: what reading them or an operator raised.
        """
        taken: list[Segment] = []
        left = rows
        while left > 0:
            try:
                head = self._ready.popleft() if self._ready else self._fetched()
            except Exception:
                self._ready.extendleft(reversed(taken))
                raise
            stop = min(head.stop, head.start + left)
            if stop > head.start:
                taken.append(Segment(head.block, head.start, stop))
            if stop < head.stop:
                self._ready.appendleft(Segment(head.block, stop, head.stop))
            left -= stop - head.start
        return taken

    def give_back(self, segments: Sequence[Segment]) -> None:
        """Put back what was taken last."""
        self._ready.extendleft(reversed(segments))

    def close(self) -> None:
        """Let go of the lane, and of its error, whose frames know this and a window."""
        self.feed.cancel()
        self._ready.clear()
        self._error = None

    def _fetched(self) -> Segment:
        if self._error is not None:
            raise self._error
        try:
            found = self.feed.next_block()
            if found is not None and self._mend is not None:
                found = self._mend(*found), found[1]
        except Exception as error:
            self._error = error
            raise
        if found is None:
            raise InternalError(f"lane {self.feed.lane} ended before its rows did.")
        block, _ = found
        if block.bad:
            first = min(block.bad, key=lambda bad: bad.origin)
            self._error = self.feed.bench.last.ends_with(first)
            return Segment(block, 0, int(np.searchsorted(block.origin, first.origin)))
        return Segment(block, 0, block.rows)
