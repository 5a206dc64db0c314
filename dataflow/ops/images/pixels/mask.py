"""Files of masks: class numbers as they are stored, whatever colours a palette gives them."""

from __future__ import annotations

import io
from typing import Final

import numpy as np
from PIL import Image

from dataflow.errors import DataError
from dataflow.graph.image_column import Pixels
from dataflow.ops.images.canvas import Box

__all__ = ["MaskFile"]

_ONE_CHANNEL: Final = ("1", "L", "P", "I", "I;16", "I;16B", "I;16L")
_PNG: Final = b"\x89PNG\r\n\x1a\n"


class MaskFile:
    """The mask in a file: one channel of numbers up to 255, not decoded before it is read.

    Raises:
        DataError: it is none that can be read, or has not one number a pixel.
    """

    def __init__(self, file: memoryview) -> None:
        try:
            self._image = Image.open(io.BytesIO(file))
        except Exception as error:
            raise DataError(
                f"the mask is no image that can be read: {error}", hint="PNG, BMP and TIFF can"
            ) from error
        if self._image.mode not in _ONE_CHANNEL:
            raise DataError(
                f"the mask has pixels of {self._image.mode}, and not one class number each.",
                hint="store masks as grey or palette images",
            )
        self._step = _step_of_grey(file)

    @property
    def size(self) -> tuple[int, int]:
        return self._image.height, self._image.width

    def read(self, part: Box, least: tuple[int, int] | None) -> tuple[Pixels, Box]:
        try:
            numbers = np.asarray(self._image)
        except Exception as error:
            raise DataError(f"the mask is broken: {error}", hint="replace the file") from error
        if numbers.max() > 255 or numbers.min() < 0:
            raise DataError(
                f"the mask has the number {numbers.max() if numbers.max() > 255 else numbers.min()}.",
                hint="class numbers of mask files go from 0 to 255; give larger ones as pixels of uint16",
            )
        return (numbers // self._step).astype(np.uint8)[..., None], part


def _step_of_grey(file: memoryview) -> int:
    """What 1 in a file has become as Pillow reads it, which spreads grey of 2 and 4 bits over 0 to 255."""
    if bytes(file[:8]) != _PNG or len(file) < 26:
        return 1
    bits, colour = file[24], file[25]
    return 255 // (2**bits - 1) if colour == 0 and bits in (2, 4) else 1
