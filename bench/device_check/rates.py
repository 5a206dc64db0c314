"""Images a second: decoded by DALI alone, trained on while they stay on the device, and trained on end to end."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from functools import cached_property
from itertools import cycle, islice
from typing import Any, NamedTuple

import numpy as np
import torch

from bench.device_check.busy import finish
from bench.device_check.pictures import training
from bench.device_check.size import Size
from bench.device_check.trainer import Trainer
from bench.image_files import jpegs_in, photographs_on_disk
from dataflow.cores import available_cores

__all__ = ["Rates", "Trained", "decoded_per_s"]


class Trained(NamedTuple):
    """Images a second: of a batch that stays on the device, and of those of a loader."""

    resident: float
    end_to_end: float


class Rates:
    """The rates of training on one device, taken when one is first asked for."""

    def __init__(self, device: torch.device, size: Size) -> None:
        self._device, self._size = device, size

    def resident(self) -> float:
        """Images a second of a step on a batch that stays on the device, which no loader can exceed."""
        return statistics.median(trained.resident for trained in self._trained)

    def end_to_end(self) -> float:
        """Images a second of the same step on the batches of a loader whose images DALI makes on the device."""
        return statistics.median(trained.end_to_end for trained in self._trained)

    def share(self) -> float:
        """End to end over resident, each within one round."""
        return statistics.median(trained.end_to_end / trained.resident for trained in self._trained)

    @cached_property
    def _trained(self) -> list[Trained]:
        size, device, trainer = self._size, self._device, Trainer(self._device)
        pipe = training(size, batches=size.warm + size.timed * size.rounds)
        with pipe.loader(backend="dali", device=device) as loader:
            batches = iter(loader)
            for resident in islice(batches, size.warm):
                trainer(resident)
            return [
                Trained(
                    _images_per_s(device, size, lambda: trainer(resident)),
                    _images_per_s(device, size, lambda: trainer(next(batches))),
                )
                for _ in range(size.rounds)
            ]


def decoded_per_s(device: torch.device, size: Size) -> float:
    """Images of 500 x 400 a second that DALI decodes whole into the memory of the device, and does nothing else."""
    files = [file for file, _ in jpegs_in(photographs_on_disk(size.photographs))]
    jpegs = [np.frombuffer(file.read_bytes(), np.uint8) for file in files]
    batches = [jpegs[start : start + size.batch] for start in range(0, len(jpegs), size.batch)]
    decoder = _decoder(device, size.batch, cycle(batches))
    for _ in range(size.warm):
        decoder.run()
    return statistics.median(_images_per_s(device, size, decoder.run) for _ in range(size.rounds))


def _decoder(device: torch.device, batch: int, batches: Iterator[Any]) -> Any:
    import nvidia.dali

    # It says of some of its names what they are, and hides the others from type checkers.
    dali: Any = nvidia.dali
    on_gpu = device.type == "cuda"
    gpu = torch.cuda.current_device() if on_gpu else None
    pipeline = dali.Pipeline(batch_size=batch, num_threads=available_cores(), device_id=gpu)
    with pipeline:
        files = dali.fn.external_source(source=batches, dtype=dali.types.UINT8, ndim=1)
        pipeline.set_outputs(dali.fn.decoders.image(files, device="mixed" if on_gpu else "cpu"))
    pipeline.build()
    return pipeline


def _images_per_s(device: torch.device, size: Size, work: Callable[[], object]) -> float:
    """Images a second of work on one batch a call, to the end of what it has begun on the device."""
    finish(device)
    start = time.perf_counter()
    for _ in range(size.timed):
        work()
    finish(device)
    return size.timed * size.batch / (time.perf_counter() - start)
