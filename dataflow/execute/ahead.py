"""The one thread that works ahead of the training loop, and the short queue between the two."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Generator

from dataflow.errors import LoaderClosed
from dataflow.execute.known import Made

__all__ = ["Ahead"]

# Runs that lie ready, beside the one in the making.
_DEPTH = 2


class Ahead:
    """Runs a driver on a thread of its own; `get` hands out what it makes, in order.

    The thread ends with the driver, at its first error (which `get` raises once, behind all that was made before
    it), or at `close`.
    """

    def __init__(self, driver: Generator[Made, None, None]) -> None:
        self._driver = driver
        self._made: deque[Made] = deque()
        self._error: BaseException | None = None
        self._closed = False
        self._ended = False
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._work, name="dataflow-driver", daemon=True)
        self._thread.start()

    def _work(self) -> None:
        try:
            for made in self._driver:
                with self._changed:
                    self._made.append(made)
                    self._changed.notify_all()
                    self._changed.wait_for(lambda: self._closed or len(self._made) < _DEPTH)
                    if self._closed:
                        break
        except BaseException as error:
            self._error = error
        finally:
            self._driver.close()
            with self._changed:
                self._ended = True
                self._changed.notify_all()

    def get(self) -> Made:
        """The next batches; waits for them.

        Raises:
            DataflowError: what making them raised.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._made or self._ended or self._closed)
            if self._made and not self._closed:
                self._changed.notify_all()
                return self._made.popleft()
            error, self._error = self._error, None
        if error is not None:
            raise error
        raise LoaderClosed("the loader is closed.", hint="make a new one, or iterate before close()")

    @property
    def ready(self) -> bool:
        """Whether `get` would not wait."""
        return bool(self._made)

    def close(self) -> None:
        """Tell the thread to end; `join` waits for it. May be called twice."""
        with self._changed:
            self._closed = True
            self._made.clear()
            self._changed.notify_all()

    def join(self) -> None:
        """Wait until the thread has ended."""
        if threading.current_thread() is not self._thread:
            self._thread.join()
