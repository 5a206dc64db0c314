"""Train a small CNN to tell photographs apart, on one rank or several; stop it anywhere, and go on with any number.

    python examples/make_data.py data
    python examples/train_images.py data/photographs --checkpoint cnn.pt --stop-after 20
    torchrun --nproc-per-node 2 examples/train_images.py data/photographs --checkpoint cnn.pt

The photographs lie in class folders: parts of two photographs, and which one a part is of is to be told. The second
run goes on with the very next batch of the epoch that the first one began, as if it had not been stopped.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel

import dataflow as flow

# Any number of ranks that divides it has even shares of a batch, and the order is the same on all of them.
LANES = 4


def small_cnn(classes: int) -> nn.Module:
    """A model of images (rows, 3, size, size)."""
    return nn.Sequential(
        nn.Conv2d(3, 16, 5, stride=2), nn.ReLU(), nn.Conv2d(16, 32, 3, stride=2), nn.ReLU(),
        nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(128, classes),
    )  # fmt: skip


def train(arguments: argparse.Namespace) -> None:
    parts = flow.read(arguments.data).split({"train": 0.9, "val": 0.1})
    sizes: dict[str, Any] = {"size": arguments.size, "global_size": arguments.global_batch, "lanes": LANES}
    training = flow.recipes.imagenet_train(parts["train"], scale=(0.3, 1.0), seed=7, **sizes)
    evaluation = flow.recipes.imagenet_eval(parts["val"], **sizes)
    torch.manual_seed(0)
    model = small_cnn(len(training.classes))
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    steps = 0

    # The loaders ask torch.distributed which rank this is.
    with training.loader(threads=arguments.threads) as loader, evaluation.loader(threads=1) as val_loader:
        if arguments.checkpoint.exists():
            saved = torch.load(arguments.checkpoint)
            model.load_state_dict(saved["model"])
            optimizer.load_state_dict(saved["optimizer"])
            loader.load_state_dict(saved["input"])
            steps = saved["steps"]
        wrapped = DistributedDataParallel(model) if dist.is_initialized() else model
        stop_at = steps + arguments.stop_after if arguments.stop_after else None
        while loader.epoch < arguments.epochs and steps != stop_at:
            epoch = loader.epoch
            for batch in loader:
                loss = cross_entropy(wrapped(batch["image"]), batch["label"])
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                steps += 1
                mean = over_ranks(loss.detach()) / (dist.get_world_size() if dist.is_initialized() else 1)
                say(f"step {steps} loss {mean.item():.4f}")
                if steps == stop_at:
                    break
            save(arguments.checkpoint, model, optimizer, loader, steps)
            if loader.epoch > epoch:
                right, rows = evaluate(model, val_loader)
                say(f"epoch {epoch} right {right} of {rows}")
        say(loader.report())


def evaluate(model: nn.Module, batches: Any) -> tuple[int, int]:
    """How many images of all ranks the model tells right, and of how many."""
    found = torch.zeros(2, dtype=torch.int64)
    with torch.no_grad():
        for batch in batches:
            real = batch["__valid__"]  # the last batch is filled up with rows that came before
            right = model(batch["image"]).argmax(1) == batch["label"]
            found += torch.stack([(right & real).sum(), real.sum()])
    right, rows = over_ranks(found).tolist()
    return right, rows


def over_ranks(value: torch.Tensor) -> torch.Tensor:
    """The sum of all ranks."""
    if dist.is_initialized():
        dist.all_reduce(value)
    return value


def is_first() -> bool:
    return not dist.is_initialized() or dist.get_rank() == 0


def say(text: str) -> None:
    if is_first():
        print(text, flush=True)


def save(path: Path, model: nn.Module, optimizer: torch.optim.Optimizer, loader: Any, steps: int) -> None:
    """Write a checkpoint, whole or not at all; one rank's place in the input is enough for all."""
    if is_first():
        parts = {
            "model": model.state_dict(),
            "optimizer": optimizer.state_dict(),
            "input": loader.state_dict(),
            "steps": steps,
        }
        begun = path.with_name(path.name + ".begun")
        torch.save(parts, begun)
        begun.replace(path)


def main() -> None:
    parser = argparse.ArgumentParser(description="Train a small CNN on class folders of images.")
    parser.add_argument("data", help="images in class folders: a folder, a URL")
    parser.add_argument("--checkpoint", type=Path, required=True, help="go on from it if it is there")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--size", type=int, default=64, help="height and width of what the model sees")
    parser.add_argument("--global-batch", type=int, default=32, help="images of all ranks together")
    parser.add_argument("--threads", type=int, help="of each rank; by default as many as it has cores")
    parser.add_argument("--stop-after", type=int, metavar="STEPS")
    arguments = parser.parse_args()
    distributed = "RANK" in os.environ  # started with torchrun
    if distributed:
        dist.init_process_group("gloo")
    try:
        train(arguments)
    finally:
        if distributed:
            dist.destroy_process_group()


if __name__ == "__main__":
    main()
