"""Tasks that take much memory each, run one at a time on a pool that has other work."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

__all__ = ["OneByOne"]


class OneByOne:
    """Hands the next task to a pool when the one before is done, so that no thread of the pool waits; thread-safe.

    Args:
        submit: hands a task to the pool.
    """

    def __init__(self, submit: Callable[[Callable[[], Any]], Future[Any]]) -> None:
        self._submit = submit
        self._lock = threading.Lock()
        self._waiting: deque[Callable[[], None]] = deque()
        self._busy = False

    def run(self, task: Callable[[], Any], ended: Callable[[Future[Any]], None]) -> None:
        """Run a task behind those handed in before; `ended` is called with its future, as a done-callback.

        A pool that takes no task gives a future with its error.
        """
        with self._lock:
            self._waiting.append(lambda: self._begin(task, ended))
            begin = None if self._busy else self._waiting.popleft()
            self._busy = True
        if begin is not None:
            begin()

    def _begin(self, task: Callable[[], Any], ended: Callable[[Future[Any]], None]) -> None:
        future: Future[Any]
        try:
            future = self._submit(task)
        except RuntimeError as refused:
            future = Future()
            future.set_exception(refused)
        future.add_done_callback(lambda done: self._ended(done, ended))

    def _ended(self, done: Future[Any], ended: Callable[[Future[Any]], None]) -> None:
        ended(done)
        if done.cancelled():
            return  # the pool is being closed, and holds a lock that `submit` needs
        with self._lock:
            begin = self._waiting.popleft() if self._waiting else None
            self._busy = begin is not None
        if begin is not None:
            begin()
