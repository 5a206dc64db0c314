"""Tasks that take much memory each, run one at a time on a pool that has other work."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

__all__ = ["OneByOne"]


Task = tuple[Callable[[], Any], Callable[[Future[Any]], None]]


class OneByOne:
    """Hands the next task to a pool when the one before is done, so that no thread of the pool waits; thread-safe.

    Args:
        submit: hands a task to the pool.
    """

    def __init__(self, submit: Callable[[Callable[[], Any]], Future[Any]]) -> None:
        self._submit = submit
        self._lock = threading.Lock()
        self._waiting: deque[Task] = deque()
        self._busy = False
        self._closed = False

    def run(self, task: Callable[[], Any], ended: Callable[[Future[Any]], None]) -> None:
        """Run a task behind those handed in before; `ended` is called with its future, as a done-callback.

        Where the pool takes no task the future has its error; behind that, or where it was closed, it is cancelled.
        """
        with self._lock:
            self._waiting.append((task, ended))
            next_task = self._next()
        self._begin(next_task)

    def _next(self) -> Task | None:
        if self._closed or self._busy or not self._waiting:
            return None
        self._busy = True
        return self._waiting.popleft()

    def _begin(self, next_task: Task | None) -> None:
        if self._closed:
            self._cancel_all()
        if next_task is None:
            return
        task, ended = next_task
        future: Future[Any]
        try:
            future = self._submit(task)
        except RuntimeError as refused:
            future = Future()
            future.set_exception(refused)
            # It will take none of the others either.
            self._closed = True
        future.add_done_callback(lambda done: self._ended(done, ended))

    def _ended(self, done: Future[Any], ended: Callable[[Future[Any]], None]) -> None:
        ended(done)
        with self._lock:
            # Only a pool that is being closed cancels, and under a lock that `submit` needs.
            self._closed = self._closed or done.cancelled()
            self._busy = False
            next_task = self._next()
        self._begin(next_task)

    def _cancel_all(self) -> None:
        """Nothing runs any more, and whoever waits for it is told so."""
        with self._lock:
            waiting, self._waiting = self._waiting, deque()
        for _, ended in waiting:
            cancelled: Future[Any] = Future()
            cancelled.cancel()
            ended(cancelled)
