"""The memory that Arrow takes beside windows and batches, and when what it keeps of freed memory is given back."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pyarrow as pa

__all__ = ["ArrowUse"]

# So much is taken between two looks at the memory of this process, which cost tens of microseconds each.
_LOOK_BYTES = 1 << 20
_PAGES = Path("/proc/self/statm")


class ArrowUse:
    """Memory that Arrow holds, and what its allocator keeps of the memory that was freed; thread-safe.

    Batches show parts of windows that stay Arrow; only Arrow knows when the last of them has died. Its allocator
    gives freed memory back to the system a second later, and every thread first takes its own: text that is read
    and brought into order at 250 MB/s leaves more behind in that second than a small limit allows.

    Args:
        expected_bytes: what decoders may be expected to hold, in use that does not count.
        room_bytes: how far the memory of this process may grow before freed memory is given back; None: as far as
            it will.
    """

    def __init__(self, expected_bytes: int, room_bytes: int | None = None) -> None:
        self._first = pa.total_allocated_bytes()
        self._expected_bytes, self._room_bytes = expected_bytes, room_bytes
        self._untold = 0
        self._lowest = _anonymous_bytes()  # since memory was last given back
        self._beside = self._lowest - self._first  # what is neither in use by Arrow nor kept by its allocator
        self._looking = threading.Lock()

    @property
    def bytes(self) -> int:
        """In use now, by whomever, beyond what was in use at first and what is expected."""
        return max(0, self.all_bytes - self._expected_bytes)

    @property
    def all_bytes(self) -> int:
        """In use now, by whomever, beyond what was in use at first."""
        return max(0, pa.total_allocated_bytes() - self._first)

    def took(self, nbytes: int) -> None:
        """Take notice that Arrow took memory; where there is no room for what it keeps, have that given back."""
        self._untold += nbytes  # a call that another thread overwrites only delays the next look
        if (
            self._room_bytes is None
            or self._untold < _LOOK_BYTES
            or not self._looking.acquire(blocking=False)
        ):
            return
        try:
            self._untold = 0
            self._look(self._room_bytes)
        finally:
            self._looking.release()

    def _look(self, room_bytes: int) -> None:
        held, used = _anonymous_bytes(), pa.total_allocated_bytes()
        self._beside = min(self._beside, held - used)
        self._lowest = min(self._lowest, held)
        # Memory that is given back must be cleared by the kernel before it is used again: not for a little.
        if held - self._first - self._beside <= room_bytes or held - self._lowest < room_bytes // 16:
            return
        pa.default_memory_pool().release_unused()
        self._lowest = held = _anonymous_bytes()
        used = pa.total_allocated_bytes()
        if held - used - self._beside > room_bytes:
            # Arrow cannot have kept so much: something else in this process has grown.
            self._beside = held - used


def _anonymous_bytes() -> int:
    """Memory of this process that no file stands behind; 0 where the system does not tell. See `man 5 proc`."""
    try:
        _, resident, shared, *_ = _PAGES.read_bytes().split()
    except OSError:
        return 0
    return (int(resident) - int(shared)) * os.sysconf("SC_PAGE_SIZE")
