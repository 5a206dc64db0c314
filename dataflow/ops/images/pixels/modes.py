"""Pillow's images in the modes of a pipeline: uint8, one to four channels."""

from __future__ import annotations

from typing import Final

import numpy as np
from PIL import Image

from dataflow.errors import DataError
from dataflow.graph.image_column import Pixels

__all__ = ["in_mode"]

# Where Pillow's mode is none of 8-bit grey or RGB, with alpha or without.
_UNCHANGED: Final = {"1": "L", "P": "RGB", "PA": "RGBA", "CMYK": "RGB", "YCbCr": "RGB", "La": "LA", "RGBa": "RGBA",
                     "RGBX": "RGB"}  # fmt: skip
_WITH_ALPHA: Final = {"L": "LA", "RGB": "RGBA"}


def in_mode(image: Image.Image, mode: str) -> Pixels:
    """The pixels (height, width, channels) of an image; of samples of 16 bits the upper half.

    "unchanged" keeps grey, colours and transparency as they are; other modes have Pillow's numbers.

    Raises:
        DataError: its samples have no known range.
    """
    image = _plain(image)
    wanted = _own_mode(image) if mode == "unchanged" else mode
    if "A" not in wanted:
        # Pillow would warn of what is left out.
        image.info.pop("transparency", None)
    pixels = np.asarray(image if image.mode == wanted else image.convert(wanted))
    return pixels.reshape(*pixels.shape[:2], -1)


def _plain(image: Image.Image) -> Image.Image:
    """The image in bytes, in colours that Pillow makes others of."""
    if image.mode.startswith("I;16"):
        # The upper half, as Pillow has it where an image of 16 bits has colours.
        return Image.fromarray((np.asarray(image) >> 8).astype(np.uint8))
    if image.mode in ("I", "F"):
        kind = "floating-point" if image.mode == "F" else "32-bit or signed"
        raise DataError(f"the image has {kind} samples, of no known range.", hint="store 8 or 16 bits")
    return image.convert("RGB") if image.mode == "LAB" else image


def _own_mode(image: Image.Image) -> str:
    mode = _UNCHANGED.get(image.mode, image.mode)
    return _WITH_ALPHA.get(mode, mode) if "transparency" in image.info else mode
