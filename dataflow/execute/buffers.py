"""Reused memory for windows and batches, and the memory that Arrow takes beside it.

A fresh buffer costs a page fault every 4 KiB: with them the scatter of a window ran at 0.75 of plain
reading, with reused ones at 0.86. A buffer comes back when the last array over it dies, whoever holds it.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import threading
import weakref
from collections import deque
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

__all__ = ["ArrowUse", "BufferPool"]

# Smaller arrays are left to NumPy, which keeps them itself.
_SMALLEST = 1 << 16
# So much is taken between two looks at the memory of this process, which cost 10 microseconds each.
_LOOK_BYTES = 1 << 20
_PAGES = Path("/proc/self/statm")


class BufferPool:
    """Hands out arrays over memory that is used again; thread-safe.

    Args:
        keep_bytes: memory in use and kept for the next use, beyond which none is kept.
    """

    def __init__(self, keep_bytes: int) -> None:
        self._keep_bytes = keep_bytes
        self._free: dict[int, list[mmap.mmap]] = {}
        self._free_bytes = 0
        self._leased = 0
        self._lock = threading.Lock()
        # Appending to a deque is safe in a finalizer, which may run inside any of our own locked regions.
        self._returned: deque[mmap.mmap] = deque()

    @property
    def leased_bytes(self) -> int:
        """Memory that some array still shows."""
        with self._lock:
            self._take_back()
            return self._leased

    def close(self) -> None:
        """Let go of all memory that is not in use, now and when it comes back."""
        with self._lock:
            self._keep_bytes = 0
            self._free.clear()
            self._free_bytes = 0
            self._take_back()

    def empty(self, shape: tuple[int, ...], dtype: npt.DTypeLike) -> npt.NDArray[np.generic]:
        """An uninitialised, writable, C-contiguous array."""
        wanted = np.dtype(dtype)
        count = int(np.prod(shape, dtype=np.int64))
        nbytes = count * wanted.itemsize
        if nbytes < _SMALLEST:
            return np.empty(shape, wanted)
        memory = self._lease(_rounded(nbytes))
        # The one object at the bottom of every array over this memory: when it dies, nobody sees it any more.
        handle = (ctypes.c_char * len(memory)).from_buffer(memory)
        weakref.finalize(handle, self._returned.append, memory).atexit = False
        flat: npt.NDArray[np.generic] = np.frombuffer(memoryview(handle), wanted, count)
        return flat.reshape(shape)

    def _lease(self, size: int) -> mmap.mmap:
        with self._lock:
            self._take_back()
            memory = self._kept(size)
            if memory is None:
                if self._leased + size + self._free_bytes > self._keep_bytes:
                    self._free.clear()
                    self._free_bytes = 0
                memory = _fresh(size)
            # Only now: the system may have had none.
            self._leased += len(memory)
            return memory

    def _kept(self, size: int) -> mmap.mmap | None:
        """Kept memory of that size or a little more: the windows of an epoch differ in it."""
        fitting = [held for held in self._free if size <= held <= size + size // 4]
        if not fitting:
            return None
        best = min(fitting)
        memory = self._free[best].pop()
        self._free_bytes -= best
        if not self._free[best]:
            del self._free[best]
        return memory

    def _take_back(self) -> None:
        while self._returned:
            memory = self._returned.popleft()
            size = len(memory)
            self._leased -= size
            if self._leased + self._free_bytes + size <= self._keep_bytes:
                self._free.setdefault(size, []).append(memory)
                self._free_bytes += size


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
        return max(0, pa.total_allocated_bytes() - self._first - self._expected_bytes)

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


def _fresh(size: int) -> mmap.mmap:
    memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    if hasattr(mmap, "MADV_HUGEPAGE"):
        # One fault for 2 MB instead of 512.
        memory.madvise(mmap.MADV_HUGEPAGE)
    return memory


def _rounded(nbytes: int) -> int:
    # Steps of an eighth of a power of two, so that windows of nearly one size share memory; what a window does not
    # use of it is never touched.
    step = max(_SMALLEST, 1 << max(0, nbytes.bit_length() - 3))
    return -(-nbytes // step) * step
