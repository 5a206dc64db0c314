"""Counters of every stage: rows, bytes, busy and waiting time."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from types import TracebackType

from dataflow.execute.trace import Recorder

__all__ = ["Meters", "Stage"]


@dataclass(slots=True)
class Stage:
    """What one stage has done since the loader began: times in seconds, summed over threads.

    `start_s` is what it waited for the first batch behind a start, when nothing could have been made ahead; it is
    not in `wait_s`.
    """

    rows: int = 0
    bytes: int = 0
    busy_s: float = 0.0
    wait_s: float = 0.0
    start_s: float = 0.0
    calls: int = 0


@dataclass(frozen=True)
class Meters:
    """The stages by name, and the recorder of their spans where one was asked for."""

    recorder: Recorder | None = None
    stages: dict[str, Stage] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def busy(self, name: str) -> _Timed:
        """Time the body as work of stage `name`; the body adds rows and bytes to the stage that it is given."""
        return _Timed(self, name, waits=False)

    def waiting(self, name: str, *, first: bool = False) -> _Timed:
        """Time the body as stage `name` waiting for what comes before it; `first`: for a first batch."""
        return _Timed(self, name, waits=True, first=first)

    def add(self, name: str, done: Stage, start_s: float, stop_s: float) -> None:
        """Count what was done in stage `name` between two times of `time.perf_counter`."""
        with self._lock:
            stage = self.stages.get(name)
            if stage is None:
                stage = self.stages[name] = Stage()
            stage.rows += done.rows
            stage.bytes += done.bytes
            stage.busy_s += done.busy_s
            stage.wait_s += done.wait_s
            stage.start_s += done.start_s
            stage.calls += done.calls
        if self.recorder is not None:
            span = name if done.calls else f"{name}: wait"
            self.recorder.add(span, start_s, stop_s, done.rows)

    def snapshot(self) -> dict[str, dict[str, int | float]]:
        """The counters as plain numbers."""
        with self._lock:
            return {
                name: {
                    "rows": s.rows, "bytes": s.bytes, "calls": s.calls,
                    "busy_s": round(s.busy_s, 6), "wait_s": round(s.wait_s, 6), "start_s": round(s.start_s, 6),
                }
                for name, s in self.stages.items()
            }  # fmt: skip


class _Timed:
    """The time from entering a body to leaving it, as busy or waiting time of a stage.

    As a class it costs a third of what a generator does, and some of these are entered once a batch.
    """

    __slots__ = ("_done", "_first", "_meters", "_name", "_start_s", "_waits")

    def __init__(self, meters: Meters, name: str, *, waits: bool, first: bool = False) -> None:
        self._meters, self._name, self._waits, self._first = meters, name, waits, first
        self._done = Stage()
        self._start_s = 0.0

    def __enter__(self) -> Stage:
        self._start_s = time.perf_counter()
        return self._done

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        stop_s = time.perf_counter()
        done = self._done
        if self._first:
            done.start_s = stop_s - self._start_s
        elif self._waits:
            done.wait_s = stop_s - self._start_s
        else:
            done.busy_s, done.calls = stop_s - self._start_s, 1
        self._meters.add(self._name, done, self._start_s, stop_s)
