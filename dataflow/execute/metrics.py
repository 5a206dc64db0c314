"""Counters of every stage: rows, bytes, busy and waiting time; and what they say about the bottleneck."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from dataflow.execute.trace import Recorder

__all__ = ["Meters", "Stage", "advice"]


@dataclass(slots=True)
class Stage:
    """What one stage has done since the loader began: times in seconds, summed over threads."""

    rows: int = 0
    bytes: int = 0
    busy_s: float = 0.0
    wait_s: float = 0.0
    calls: int = 0


@dataclass(frozen=True)
class Meters:
    """The stages by name, and the recorder of their spans where one was asked for."""

    recorder: Recorder | None = None
    stages: dict[str, Stage] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @contextmanager
    def busy(self, name: str) -> Iterator[Stage]:
        """Time the body as work of stage `name`; the body adds rows and bytes to what it is given."""
        done = Stage()
        start = time.perf_counter()
        try:
            yield done
        finally:
            stop = time.perf_counter()
            done.busy_s, done.calls = stop - start, 1
            self._add(name, done, start, stop)

    @contextmanager
    def waiting(self, name: str) -> Iterator[None]:
        """Time the body as stage `name` waiting for what comes before it."""
        start = time.perf_counter()
        try:
            yield
        finally:
            stop = time.perf_counter()
            self._add(name, Stage(wait_s=stop - start), start, stop, span=f"{name}: wait")

    def _add(self, name: str, done: Stage, start: float, stop: float, *, span: str = "") -> None:
        with self._lock:
            stage = self.stages.setdefault(name, Stage())
            stage.rows += done.rows
            stage.bytes += done.bytes
            stage.busy_s += done.busy_s
            stage.wait_s += done.wait_s
            stage.calls += done.calls
        if self.recorder is not None:
            self.recorder.add(span or name, start, stop, done.rows)

    def snapshot(self) -> dict[str, dict[str, int | float]]:
        """The counters as plain numbers."""
        with self._lock:
            return {
                name: {
                    "rows": s.rows, "bytes": s.bytes, "calls": s.calls,
                    "busy_s": round(s.busy_s, 6), "wait_s": round(s.wait_s, 6),
                }
                for name, s in self.stages.items()
            }  # fmt: skip


def advice(stages: dict[str, dict[str, int | float]], elapsed_s: float, threads: int) -> tuple[str, str]:
    """The stage that limits throughput, and what would help: two short texts.

    The trainer limits where it was seldom kept waiting; otherwise the stage with the most work.
    """
    waited = stages.get("deliver", {}).get("wait_s", 0.0)
    work = {name: s["busy_s"] for name, s in stages.items() if name != "deliver" and s["busy_s"] > 0}
    if elapsed_s <= 0 or not work:
        return "nothing yet", "iterate the loader first"
    if waited < 0.05 * elapsed_s:
        return "the training loop", f"input kept up: it was waited for {waited / elapsed_s:.1%} of the time"
    slowest = max(work, key=lambda name: work[name])
    if slowest == "read":
        full = work[slowest] > 0.8 * threads * elapsed_s
        hint = (
            "more cores, fewer columns, or a lighter compression"
            if full
            else "more threads= or a faster store"
        )
        return slowest, hint
    if slowest in ("order", "arrange", "assemble"):
        return slowest, "larger batches or fewer lanes a rank; without shuffle there is least to do"
    return (
        slowest,
        f"make {slowest} cheaper: batched=True, fewer rows (filter first), or a library that frees the GIL",
    )
