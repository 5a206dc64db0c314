"""One `for` over a loader: the batches of one epoch from a place on, and how it is told that it is over."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Generic, NoReturn, Self, TypeVar

from dataflow.errors import LoaderClosed, PlanError
from dataflow.execute.clock import Lap
from dataflow.execute.running import Running, Taken

__all__ = ["EpochIterator", "check_process"]

T = TypeVar("T")


def check_process(made_in: int) -> None:
    """Refuse to go on behind a fork: threads do not come along, and each copy of a loader would deliver every row.

    Raises:
        PlanError: this is not process `made_in`.
    """
    if os.getpid() != made_in:
        raise PlanError(
            "the loader was made in another process.",
            hint="make it in the process that iterates it, with rank= and world_size= where several do",
        )


class EpochIterator(Generic[T]):
    """The batches that `running` makes, up to the end of the epoch that it is in.

    Args:
        lap: the time of this `for`, which ends with it.
        deliver: makes of a batch what the user gets, and moves the loader behind it.
        pass_end: moves the loader behind an epoch that has no further batch.
        give_up: ends `running` behind an error, for what was taken from it is lost with this iterator.
    """

    def __init__(
        self,
        running: Running,
        lap: Lap,
        deliver: Callable[[Taken], T],
        pass_end: Callable[[], None],
        give_up: Callable[[BaseException], None],
    ) -> None:
        self._running, self._lap = running, lap
        self._deliver, self._pass_end, self._give_up = deliver, pass_end, give_up
        self._process = os.getpid()
        self._exhausted = False
        self._asked = threading.Lock()
        self.closed = False

    def close(self) -> None:
        """Give no further batch."""
        self.closed = True
        self._lap.end()

    def __del__(self) -> None:
        # Behind `break` nobody holds it any more.
        self._lap.end()

    def __reduce__(self) -> NoReturn:
        # What asks for it: pickle, and both kinds of copy.
        raise PlanError(
            "an iterator of a loader cannot be pickled or copied: it hands out the batches of that one loader.",
            hint="keep loader.state_dict(), and load it into another loader of the same pipeline",
        )

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> T:
        if self._exhausted:
            self._lap.end()
            raise StopIteration
        if self.closed:
            raise LoaderClosed(
                "this iterator is closed: another one was begun, or the loader was closed or moved.",
                hint="iterate a loader once at a time",
            )
        check_process(self._process)
        self._running.check_caller()
        if not self._asked.acquire(blocking=False):
            raise PlanError(
                "another thread is waiting for the next batch of this iterator.",
                hint="take batches on one thread, and hand them to the others",
            )
        try:
            return self._next()
        except StopIteration:
            self._exhausted = True
            self._lap.end()
            raise
        except BaseException as error:
            self.close()
            self._give_up(error)
            raise
        finally:
            self._asked.release()

    def _next(self) -> T:
        taken = self._running.take()
        if taken is None:
            self._pass_end()
            raise StopIteration
        delivered = self._deliver(taken)
        self._exhausted = taken.last
        return delivered
