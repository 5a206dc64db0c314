"""Starting the demo's processes, hearing what they do, and killing them."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from bench.demo.job import RankJob
from bench.memory import PeakMemory
from dataflow.errors import DataflowError

__all__ = ["DemoFailed", "Heard", "run_processes"]

# Far beyond what any part of the demo takes: ranks that wait for each other must not wait for ever.
_TIMEOUT_S = 300.0
_PACKAGES = Path(__file__).parents[2]

Record = dict[str, Any]


class DemoFailed(DataflowError):
    """A process of the demo ended with an error."""


@dataclass(frozen=True)
class Heard:
    """What the processes of one training said: by rank its first record, and the records of its steps."""

    first: list[Record]
    steps: list[list[Record]]
    peak_bytes: int
    took_s: float


def run_processes(module: str, jobs: Sequence[RankJob], *, kill_at: int | None = None) -> Heard:
    """Run a process for each job and hear it to its end; SIGKILL all once rank 0 has done `kill_at` steps.

    Raises:
        DemoFailed: a process failed, or all were silent for minutes; has the end of what it wrote.
    """
    began = time.perf_counter()
    with contextlib.ExitStack() as stack:
        errors = [stack.enter_context(tempfile.TemporaryFile("w+")) for _ in jobs]
        processes: list[subprocess.Popen[str]] = []
        stack.callback(_end, processes)
        for job, error in zip(jobs, errors, strict=True):
            processes.append(_start(module, job, error))
        memory = stack.enter_context(PeakMemory(*(process.pid for process in processes)))
        records, failed = _hear(processes, kill_at)
        if failed is not None:
            errors[failed].seek(0)
            raise DemoFailed(
                f"rank {failed} of {jobs[failed].name!r} ended with {processes[failed].returncode}:\n"
                f"{errors[failed].read()[-3000:]}"
            )
    missing = [rank for rank, said in enumerate(records) if not said]
    if missing:
        raise DemoFailed(f"rank {missing[0]} of {jobs[0].name!r} said nothing.")
    first, steps = [said[0] for said in records], [said[1:] for said in records]
    return Heard(first, steps, memory.peak_bytes, time.perf_counter() - began)


def _start(module: str, job: RankJob, errors: IO[str]) -> subprocess.Popen[str]:
    path = os.pathsep.join(filter(None, [str(_PACKAGES), os.environ.get("PYTHONPATH")]))
    # Indexes are kept with the data, so that nothing is left in the user's cache.
    environment = {
        **os.environ,
        "PYTHONPATH": path,
        "DATAFLOW_CACHE": f"{job.folder}/cache",
        "OMP_NUM_THREADS": "1",
    }
    return subprocess.Popen(
        [sys.executable, "-m", module, job.to_json()],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True, env=environment,
        start_new_session=True,
    )  # fmt: skip


def _hear(
    processes: Sequence[subprocess.Popen[str]], kill_at: int | None
) -> tuple[list[list[Record]], int | None]:
    """The records of every process until all are silent, and the first that failed of itself."""
    said: queue.SimpleQueue[tuple[int, Record | None]] = queue.SimpleQueue()
    threads = [
        threading.Thread(
            target=_listen, args=(rank, process, said), name=f"dataflow-demo-{rank}", daemon=True
        )
        for rank, process in enumerate(processes)
    ]
    for thread in threads:
        thread.start()
    records: list[list[Record]] = [[] for _ in processes]
    speaking, killed = len(processes), False
    failed: int | None = None
    while speaking:
        try:
            rank, record = said.get(timeout=_TIMEOUT_S)
        except queue.Empty:
            raise DemoFailed(f"the processes were silent for {_TIMEOUT_S:.0f} s.") from None
        if record is not None:
            records[rank].append(record)
            steps = max((said_by_first.get("step", -1) + 1 for said_by_first in records[0]), default=0)
            if kill_at is not None and not killed and steps >= kill_at and all(records):
                # Only when every process has begun: one that was still starting would have said nothing.
                killed = True
                _kill(processes)
            continue
        speaking -= 1
        if not killed and processes[rank].wait(_TIMEOUT_S):
            # The others would wait for it until their own time-out.
            failed, killed = rank, True
            _kill(processes)
    for thread in threads:
        thread.join()
    return records, failed


def _listen(
    rank: int, process: subprocess.Popen[str], said: queue.SimpleQueue[tuple[int, Record | None]]
) -> None:
    assert process.stdout is not None
    for line in process.stdout:
        # A killed process may leave half a line.
        with contextlib.suppress(json.JSONDecodeError):
            said.put((rank, json.loads(line)))
    said.put((rank, None))


def _kill(processes: Sequence[subprocess.Popen[str]]) -> None:
    """SIGKILL every process with all that it started: each leads a session of its own."""
    for process in processes:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)


def _end(processes: Sequence[subprocess.Popen[str]]) -> None:
    _kill(processes)
    for process in processes:
        process.wait()
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                stream.close()
