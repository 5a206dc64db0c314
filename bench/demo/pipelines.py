"""The two pipelines of the demo, and how an image is decoded."""

from __future__ import annotations

import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import dataflow as flow
from bench.demo.size import Size

__all__ = ["decode", "image_pipeline", "text_pipeline"]

_SEED = 7
# In rows, so that the order is the same whichever columns are read.
_IMAGE_WINDOW, _TEXT_WINDOW = 512, 4096


def image_pipeline(data: Path, size: Size, *, decoded: bool) -> flow.Pipeline:
    """`image` uint8 (pixels, pixels, 3) and `label`; or, not `decoded`, the labels alone in the same order."""
    pipe = flow.read(f"{data}/images/*.tar").shuffle(_IMAGE_WINDOW).seed(_SEED)
    if decoded:
        pixels = size.pixels

        def decoded_row(row: Mapping[str, Any], rng: np.random.Generator) -> dict[str, Any]:
            return {"image": decode(row["jpg"], pixels, rng), "label": row["cls"]}

        pipe = pipe.map(decoded_row, rng=True)
    else:
        pipe = pipe.select("cls")
    return pipe.batch(global_size=size.image_batch, lanes=size.lanes)


def text_pipeline(data: Path, size: Size) -> flow.Pipeline:
    """`tokens` uint8 (row_bytes,)."""
    pipe = flow.read(f"{data}/text/*.parquet").shuffle(_TEXT_WINDOW).seed(_SEED)
    return pipe.batch(global_size=size.text_batch, lanes=size.lanes)


def decode(jpeg: bytes, pixels: int, rng: np.random.Generator) -> npt.NDArray[np.uint8]:
    """A random crop of an encoded image, mirrored every second time, as uint8 (pixels, pixels, 3)."""
    from PIL import Image

    image = Image.open(io.BytesIO(jpeg)).convert("RGB")
    side = min(image.size)
    crop = int(rng.integers(side * 3 // 4, side + 1))
    left, top = (int(rng.integers(length - crop + 1)) for length in image.size)
    image = image.resize((pixels, pixels), Image.Resampling.BILINEAR, (left, top, left + crop, top + crop))
    if rng.random() < 0.5:
        image = image.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
    return np.asarray(image)
