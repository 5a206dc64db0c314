"""Train a small classifier on images in tar shards: random crops, a validation split, and bad images.

    python examples/make_data.py data
    python examples/images.py data/images

Some of those images are cut off. An image that cannot be decoded is replaced by another one of its window, and
written to `bad.jsonl` as often as it comes; `--quarantine` names another file.
"""

from __future__ import annotations

import argparse
import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import nn
from torch.nn.functional import cross_entropy

import dataflow as flow

SIDE = 32


def decoded(row: Mapping[str, Any]) -> Image.Image:
    return Image.open(io.BytesIO(row["jpg"])).convert("RGB")


def random_square(row: Mapping[str, Any], rng: np.random.Generator) -> dict[str, object]:
    """A random square of the image. `rng` belongs to the sample and the epoch, whatever the batch or rank."""
    image = decoded(row)
    side = int(rng.integers(SIDE, min(image.size) + 1))
    left, top = (int(rng.integers(length - side + 1)) for length in image.size)
    square = image.resize((SIDE, SIDE), box=(left, top, left + side, top + side))
    return {"image": np.asarray(square), "label": row["cls"]}


def middle_square(row: Mapping[str, Any]) -> dict[str, object]:
    image = decoded(row)
    side = min(image.size)
    left, top = ((length - side) // 2 for length in image.size)
    square = image.resize((SIDE, SIDE), box=(left, top, left + side, top + side))
    return {"image": np.asarray(square), "label": row["cls"]}


def as_input(images: torch.Tensor) -> torch.Tensor:
    """(rows, height, width, 3) of uint8 as (rows, 3, height, width) of float32 from -1 to 1."""
    return images.permute(0, 3, 1, 2).float() / 127.5 - 1


def main() -> None:
    parser = argparse.ArgumentParser(description="Train a small classifier on images in tar shards.")
    parser.add_argument("data", help="tar shards with `jpg` and `cls`: a folder, a pattern, a URL")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--quarantine", type=Path, default=Path("bad.jsonl"))
    arguments = parser.parse_args()

    parts = flow.read(arguments.data).split({"train": 0.9, "val": 0.1}, by="__key__")
    train = parts["train"].map(random_square, rng=True).shuffle("16MB").seed(7).batch(32)
    # "pad" leaves no row out, and says which rows are real.
    val = parts["val"].map(middle_square).batch(32, remainder="pad")

    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Conv2d(3, 16, 5, stride=2), nn.ReLU(), nn.Conv2d(16, 32, 5, stride=2), nn.ReLU(),
        nn.AdaptiveMaxPool2d(1), nn.Flatten(), nn.Linear(32, 2),
    )  # fmt: skip
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)

    with (
        train.loader(on_error="replace", quarantine=arguments.quarantine) as train_loader,
        val.loader(on_error="replace") as val_loader,
    ):
        for epoch in range(arguments.epochs):
            for batch in train_loader:
                loss = cross_entropy(model(as_input(batch["image"])), batch["label"])
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            right = rows = 0
            with torch.no_grad():
                for batch in val_loader:
                    real = batch["__valid__"]
                    guess = model(as_input(batch["image"])).argmax(1)
                    right += int((guess == batch["label"])[real].sum())
                    rows += int(real.sum())
            print(f"epoch {epoch} loss {loss.item():.3f} right {right} of {rows}")
        print(train_loader.report())
        print(f"bad images, replaced: {train_loader.stats()['errors']}, written to {arguments.quarantine}")


if __name__ == "__main__":
    main()
