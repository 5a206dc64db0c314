"""`Pools`: what every executor offers to the engine. Tasks are pure, so that any of them gives the same samples."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from typing import ParamSpec, Protocol, TypeVar

__all__ = ["Pools"]

P = ParamSpec("P")
T = TypeVar("T")


class Pools(Protocol):
    """Where the tasks of one run are done."""

    @property
    def threads(self) -> int:
        """How many tasks of `compute` run at once."""

    @property
    def closed(self) -> bool:
        """Whether `close` was called, or the interpreter ends: no task is taken any more."""

    @property
    def runs_here(self) -> bool:
        """Whether the calling thread does one of these tasks."""

    def plan(self, task: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Run a task that works out an order; one at a time, in the order in which they are handed in."""

    def read(self, task: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Run a task that reads; tasks begin in the order in which they are handed in."""

    def compute(self, task: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Run a task that computes."""

    def close(self, *, wait: bool = True) -> None:
        """Drop the tasks that have not begun, and wait for the others, which ask no store any more; may be
        called twice."""
