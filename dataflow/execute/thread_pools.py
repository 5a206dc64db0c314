"""Threads: one pool that reads, one that computes, so that a slow store never idles a core."""

from __future__ import annotations

import atexit
import os
import threading
import weakref
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import ParamSpec, TypeVar

from connectors.stop import end_waits_at, stop_of_thread

__all__ = ["ThreadPools"]

P = ParamSpec("P")
T = TypeVar("T")

# A remote read waits, a local one computes (decompresses, decodes).
_REMOTE_READERS = 16


class ThreadPools:
    """Two thread pools; NumPy, Arrow and the decoders release the GIL in the heavy parts.

    Args:
        threads: threads that compute, and that read from a local disk.
        remote: a store is reached over a network, so that more threads read.
    """

    def __init__(self, threads: int, *, remote: bool) -> None:
        self._threads = threads
        self._process = os.getpid()
        self._stop = threading.Event()
        _IN_USE.add(self)
        readers = max(threads, _REMOTE_READERS) if remote else threads
        self._planner = self._pool(1, "plan")
        self._readers = self._pool(readers, "read")
        self._workers = self._pool(threads, "compute")

    def _pool(self, threads: int, name: str) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(
            threads, thread_name_prefix=f"dataflow-{name}", initializer=end_waits_at, initargs=(self._stop,)
        )

    @property
    def threads(self) -> int:
        return self._threads

    @property
    def closed(self) -> bool:
        return self._stop.is_set()

    @property
    def runs_here(self) -> bool:
        """Whether the calling thread is one of these."""
        return stop_of_thread() is self._stop

    def plan(self, task: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        return self._planner.submit(task, *args, **kwargs)

    def read(self, task: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        return self._readers.submit(task, *args, **kwargs)

    def compute(self, task: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        return self._workers.submit(task, *args, **kwargs)

    def stop(self) -> None:
        """Let tasks that wait for something end. Not behind a fork: a thread of the parent may hold that lock."""
        if os.getpid() == self._process:
            self._stop.set()

    def close(self, *, wait: bool = True) -> None:
        self.stop()
        self._planner.shutdown(wait=wait, cancel_futures=True)
        self._readers.shutdown(wait=wait, cancel_futures=True)
        self._workers.shutdown(wait=wait, cancel_futures=True)


_IN_USE: weakref.WeakSet[ThreadPools] = weakref.WeakSet()


def _stop_all() -> None:
    for pools in list(_IN_USE):
        pools.stop()


# The interpreter waits for the threads of all executors before it runs what `atexit` knows, hence CPython's own.
getattr(threading, "_register_atexit", atexit.register)(_stop_all)
