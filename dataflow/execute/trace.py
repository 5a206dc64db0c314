"""Spans of all stages on one clock, kept in a bounded ring and written as a Chrome / Perfetto timeline."""

from __future__ import annotations

import json
import os
import threading
import time
from collections import deque
from pathlib import Path
from typing import NamedTuple

from dataflow.execute.whole_file import write_whole

__all__ = ["Recorder", "Span"]

_DEFAULT_SPANS = 200_000


class Span(NamedTuple):
    """One piece of work: `start_s` on the clock of `time.perf_counter`, on thread `thread`."""

    name: str
    start_s: float
    duration_s: float
    thread: int
    rows: int


class Recorder:
    """Keeps the last `capacity` spans; recording is one append and safe from any thread."""

    def __init__(self, capacity: int = _DEFAULT_SPANS) -> None:
        self._spans: deque[Span] = deque(maxlen=capacity)
        self._names: dict[int, str] = {}

    def add(self, name: str, start_s: float, stop_s: float, rows: int = 0) -> None:
        """Record that this thread did `name` from `start_s` to `stop_s`."""
        thread = threading.get_ident()
        if thread not in self._names:
            self._names[thread] = threading.current_thread().name
        self._spans.append(Span(name, start_s, stop_s - start_s, thread, rows))

    def spans(self) -> list[Span]:
        """What is kept, oldest first."""
        return list(self._spans)

    def write(self, path: str | os.PathLike[str], *, rank: int = 0) -> None:
        """Write the spans as Chrome trace events (JSON), which ui.perfetto.dev and chrome://tracing open.

        Folders above it are made. The format is the "JSON Object Format" of Google's Trace Event Format: complete
        events ("ph": "X"), times in microseconds, the rank as the process.
        """
        events: list[dict[str, object]] = [
            {"ph": "M", "name": "thread_name", "pid": rank, "tid": thread, "args": {"name": name}}
            for thread, name in list(self._names.items())
        ]
        # Wall-clock times, so that the files of several ranks lie side by side.
        offset = time.time() - time.perf_counter()
        for span in self.spans():
            events.append({
                "ph": "X", "cat": "dataflow", "name": span.name, "pid": rank, "tid": span.thread,
                "ts": (span.start_s + offset) * 1e6, "dur": span.duration_s * 1e6, "args": {"rows": span.rows},
            })  # fmt: skip
        target = Path(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        write_whole(target, json.dumps({"traceEvents": events, "displayTimeUnit": "ms"}))
