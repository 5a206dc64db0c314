"""The process of one rank: `python -m bench.demo.rank JOB`, where JOB is a `RankJob` as JSON.

It prints one line of JSON for its imports and one for every step; the first rank saves a state every few steps.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator, Sequence
from itertools import count
from pathlib import Path
from typing import Any, Protocol

import torch
import torch.distributed as dist

from bench.demo.job import RankJob
from bench.demo.model import SmallModel
from bench.demo.peer import peer_loaders
from bench.demo.pipelines import image_pipeline, text_pipeline
from bench.memory import tree_pss_bytes
from loaders.torch import TorchLoader

__all__ = ["main"]

Batch = dict[str, Any]

_CHECKPOINT = "checkpoint.pt"
_LEARNING_RATE = 0.5


class _Input(Protocol):
    """Where batches come from: pairs of an image and a text batch, epoch after epoch, from the place restored."""

    def pairs(self) -> Iterator[tuple[Batch, Batch]]: ...
    def state(self) -> str: ...
    def restore(self, state: str) -> int: ...
    def close(self) -> None: ...


class _Dataflow:
    def __init__(self, job: RankJob) -> None:
        data = Path(job.folder)
        self._loaders: list[TorchLoader] = [
            pipe.loader(ids=True, threads=job.threads, epochs=job.size.epochs)
            for pipe in (image_pipeline(data, job.size, decoded=True), text_pipeline(data, job.size))
        ]

    def pairs(self) -> Iterator[tuple[Batch, Batch]]:
        images, text = self._loaders
        while True:
            yield from zip(images, text, strict=True)

    def state(self) -> str:
        return json.dumps([loader.state_dict() for loader in self._loaders])

    def restore(self, state: str) -> int:
        for loader, saved in zip(self._loaders, json.loads(state), strict=True):
            loader.load_state_dict(saved)
        images = self._loaders[0]
        return images.epoch * len(images) + images.step

    def close(self) -> None:
        for loader in self._loaders:
            loader.close()


class _DataLoader:
    def __init__(self, job: RankJob) -> None:
        self._loaders = peer_loaders(Path(job.folder), job.size, job.rank, job.world, job.threads)

    def pairs(self) -> Iterator[tuple[Batch, Batch]]:
        for epoch in count():
            for loader in self._loaders:
                loader.sampler.set_epoch(epoch)  # type: ignore[attr-defined]
            yield from zip(*self._loaders, strict=False)

    def state(self) -> str:
        return "[]"

    def restore(self, state: str) -> int:
        raise NotImplementedError("a DataLoader has no state")

    def close(self) -> None:
        self._loaders = ()  # type: ignore[assignment]


def main(arguments: Sequence[str]) -> None:
    """Train as one rank, from the start or from the saved state."""
    job = RankJob.from_json(arguments[0])
    torch.set_num_threads(1)
    torch.manual_seed(0)
    dist.init_process_group(
        "gloo", init_method=f"file://{job.folder}/rendezvous-{job.name}", rank=job.rank, world_size=job.world
    )
    model = SmallModel()
    _say({"imports_bytes": tree_pss_bytes(os.getpid())})
    source: _Input = _Dataflow(job) if job.input == "dataflow" else _DataLoader(job)
    try:
        _train(job, model, source)
        if job.hold:
            # Until it is killed; should its parent die instead, this ends.
            sys.stdin.read()
    finally:
        source.close()
        dist.destroy_process_group()


def _train(job: RankJob, model: SmallModel, source: _Input) -> None:
    saved = Path(job.folder) / _CHECKPOINT
    step = 0
    if job.resume:
        held = torch.load(saved, weights_only=True)
        model.load_state_dict(held["model"])
        step = source.restore(held["input"])
    pairs = source.pairs()
    while step < job.steps:
        began = time.perf_counter()
        images, text = next(pairs)
        waited = time.perf_counter() - began
        model.zero_grad()
        loss = model(images["image"], images["label"], text["tokens"])
        loss.backward()
        _descend(model, job.world)
        step += 1
        if job.rank == 0 and job.input == "dataflow" and step % job.size.save_every == 0:
            _save(saved, model, source.state())
        _say({
            "step": step - 1, "waited_s": waited, "took_s": time.perf_counter() - began,
            "loss": loss.item(), "samples": len(images["label"]) + len(text["tokens"]),
            "images": _ids(images), "text": _ids(text),
        })  # fmt: skip


def _descend(model: SmallModel, world: int) -> None:
    """One step of gradient descent along the mean gradient of all ranks.

    By hand, because DistributedDataParallel and torch.optim load 800 modules first: 1.7 s and 70 MB for every rank.
    """
    gradients = [weight.grad for weight in model.parameters() if weight.grad is not None]
    mean = torch.cat([gradient.flatten() for gradient in gradients])
    dist.all_reduce(mean)
    mean /= world
    with torch.no_grad():
        sizes = [gradient.numel() for gradient in gradients]
        for weight, change in zip(model.parameters(), torch.split(mean, sizes), strict=True):
            weight.sub_(change.view_as(weight), alpha=_LEARNING_RATE)


def _save(file: Path, model: SmallModel, state: str) -> None:
    """Model and place of the input in one file that is there whole or not at all."""
    unfinished = file.with_suffix(".part")
    torch.save({"model": model.state_dict(), "input": state}, unfinished)
    unfinished.replace(file)


def _ids(batch: Batch) -> list[int]:
    return batch["__id__"].tolist() if "__id__" in batch else []


def _say(record: dict[str, Any]) -> None:
    print(json.dumps(record), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
