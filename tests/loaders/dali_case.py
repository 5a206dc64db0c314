"""Pipelines whose images both backends make, and how near they come to each other."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from photographs import encoded, photograph

import dataflow as flow
from connectors.bfloat16 import widened
from loaders.arguments import Arguments

__all__ = ["MEAN", "STD", "augmented", "delivered", "images_of", "needs_dali", "psnr_db", "source", "trained"]

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
Batch = dict[str, Any]

needs_dali = pytest.mark.skipif(
    find_spec("nvidia") is None or find_spec("nvidia.dali") is None,
    reason="DALI is made for x86-64 Linux alone",
)


def source(rows: int = 12) -> flow.Pipeline:
    """Photographs of many sizes, as files."""
    files = [encoded(photograph(row, 150 + row, 220 - row)) for row in range(rows)]
    return flow.from_columns({"image": files, "label": list(range(rows))})


def augmented(pipe: flow.Pipeline, size: int = 64) -> flow.Pipeline:
    """The steps of a training run."""
    # Whole files are decoded, so that both backends resize the same pixels.
    decoded = pipe.decode_image("image", reduced=False)
    return decoded.random_resized_crop("image", size).random_flip("image").normalize("image", MEAN, STD)


def trained(pipe: flow.Pipeline, size: int = 64) -> flow.Pipeline:
    """The same, in another order in every epoch."""
    return augmented(pipe.shuffle(8).seed(3), size)


def delivered(pipe: flow.Pipeline, backend: Any, **options: Any) -> list[Batch]:
    """The batches of an epoch, as NumPy."""
    given: Arguments = {"ids": True, "backend": backend, "threads": 2, **options}  # type: ignore[typeddict-item]
    with pipe.loader(output="numpy", **given) as loader:
        return list(loader)


def images_of(batches: list[Batch]) -> npt.NDArray[Any]:
    """All images of an epoch; numbers in bfloat16 as those that they stand for."""
    images = np.concatenate([batch["image"] for batch in batches])
    return widened(images) if images.dtype == np.uint16 else images


def psnr_db(one: npt.NDArray[Any], other: npt.NDArray[Any], levels: float) -> float:
    """The least over images (images, ...), of which `levels` numbers are the whole range; infinite where all agree."""
    squares = (one.astype(np.float64) - other.astype(np.float64)) ** 2
    worst = squares.reshape(len(one), -1).mean(axis=1).max()
    return float("inf") if worst == 0 else float(10 * np.log10(levels**2 / worst))
