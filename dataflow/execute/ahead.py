"""The one thread that works ahead of the training loop, and the short queue between the two."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator
from concurrent.futures import CancelledError, Future
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from queue import SimpleQueue

from dataflow.errors import LoaderClosed
from dataflow.execute.assemble import HostBatch
from dataflow.execute.made import Made

__all__ = ["DEPTH", "Ahead"]

# Runs that are made ahead of the one that is being delivered.
DEPTH = 2


@dataclass(frozen=True, slots=True)
class _Ended:
    """The driver has ended: with an error, or because the loader was closed."""

    error: BaseException | None


class Ahead:
    """Runs a driver on a thread of its own; `get` hands out what it makes, in order.

    The thread ends with the driver, at its first error (which `get` raises once, behind all that was made before
    it), or at `close`; then it calls `at_end`.

    Args:
        depth: runs made, or in the making, that nobody has taken.

    Both directions are SimpleQueues, whose `put` may be called from a finalizer that runs inside any other call.
    """

    def __init__(
        self, driver: Generator[Made, None, None], at_end: Callable[[], None], depth: int = DEPTH
    ) -> None:
        self._driver, self._at_end = driver, at_end
        self._made: SimpleQueue[Made | _Ended] = SimpleQueue()
        self._room: SimpleQueue[None] = SimpleQueue()
        for _ in range(depth):
            self._room.put(None)
        # None that is done: it would keep its windows in memory.
        self._making: set[Future[list[HostBatch]]] = set()
        self._closed = False
        self._thread = threading.Thread(target=self._work, name="dataflow-driver", daemon=True)
        self._thread.start()

    def _work(self) -> None:
        error: BaseException | None = None
        try:
            self._room.get()
            while not self._closed:
                made = next(self._driver)
                if isinstance(made.batches, Future):
                    self._making.add(made.batches)
                    made.batches.add_done_callback(self._making.discard)
                self._made.put(made)
                # Once it is taken, the user alone holds it while the next one is made.
                del made
                self._room.get()
        except StopIteration:
            pass
        except BaseException as raised:
            error = raised
        self._end(error)

    def _end(self, error: BaseException | None) -> None:
        """Close the driver, say what it ended with, and let go of all; what one of these raises keeps none from it."""
        with ExitStack() as ending:
            # The last one here is the first to be called.
            ending.callback(self._forget)
            ending.callback(self._at_end)
            ending.callback(self._finish)
            ending.callback(self._made.put, _Ended(error))
            ending.callback(self._driver.close)

    def _finish(self) -> None:
        """Wait for what is in front of an error: it is delivered, so that `at_end` must not end its making."""
        if self._closed:
            return
        for future in tuple(self._making):
            # Not `concurrent.futures.wait`: that never hears of one that is cancelled before it begins.
            with suppress(CancelledError):
                future.exception()

    def _forget(self) -> None:
        """Hold the driver no longer: a cycle would keep its windows in memory until the collector runs."""
        del self._driver, self._at_end

    def get(self) -> Made:
        """The next batches; waits for them.

        Raises:
            DataflowError: what making them raised.
        """
        made = self._made.get()
        if isinstance(made, Made) and not self._closed:
            self._room.put(None)
            return made
        self._made.put(_Ended(None))
        if isinstance(made, _Ended) and made.error is not None:
            raise made.error
        raise LoaderClosed("the loader is closed.", hint="make a new one, or iterate before close()")

    @property
    def ready(self) -> bool:
        """Whether `get` would not wait."""
        return not self._made.empty()

    def abandon(self) -> None:
        """Tell the thread to end. Takes no lock, so that a finalizer may call it; may be called twice."""
        self._closed = True
        self._room.put(None)
        self._made.put(_Ended(None))

    def join(self) -> None:
        """Wait until the thread has ended."""
        if threading.current_thread() is not self._thread:
            self._thread.join()
