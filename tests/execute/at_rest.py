"""Loaders all of whose work is done by the thread that works ahead: when it waits, nothing more is made."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue
from typing import Any, ParamSpec, TypeVar, cast

import pytest

from dataflow.execute.loader import Loader

__all__ = ["InlinePools", "await_rest", "work_inline"]

P = ParamSpec("P")
T = TypeVar("T")


class InlinePools:
    """Pools whose tasks run at once, on the thread that hands them in."""

    threads = 1
    runs_here = False

    def __init__(self, threads: int = 1, *, remote: bool = False) -> None:
        self.closed = False

    def plan(self, task: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        future: Future[T] = Future()
        try:
            future.set_result(task(*args, **kwargs))
        except BaseException as error:
            future.set_exception(error)
        return future

    read = compute = plan

    def close(self, *, wait: bool = True) -> None:
        self.closed = True


class _Watched:
    """A queue that tells whether somebody waits for its next item."""

    def __init__(self) -> None:
        self._items: SimpleQueue[Any] = SimpleQueue()
        self._changed = threading.Condition()
        self._awaited = False

    def put(self, item: Any) -> None:
        with self._changed:
            self._awaited = False
            self._items.put(item)

    def get(self) -> Any:
        with self._changed:
            self._awaited = self._items.empty()
            self._changed.notify_all()
        return self._items.get()

    def empty(self) -> bool:
        return self._items.empty()

    def until_awaited(self) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: self._awaited, 60), "it does not come to rest"


def work_inline(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the loaders that are iterated from now on do all work on the thread that works ahead."""
    monkeypatch.setattr("dataflow.execute.executor.ThreadPools", InlinePools)
    monkeypatch.setattr("dataflow.execute.ahead.SimpleQueue", _Watched)


def await_rest(loader: Loader[Any]) -> None:
    """Wait until such a loader has made all that it makes before another batch is taken."""
    running = loader._running
    assert running is not None
    cast(_Watched, running._ahead._room).until_awaited()
