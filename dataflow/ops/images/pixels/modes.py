"""Pillow's images in the modes of a pipeline: uint8, one to four channels."""

from __future__ import annotations

from typing import Final

import numpy as np
from PIL import Image

from dataflow.errors import DataError
from dataflow.graph.image_column import Pixels

__all__ = ["in_mode"]

# What keeps all that an image of Pillow's mode shows; where a colour or a grey is transparent, and elsewhere.
_WITH_ALPHA: Final = {"1": "LA", "L": "LA", "P": "RGBA", "RGB": "RGBA"}
_PLAIN: Final = {
    "1": "L", "P": "RGB", "PA": "RGBA", "CMYK": "RGB", "YCbCr": "RGB", "LAB": "RGB", "La": "LA", "RGBa": "RGBA",
    "RGBX": "RGB", "I;16": "L", "I;16B": "L", "I;16L": "L",
}  # fmt: skip
_UNKNOWN_RANGE: Final = {"I": "32-bit or signed", "F": "floating-point"}
_STRIP: Final = 1 << 18  # pixels


def in_mode(image: Image.Image, mode: str) -> Pixels:
    """The pixels (height, width, channels) of an image; of samples of 16 bits the upper half.

    "unchanged" keeps grey, colours and transparency as they are; other modes have Pillow's numbers.

    Raises:
        DataError: its samples have no known range.
    """
    if image.mode in _UNKNOWN_RANGE:
        kind = _UNKNOWN_RANGE[image.mode]
        raise DataError(f"the image has {kind} samples, of no known range.", hint="store 8 or 16 bits")
    wanted = _own_mode(image) if mode == "unchanged" else mode
    if "A" not in wanted:
        # Pillow would warn of what is left out.
        image.info.pop("transparency", None)
    width, height = image.size
    out = np.empty((height, width, len(wanted)), np.uint8)
    # Strip by strip: Pillow takes the memory of a whole image again to convert it, and twice to give it to NumPy.
    rows = max(1, _STRIP // width)
    for top in range(0, height, rows):
        strip = image.crop((0, top, width, min(top + rows, height)))
        out[top : top + rows] = _converted(strip, wanted).reshape(-1, width, len(wanted))
    return out


def _own_mode(image: Image.Image) -> str:
    if "transparency" in image.info and image.mode in _WITH_ALPHA:
        return _WITH_ALPHA[image.mode]
    return _PLAIN.get(image.mode, image.mode)


def _converted(image: Image.Image, wanted: str) -> Pixels:
    if image.mode.startswith("I;16"):
        # The upper half, as Pillow has it where an image of 16 bits has colours.
        image = Image.fromarray((np.asarray(image) >> 8).astype(np.uint8))
    if image.mode == "LAB":
        image = image.convert("RGB")  # from which others are made
    return np.asarray(image if image.mode == wanted else image.convert(wanted))
