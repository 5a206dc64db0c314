"""JPEG files: their size, and the pixels of a part of them at the scale that is wanted.

libjpeg-turbo decodes at 1/2, 1/4 and 1/8 of the size by leaving out what a smaller image does not show.
"""

from __future__ import annotations

from typing import Final

import simplejpeg

from dataflow.errors import DataError
from dataflow.graph.image_column import Pixels
from dataflow.ops.images.canvas import Box
from dataflow.ops.images.pixels.exif import jpeg_orientation, oriented, turned_size

__all__ = ["Jpeg", "is_jpeg"]

_SPACES: Final = {"RGB": "RGB", "L": "GRAY"}


def is_jpeg(file: memoryview) -> bool:
    """Whether the content begins as a JPEG does."""
    return bytes(file[:3]) == b"\xff\xd8\xff"


class Jpeg:
    """The image in a JPEG of grey or YCbCr pixels.

    Raises:
        DataError: the head of the file cannot be read.
    """

    def __init__(self, file: memoryview, mode: str, *, reduced: bool) -> None:
        try:
            height, width, self.colorspace, _ = simplejpeg.decode_jpeg_header(file, strict=False)
        except (ValueError, KeyError) as error:
            raise DataError(f"the JPEG cannot be read: {error}", hint="replace the file") from error
        self._file, self._stored = file, (height, width)
        self._mode = "L" if mode == "unchanged" and self.colorspace == "Gray" else mode
        self._reduced = reduced
        self._orientation = jpeg_orientation(file)

    @property
    def size(self) -> tuple[int, int]:
        return turned_size(self._stored, self._orientation)

    def read(self, part: Box, least: tuple[int, int] | None) -> tuple[Pixels, Box]:
        factor = self._factor(part, least)
        height, width = (-(-side // factor) for side in self._stored)
        space = _SPACES.get(self._mode, "RGB" if self._mode == "unchanged" else "RGBA")
        try:
            pixels = simplejpeg.decode_jpeg(
                self._file, space, min_height=height, min_width=width, min_factor=1, strict=True
            )
        except ValueError as error:
            raise DataError(f"the JPEG is broken: {error}", hint="replace the file") from error
        # What cannot be divided is as wide as its last pixel says.
        scale = [small / whole for small, whole in zip(pixels.shape, self._stored, strict=False)]
        high, wide = turned_size((scale[0], scale[1]), self._orientation)
        box = (
            part
            if factor == 1
            else Box(part.top * high, part.left * wide, part.height * high, part.width * wide)
        )
        return oriented(pixels, self._orientation), box

    def _factor(self, part: Box, least: tuple[int, int] | None) -> int:
        """The scale, one in so many, at which the part still has as many pixels as are wanted."""
        if least is None or not self._reduced:
            return 1
        spare = min(part.height / least[0], part.width / least[1])
        return next((factor for factor in (8, 4, 2) if spare >= factor), 1)
