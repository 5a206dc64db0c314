"""Room for windows: what they hold is counted as they are read, and those that nobody waits for stop where it is full.

The rows of a source may become a thousand times as large as those that were sampled for its index. Then more windows
are on their way than fit, and no estimate says so before they are read.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from concurrent.futures import CancelledError

from connectors.stop import stop_of_thread
from dataflow.errors import PlanError
from dataflow.wording import counted

__all__ = ["CutWindow", "Room", "Share"]

# Memory comes back when batches die, of which nobody is told.
_LOOK_S = 0.005
# So many times the limit ends a run: an estimate that is a little wrong shall not.
_FAR = 2


class CutWindow(Exception):
    """A window that may end anywhere holds more than it should; `row_bytes` are those of its largest rows."""

    def __init__(self, row_bytes: float) -> None:
        super().__init__(row_bytes)
        self.row_bytes = row_bytes


class Room:
    """Memory that the windows of a loader share; thread-safe.

    Args:
        window_bytes: what windows may hold, batches that still show them and the copy that brings one into order
            included, before reading ahead stops.
        limit_bytes: `memory_limit`.
        cut_bytes: what a window that may end anywhere may hold before it is cut into smaller ones.
        row_bytes: what a row is estimated to take.
        in_use: memory that windows and batches take now.
    """

    def __init__(
        self,
        window_bytes: float = math.inf,
        limit_bytes: float = math.inf,
        cut_bytes: float = math.inf,
        row_bytes: float = 0.0,
        in_use: Callable[[], int] = lambda: 0,
    ) -> None:
        self.limit_bytes, self.cut_bytes = limit_bytes, cut_bytes
        self.row_bytes = (
            row_bytes  # of the windows that are there, where they turn out larger, or else as estimated
        )
        self.held_bytes = 0
        self.beyond_bytes = 0.0  # what windows hold beyond the estimate
        self.largest_bytes = 0  # of the windows that are there, about
        self.needed = -1  # the last window that somebody waits for or has waited for
        self.lock = threading.Lock()
        self._window_bytes, self._in_use = window_bytes, in_use
        self._estimated_row_bytes = row_bytes
        self._shares = 0

    def share(self, rows: int, *, may_cut: bool = False) -> Share:
        """The share of the next window, which has so many rows. Called by one thread."""
        self._shares += 1
        return Share(self, self._shares, rows, self._estimated_row_bytes, may_cut=may_cut)

    @property
    def is_full(self) -> bool:
        """Whether there is no room to bring a window into order, beside what is there."""
        return self._in_use() + self.largest_bytes > self._window_bytes


class Share:
    """What one window holds of columns whose size is known only when they are there; thread-safe."""

    def __init__(self, room: Room, number: int, rows: int, row_bytes: float, *, may_cut: bool) -> None:
        self.nbytes = 0
        self._room, self._number, self._rows, self._may_cut = room, number, rows, may_cut
        self._row_bytes, self._estimate = row_bytes, rows * row_bytes
        self._beyond_bytes = self._largest = 0.0
        self._released = False

    def need(self) -> None:
        """Somebody waits for this window: it is read however full it is, and so are those that began before it."""
        self._room.needed = max(self._room.needed, self._number)

    def wait(self) -> None:
        """Wait until there is room to read on, or the window is needed, or nobody wants it any more."""
        room = self._room
        while self._number > room.needed and not self._released and room.is_full:
            if stop_of_thread().wait(_LOOK_S):
                return

    def took(self, nbytes: int, rows: int) -> None:
        """Count what was read of some rows, or made of them.

        Raises:
            CutWindow: the window may be cut, and should.
            PlanError: the windows that are needed at once take far more than `memory_limit`.
            CancelledError: nobody wants the window any more.
        """
        room = self._room
        with room.lock:
            if self._released:
                raise CancelledError
            self.nbytes += nbytes
            before, self._beyond_bytes = self._beyond_bytes, max(0.0, self.nbytes - self._estimate)
            room.beyond_bytes += self._beyond_bytes - before
            room.held_bytes += nbytes
            room.largest_bytes = max(room.largest_bytes, self.nbytes)
            room.row_bytes = max(room.row_bytes, self.nbytes / max(1, self._rows))
            beside = room.held_bytes - self.nbytes
        self._largest = max(self._largest, nbytes / max(1, rows))
        if self._may_cut and self.nbytes > room.cut_bytes:
            raise CutWindow(self._largest)
        # Once more for the copy that brings it into order. Windows that are not needed yet will wait for the others.
        need = 2 * self.nbytes + (beside if self._number <= room.needed else 0)
        if need > _FAR * room.limit_bytes:
            raise self._too_large(beside)

    def _too_large(self, beside: int) -> PlanError:
        others = f", beside {beside / 1e6:.0f} MB of other windows" if beside >= 5e5 else ""
        return PlanError(
            f"a window of {counted(self._rows, 'row')} takes {self.nbytes / 1e6:.0f} MB so far, and once more to be "
            f"brought into order{others}; memory_limit is {self._room.limit_bytes / 1e6:.0f} MB.",
            hint="use a smaller shuffle(window=...), in rows, fewer lanes, or a larger memory_limit",
        )

    def release(self) -> None:
        """The window holds nothing any more; may be called twice."""
        room = self._room
        with room.lock:
            if not self._released:
                self._released = True
                if self.nbytes:
                    room.held_bytes -= self.nbytes
                    room.beyond_bytes -= self._beyond_bytes
                    # The next ones are like the last one.
                    room.largest_bytes = self.nbytes
                    room.row_bytes = max(self._row_bytes, self.nbytes / max(1, self._rows))
