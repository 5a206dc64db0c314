"""The batches that come from the driver, in order, and those whose images are in the making."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import replace
from typing import NamedTuple, TypeVar

from dataflow.execute.ahead import Ahead
from dataflow.execute.assemble import HostBatch
from dataflow.execute.develop import Developer, Developing
from dataflow.execute.made import Made
from dataflow.execute.metrics import Meters
from dataflow.graph.block import BadSample

__all__ = ["Incoming"]

T = TypeVar("T")


class _Begun(NamedTuple):
    developing: Developing
    made: Made  # without its batches: one that was delivered is the user's alone


class Incoming:
    """Takes what the driver makes, and has the images of the next batches made while one is used.

    `left_bad` are bad rows behind which no batch follows.

    Args:
        developer: makes images of batches; None where they are whole as they come.
    """

    def __init__(self, ahead: Ahead, developer: Developer | None, meters: Meters) -> None:
        self._ahead, self._developer, self._meters = ahead, developer, meters
        self._gave = False
        self._batches: deque[tuple[HostBatch, Made]] = deque()
        self._begun: deque[_Begun] = deque()
        # What was looked at and is not due: the next made, or the error that comes in its place.
        self._next: Made | Exception | None = None
        self.left_bad: tuple[BadSample, ...] = ()

    def take(self, epoch: int) -> tuple[HostBatch | BadSample, Made] | None:
        """The next batch, and of what it is the last; None where epoch `epoch` has no further one. Waits for it.

        Raises:
            DataflowError: what making it raised.
        """
        while not self._begun:
            while not self._batches:
                made = self._due()
                if not made.ends_epoch:
                    self._unpack(made)
                elif made.epoch == epoch:
                    return None
                # Else it is a mark of the epoch before, whose last batch was the last one asked for.
            if self._developer is None:
                self._gave = True
                return self._batches.popleft()
            self._begin(self._developer)
        if self._developer is not None:
            self._look_ahead(self._developer)
        begun = self._begun.popleft()
        batch = self._wait(begun.developing.result)
        self._gave = True
        return batch, begun.made

    def _wait(self, made: Callable[[], T]) -> T:
        with self._meters.waiting("deliver", first=not self._gave):
            return made()

    def _due(self) -> Made:
        found, self._next = self._next, None
        if found is None:
            return self._ahead.get() if self._ahead.ready else self._wait(self._ahead.get)
        if isinstance(found, Exception):
            raise found
        return found

    def _unpack(self, made: Made) -> None:
        batches = made.batches
        if isinstance(batches, Future):
            batches = batches.result() if batches.done() else self._wait(batches.result)
        bare = replace(made, batches=[])
        self._batches.extend((batch, bare) for batch in batches)
        self.left_bad = made.left_bad

    def _begin(self, developer: Developer) -> None:
        batch, made = self._batches.popleft()
        self._begun.append(_Begun(developer.begin(batch), made))

    def _look_ahead(self, developer: Developer) -> None:
        """Begin with what lies ready; wait for nothing, and raise nothing that is not due."""
        while len(self._begun) < developer.depth:
            if self._batches:
                self._begin(developer)
                continue
            if self._next is None:
                if not self._ahead.ready:
                    return
                try:
                    self._next = self._ahead.get()
                except Exception as error:
                    self._next = error
            if isinstance(self._next, Exception) or not _lies_ready(self._next):
                return
            self._unpack(self._due())


def _lies_ready(made: Made) -> bool:
    """Whether its batches can be taken at once."""
    batches = made.batches
    if not isinstance(batches, Future):
        return not made.ends_epoch
    return batches.done() and not batches.cancelled() and batches.exception() is None
