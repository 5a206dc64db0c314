"""The images that checks look at, and the pipelines that are made of them."""

from __future__ import annotations

import io
from typing import Final, Literal, TypeAlias

import numpy as np

import dataflow as flow
from bench.device_check.size import Size
from bench.image_files import photographs_on_disk
from bench.photographs import Part, check_extra, encoded_parts
from dataflow.cores import available_cores

__all__ = ["LEVELS_A_PIXEL", "Dtype", "Layout", "maps", "photographs", "training"]

Dtype: TypeAlias = Literal["uint8", "float16", "bfloat16", "float32"]
Layout: TypeAlias = Literal["NCHW", "NHWC", "channels_last"]

# Of many sizes and as many shapes as a crop may have.
_VARIED: Final = Part(widths=(200, 400), sizes=(160, 320), ratio=0.8, quality=90)
# From one column or row of a map to the next. Backends may round by half a level, which is little of a pixel.
LEVELS_A_PIXEL: Final = 4
# Height and width of a map, which takes all levels.
_MAP_SIDE: Final = 256 // LEVELS_A_PIXEL


def photographs(size: Size) -> flow.Pipeline:
    """Parts of photographs as JPEGs of many sizes, decoded whole, so that all backends resize the same pixels."""
    files = [jpeg for jpeg, _ in encoded_parts(range(size.compared), _VARIED, threads=available_cores())]
    return _shuffled(files).decode_image("image", reduced=False)


def maps(size: Size) -> flow.Pipeline:
    """JPEGs in which red says the column of a pixel and green its row: what becomes of one tells box and flips."""
    check_extra()
    from PIL import Image

    down, across = np.indices((_MAP_SIDE, _MAP_SIDE), dtype=np.uint8) * np.uint8(LEVELS_A_PIXEL)
    file = io.BytesIO()
    places = Image.fromarray(np.stack([across, down, np.zeros_like(down)], axis=2))
    places.save(file, "JPEG", quality=100, subsampling=0)
    return _shuffled([file.getvalue()] * size.compared).decode_image("image", reduced=False)


def training(size: Size, *, batches: int) -> flow.Pipeline:
    """The steps of a training run over large photographs in Parquet, with at least so many batches in an epoch."""
    passes = -(-batches * size.batch // size.photographs)
    rows = flow.read(f"{photographs_on_disk(size.photographs)}/parquet")
    pipe = rows.shuffle("16MB").repeat(passes).decode_image("image")
    pipe = pipe.random_resized_crop("image", size.side).random_flip("image")
    return pipe.normalize("image", flow.IMAGENET_MEAN, flow.IMAGENET_STD).batch(size.batch)


def _shuffled(files: list[bytes]) -> flow.Pipeline:
    return flow.from_columns({"image": files}).shuffle(len(files)).seed(1)
