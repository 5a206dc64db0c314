"""What a rank says while it waits for others: at whom to look, long before it gives up."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

__all__ = ["Waiting"]

logger = logging.getLogger("dataflow.loaders")

# Ranks of one start come within seconds of each other, but for one that reads files for an index.
_EVERY_S = 30.0


class Waiting:
    """Warns every half minute.

    Args:
        deadline: when the wait is given up, by `clock`.
        clock: seconds that never go back.
    """

    def __init__(self, deadline: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._deadline, self._clock = deadline, clock
        self._began = clock()
        self._due = self._began + _EVERY_S

    def say(self, whom: str) -> None:
        """Name in the log those that have not made this loader yet, once half a minute has passed.

        Args:
            whom: they and their verb, as "rank 0 has".
        """
        now = self._clock()
        if now < self._due:
            return
        self._due = now + _EVERY_S
        logger.warning(
            "waiting for %.0f s: %s not made this loader; that is an error in %.0f s. The log there says more.",
            now - self._began, whom, max(0.0, self._deadline - now),
        )  # fmt: skip
