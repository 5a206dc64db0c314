"""`ReadAhead`: which lane starts its next window, and when."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from itertools import count

from dataflow.execute.budget import Pace
from dataflow.execute.feed import LaneFeed
from dataflow.execute.workbench import Bench

__all__ = ["ReadAhead"]

# What a window that is on its way takes beside its rows: their ids and places, and some objects.
_ORDER_BYTES = 16 << 10
_ORDER_ROW_BYTES = 24


class ReadAhead:
    """Starts windows in the order in which steps need them, as far as count and bytes allow.

    Args:
        pace: has the memory that windows, those being taken included, may hold, and as much as is worth reading
            ahead; two windows are always worth it.
    """

    def __init__(self, bench: Bench, pace: Pace) -> None:
        self._bench, self._row_bytes = bench, pace.row_bytes
        self._limit_bytes, self._ahead_bytes = pace.limit_bytes, pace.ahead_bytes
        self._feeds: list[LaneFeed] = []
        self._heap: list[tuple[int, int, int, LaneFeed]] = []
        self._tie = count()

    def add(self, epoch: int, feeds: Sequence[LaneFeed]) -> None:
        """Consider the lanes of one more epoch."""
        self._feeds.extend(feeds)
        for feed in feeds:
            self._push(epoch, feed)

    def _push(self, epoch: int, feed: LaneFeed) -> None:
        if feed.next_step is not None:
            heapq.heappush(self._heap, (epoch, feed.next_step, next(self._tie), feed))

    @property
    def exhausted(self) -> bool:
        """Whether all windows of the lanes that were added are started."""
        return not self._heap

    def top_up(self) -> None:
        """Start what fits."""
        self._feeds = [feed for feed in self._feeds if not feed.is_over]
        for feed in self._feeds:
            if feed.goes_on:
                feed.goes_on = False
                self._push(feed.epoch, feed)
        ahead = sum(feed.ahead for feed in self._feeds)
        # Rows that were read may be larger than those that were sampled: those to come are like them.
        row_bytes = max(self._row_bytes, self._bench.memory.room.row_bytes)
        ahead_bytes = ahead * _ORDER_BYTES + (row_bytes + _ORDER_ROW_BYTES) * sum(
            feed.ahead_rows for feed in self._feeds
        )
        while self._heap and (ahead < 2 or ahead_bytes < self._ahead_bytes):
            epoch, _, _, feed = self._heap[0]
            rows = feed.next_rows
            # What is in use counts memory that batches still show; what is estimated, windows yet to be read.
            in_use = self._bench.memory.buffers.leased_bytes + self._bench.memory.arrow.bytes
            estimated = (
                self._row_bytes * sum(f.held_rows for f in self._feeds) + self._bench.memory.room.beyond_bytes
            )
            if rows and max(in_use, estimated) + rows * row_bytes > self._limit_bytes:
                return
            heapq.heappop(self._heap)
            if rows:
                # `take` may have started the window of this entry already: the entry then stands for the next one.
                feed.start_next()
                ahead += 1
                ahead_bytes += _ORDER_BYTES + rows * (row_bytes + _ORDER_ROW_BYTES)
            self._push(epoch, feed)
