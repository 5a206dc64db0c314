"""Loops over a loader on a device: under a profiler, and with synchronization forbidden."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, Literal, TypeAlias

import torch
from torch.profiler import ProfilerActivity, profile, record_function

from bench.device_check.busy import Busy, finish
from bench.device_check.pictures import training
from bench.device_check.size import Size
from bench.device_check.trace import LOOP, STEP, Event
from bench.device_check.trainer import Trainer

__all__ = ["Backend", "batches_without_sync", "trace_of"]

Backend: TypeAlias = Literal["cpu", "dali"]
# Of the time of a step to that in which a batch is made: the device is never idle then.
_LONGER: Final = 2.0


def trace_of(device: torch.device, size: Size, backend: Backend) -> list[Event]:
    """What a profiler sees of a loop over a loader whose steps keep the device busy all the time."""
    activities = [ProfilerActivity.CPU]
    if device.type == "cuda":
        activities.append(ProfilerActivity.CUDA)
    with training(size, batches=size.warm + size.traced).loader(backend=backend, device=device) as loader:
        batches = iter(loader)
        busy = Busy(device, size.width, _LONGER * _batch_s(batches, device, size.warm))
        finish(device)
        with profile(activities=activities) as profiler:
            with record_function(LOOP):
                for _ in islice(batches, size.traced):
                    with record_function(STEP):
                        busy()
            finish(device)
    return _events(profiler)


def batches_without_sync(device: torch.device, size: Size, backend: Backend) -> float:
    """How many batches were trained on while torch raised at whatever made the host wait for the device."""
    trainer, done = Trainer(device), 0
    with training(size, batches=size.warm + size.traced).loader(backend=backend, device=device) as loader:
        batches = iter(loader)
        for batch in islice(batches, size.warm):
            trainer(batch)
        finish(device)
        with _sync_is_an_error():
            for batch in islice(batches, size.traced):
                trainer(batch)
                done += 1
        finish(device)
    return float(done)


def _batch_s(batches: Iterator[Any], device: torch.device, count: int) -> float:
    """Seconds in which a batch is made, of the later half of `count`."""
    timed = count // 2
    for _ in islice(batches, count - timed):
        pass
    finish(device)
    start = time.perf_counter()
    for _ in islice(batches, timed):
        pass
    finish(device)
    return (time.perf_counter() - start) / timed


@contextmanager
def _sync_is_an_error() -> Iterator[None]:
    before = torch.cuda.get_sync_debug_mode()
    torch.cuda.set_sync_debug_mode("error")
    try:
        yield
    finally:
        torch.cuda.set_sync_debug_mode(before)


def _events(profiler: profile) -> list[Event]:
    with TemporaryDirectory() as folder:
        file = Path(folder) / "trace.json"
        profiler.export_chrome_trace(str(file))
        found: list[Event] = json.loads(file.read_text("utf-8"))["traceEvents"]
    return found
