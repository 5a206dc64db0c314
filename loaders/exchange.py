"""What ranks tell each other: an all-gather of whole numbers over a gloo group of its own.

The collectives of a group pair up by their order on each rank. A rank that leaves an epoch early may have one
under way that the others answer only later, in their next run; so every round carries the number of the run,
and a round in which the runs differ is made again by those that are in the newest one.
"""

from __future__ import annotations

import atexit
import contextlib
import threading
import time
import weakref
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist

from dataflow.errors import LoaderClosed, RankError

__all__ = ["GlooGathers", "gloo_gathers"]

_TIMEOUT = timedelta(minutes=10)
# How often a waiting thread looks whether its loader is still there.
_LOOK_AROUND_S = 1.0
_LAST_WAIT_S = 4.0
# The number of a run that is behind all others.
_GOODBYE = 1 << 62
Group = Any


def gloo_gathers(group: Group | None = None, timeout: timedelta = _TIMEOUT) -> GlooGathers:
    """A private gloo group of the ranks of `group` (default: all); every one of them must call this."""
    ranks = dist.get_process_group_ranks(group) if group is not None else None
    private = dist.new_group(
        ranks, backend="gloo", timeout=timeout, use_local_synchronization=ranks is not None
    )
    return GlooGathers(private, timeout)


class GlooGathers:
    """All-gathers over one group, run after run; `all_gather` is called by one thread at a time."""

    def __init__(self, group: Group, timeout: timedelta) -> None:
        self._group, self._timeout = group, timeout
        self._world = dist.get_world_size(group)
        self._run = 0
        self._width = 0
        self._turn = threading.Lock()
        self._closed = threading.Event()
        self._pending: _Round | None = None
        self._abandoned = False
        _OPEN.add(self)

    def begin(self) -> None:
        """Begin a new run: what is under way belongs to an old one."""
        self._run += 1
        self._abandoned = False
        self._closed = threading.Event()

    def all_gather(self, numbers: Sequence[int]) -> list[list[int]]:
        """Every rank's numbers, in rank order.

        Raises:
            RankError: a rank does not answer in time, is gone, or has left this run.
            LoaderClosed: `close` was called meanwhile.
        """
        with self._turn:
            if self._closed.is_set():
                raise LoaderClosed("the loader is closed.")
            return self._all_gather(numbers)

    def _all_gather(self, numbers: Sequence[int]) -> list[list[int]]:
        self._width = 1 + len(numbers)
        while True:
            if self._pending is None:
                self._pending = _Round([self._run, *numbers], self._world, self._group)
                mine = True
            else:
                mine = self._pending.run == self._run
            rows = self._finish(self._pending)
            self._pending = None
            newest = max(row[0] for row in rows)
            if newest > self._run:
                gone = [rank for rank, row in enumerate(rows) if row[0] == newest]
                raise RankError(
                    f"ranks {gone} have left the epoch that this rank is in.",
                    hint="let all ranks take the same number of batches",
                )
            if mine and all(row[0] == self._run for row in rows):
                return [row[1:] for row in rows]

    def _finish(self, under_way: _Round) -> list[list[int]]:
        closed = self._closed
        deadline = time.monotonic() + self._timeout.total_seconds()
        while not under_way.wait(closed, _LOOK_AROUND_S):
            if closed.is_set() or self._abandoned:
                raise LoaderClosed("the loader is closed.")
            if time.monotonic() < deadline:
                continue
            raise RankError(
                f"not all ranks answered within {self._timeout.total_seconds():.0f} s.",
                hint="look at the logs of the others: one is stuck, gone, or takes fewer batches",
            )
        return under_way.rows()

    def abandon(self) -> None:
        """Let a waiting `all_gather` return within a second; takes no lock."""
        self._abandoned = True

    def close(self) -> None:
        """Let a waiting `all_gather` return; may be called twice."""
        self._closed.set()
        if self._pending is not None:
            self._pending.wake()

    def shutdown(self) -> None:
        """Let go of the group for good, together with the other ranks; may be called twice.

        A group that dies with a round under way whose peer is gone takes the process with it (gloo ends it with
        an uncaught exception). So ranks say goodbye in a last round, and wait a few seconds for the others'.
        """
        self.close()
        _OPEN.discard(self)
        deadline = time.monotonic() + _LAST_WAIT_S
        with self._turn:
            self._say_goodbye(deadline)
        group, self._group = self._group, None
        if group is not None and dist.is_initialized():
            with contextlib.suppress(RuntimeError, ValueError):
                dist.destroy_process_group(group)

    def _say_goodbye(self, deadline: float) -> None:
        while self._group is not None and self._width:
            try:
                if self._pending is None:
                    self._pending = _Round([_GOODBYE] * self._width, self._world, self._group)
                if not self._pending.wait(threading.Event(), deadline - time.monotonic()):
                    return
                rows, self._pending = self._pending.rows(), None
            except RankError:
                return
            if all(row[0] == _GOODBYE for row in rows):
                return


# Groups that are still open when the interpreter ends.
_OPEN: weakref.WeakSet[GlooGathers] = weakref.WeakSet()


@atexit.register
def _shut_down_all() -> None:
    for gathers in list(_OPEN):
        gathers.shutdown()


class _Round:
    """One all-gather under way."""

    def __init__(self, numbers: Sequence[int], world: int, group: Group) -> None:
        self.run = numbers[0]
        mine = torch.tensor(numbers, dtype=torch.int64)
        self._rows = [torch.empty_like(mine) for _ in range(world)]
        self._changed = threading.Condition()
        self._done = False
        try:
            self._work: Any = dist.all_gather(self._rows, mine, group=group, async_op=True)
            self._work.get_future().add_done_callback(lambda _: self._finished())
        except RuntimeError as error:
            raise RankError(
                f"the ranks cannot agree: {error}", hint="a rank is gone: look at the logs"
            ) from error

    def _finished(self) -> None:
        with self._changed:
            self._done = True
            self._changed.notify_all()

    def wake(self) -> None:
        """Let `wait` look at its event."""
        with self._changed:
            self._changed.notify_all()

    def wait(self, closed: threading.Event, timeout_s: float) -> bool:
        """Whether it is done, before `closed` is set or the time is over."""
        with self._changed:
            self._changed.wait_for(lambda: self._done or closed.is_set(), timeout_s)
            return self._done

    def rows(self) -> list[list[int]]:
        """Every rank's numbers."""
        try:
            self._work.wait()
        except RuntimeError as error:
            raise RankError(
                f"the ranks cannot agree: {error}", hint="a rank is gone: look at the logs"
            ) from error
        return [row.tolist() for row in self._rows]
