"""A recipe as a pipeline of DALI's."""

from __future__ import annotations

from typing import Any

import nvidia.dali

from loaders.dali.recipe import Recipe

__all__ = ["FILES", "build_pipeline", "input_name"]

# It says of some of its names what they are, and hides the others from type checkers.
dali: Any = nvidia.dali
# The input that gets the files.
FILES = "files"
_TYPES = {"int32": dali.types.INT32, "float32": dali.types.FLOAT}


def input_name(place: int) -> str:
    """The input that gets the numbers at this place of the recipe's."""
    return f"numbers{place}"


def build_pipeline(recipe: Recipe, rows: int, threads: int, gpu: int | None) -> Any:
    """A pipeline for batches of at most `rows` images, which waits for its inputs.

    One run is in the making at a time: what fails with a run is this pipeline, and no other batch.
    """
    pipeline = dali.Pipeline(batch_size=rows, num_threads=threads, device_id=gpu, prefetch_queue_depth=1)
    with pipeline:
        files = dali.fn.external_source(name=FILES, no_copy=True, dtype=dali.types.UINT8, ndim=1)
        numbers = [
            dali.fn.external_source(name=input_name(place), dtype=_TYPES[wanted.dtype.__name__], ndim=wanted.ndim)
            for place, wanted in enumerate(recipe.inputs)
        ]  # fmt: skip
        pixels = files
        for part in (recipe.cut, *recipe.effects):
            own, numbers = numbers[: len(part.inputs)], numbers[len(part.inputs) :]
            pixels = part.build(dali, pixels, own)
        pipeline.set_outputs(pixels)
    pipeline.build()
    return pipeline
