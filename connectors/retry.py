"""`Retry`: a request to a store that fails for the moment is made again, ever later, but not for ever."""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from connectors.transient import transient_cause
from dataflow.errors import ConnectorError, PlanError

__all__ = ["Clock", "Retry", "SystemClock"]

T = TypeVar("T")

_HINT = "check the network and the store; when it answers again, go on from the last state that was saved"

_log = logging.getLogger(__name__)
# Neither reads nor moves the generator that a program shares, and differs in every process, also in a forked one.
_random = random.SystemRandom()


class Clock(Protocol):
    """Time in seconds, so that a test need not wait."""

    def now(self) -> float: ...

    def wait(self, seconds: float, stop: threading.Event) -> bool:
        """Wait, at most until `stop` is set; whether it is."""


class SystemClock:
    """The clock of the system."""

    def now(self) -> float:
        return time.monotonic()

    def wait(self, seconds: float, stop: threading.Event) -> bool:
        return stop.wait(seconds)


@dataclass(frozen=True, kw_only=True)
class Retry:
    """How often, how late and how long a store is asked again.

    The defaults outlast a restart and most spells of throttling, and give up long before the time-out of a process
    group (ten minutes), in which the other ranks wait.

    Fields:
        tries: of one request, the first one included.
        first_wait_s: about how long to wait behind the first failure; each later wait is twice as long.
        longest_wait_s: no wait is longer.
        limit_s: no try begins later than this behind the first failure. How long one try may take is for the store to
            say (`storage_options`).
    """

    tries: int = 10
    first_wait_s: float = 0.5
    longest_wait_s: float = 20.0
    limit_s: float = 120.0
    clock: Clock = field(default=SystemClock(), repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.tries < 1:
            raise PlanError(f"Retry(tries={self.tries!r}) asks for nothing.", hint="use 1 to try once")
        for name in ("first_wait_s", "longest_wait_s", "limit_s"):
            if getattr(self, name) < 0:
                raise PlanError(f"Retry({name}={getattr(self, name)!r}) is negative.", hint="give seconds")

    def run(
        self, request: Callable[[], T], name: Callable[[], str], stop: threading.Event, *, verb: str = "read"
    ) -> T:
        """What `request` returns, in the first try in which it does not fail for the moment.

        Args:
            name: what is asked for, in the words of the log and of the error: a URL, and the byte where it has one.
            stop: once it is set there is no further try, nor a first one.
            verb: what is done with it, as "read" or "written".

        Raises:
            ConnectorError: all tries failed, the last failure is the cause; or there was none, because of `stop`.
            Exception: what else `request` raises, at once.
        """
        if stop.is_set():
            raise ConnectorError(
                f"{name()} was not {verb}.", hint="the loader was closed before it was asked for"
            )
        begun_s = end_s = self.clock.now()
        number = 0
        while True:
            number += 1
            try:
                return request()
            except Exception as error:
                cause = transient_cause(error)
                if cause is None:
                    raise
                what = " ".join(f"{type(cause).__name__}: {cause}".split()).rstrip(":")
                now_s, wait_s = self.clock.now(), self.wait_s(number)
                end_s = now_s + self.limit_s if number == 1 else end_s
                if number == self.tries or now_s + wait_s > end_s:
                    tries = f"{number} tries in {now_s - begun_s:.0f} s"
                    raise ConnectorError(
                        f"{name()} cannot be {verb}: {tries} failed, the last with {what}", hint=_HINT
                    ) from error
                _log.warning(
                    "%s cannot be %s: %s; try %d of %d follows in %.1f s",
                    *(name(), verb, what, number + 1, self.tries, wait_s),
                )
                if self.clock.wait(wait_s, stop):
                    raise ConnectorError(
                        f"{name()} cannot be {verb}: {what}",
                        hint="it was not tried again: the loader was closed",
                    ) from error

    def wait_s(self, failures: int) -> float:
        """How long to wait behind the n-th failure: by chance between half and all of it, so that readers that
        failed together do not come back together."""
        longest = min(self.longest_wait_s, self.first_wait_s * 2.0 ** min(failures - 1, 60))
        return longest * _random.uniform(0.5, 1.0)
