"""The time that a loader is iterated: what lies between two `for`s, an evaluation or nothing, says nothing about it."""

from __future__ import annotations

import time

__all__ = ["Clock", "Lap"]


class Clock:
    """Adds up laps, of which one runs at a time."""

    def __init__(self) -> None:
        self._past_s = 0.0
        self._lap: Lap | None = None

    @property
    def elapsed_s(self) -> float:
        """Seconds of all laps, the running one included."""
        return self._past_s + (0.0 if self._lap is None else self._lap.elapsed_s)

    @property
    def started(self) -> bool:
        """Whether there was a lap."""
        return self._lap is not None

    def start(self) -> Lap:
        """End the running lap, and begin another one."""
        if self._lap is not None:
            self._lap.end()
            self._past_s += self._lap.elapsed_s
        self._lap = Lap()
        return self._lap


class Lap:
    """The time from now on to `end`. It takes no lock, so that a finalizer may end it."""

    def __init__(self) -> None:
        self._start_s = time.perf_counter()
        self._stop_s: float | None = None

    @property
    def elapsed_s(self) -> float:
        """Seconds so far, or in all."""
        return (time.perf_counter() if self._stop_s is None else self._stop_s) - self._start_s

    def end(self) -> None:
        """Stop here; what follows the first call changes nothing."""
        if self._stop_s is None:
            self._stop_s = time.perf_counter()
