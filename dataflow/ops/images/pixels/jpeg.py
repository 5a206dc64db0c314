"""JPEG files: their size, and the pixels of a part of them at the scale that is wanted.

libjpeg-turbo decodes at 1/2, 1/4 and 1/8 of the size by leaving out what a smaller image does not show.
"""

from __future__ import annotations

import re
from math import ceil
from typing import Final, NamedTuple

import cv2
import numpy as np
import simplejpeg

from dataflow.errors import DataError
from dataflow.graph.image_column import Pixels
from dataflow.ops.images.canvas import Box
from dataflow.ops.images.pixels.exif import flips, jpeg_orientation, oriented, turned_size
from dataflow.ops.images.pixels.pillow import ByPillow
from dataflow.ops.images.pixels.upper_rows import MARGIN, upper_rows

__all__ = ["Head", "Jpeg", "jpeg_head"]

_SPACES: Final = {"RGB": "RGB", "L": "GRAY", "RGBA": "RGBA"}
_CHANNELS: Final = {"RGB": 3, "GRAY": 1, "RGBA": 4, "CMYK": 4}
_PRINTERS: Final = ("CMYK", "YCCK")
# How many times as many pixels as are wanted a smaller scale must leave: averaged from fewer, photographs differ from
# those of the whole by a PSNR down to 30 dB, from these by 35 at the least and 44 in the mean.
_SPARE: Final = 1.4
# Of fewer rows and columns 3/8 may be as many as 1/2: which scale is decoded could not be told.
_LEAST_SIDE: Final = 8
# The share of rows up to which those below are left out.
_MOST_ROWS: Final = 0.95
# What phones and editors leave behind: numbers that nobody reads, and bytes between one part of the file and the next
# (more of them, or in front of a restart marker 0xd0 to 0xd7, are pixels that were lost).
_HARMLESS: Final = re.compile(
    r"Invalid SOS parameters|\b[1-6]?\d extraneous bytes before marker 0x(?!d[0-7])"
)


class Head(NamedTuple):
    """What a JPEG says of itself: how it lies in the file, not yet turned."""

    height: int
    width: int
    colorspace: str


def jpeg_head(file: memoryview) -> Head | None:
    """The head of a JPEG; None: its colours are sampled in a way that TurboJPEG does not know.

    Raises:
        DataError: it has none.
    """
    try:
        height, width, colorspace, _ = simplejpeg.decode_jpeg_header(file, strict=False)
    except (ValueError, KeyError) as error:
        if "subsampling" in str(error):
            return None
        # KeyError: it ends before it says what it is.
        why = "it ends in its head" if isinstance(error, KeyError) else error
        raise DataError(f"the JPEG is broken: {why}.", hint="replace the file") from error
    return Head(height, width, colorspace)


class Jpeg:
    """The image in a JPEG; pixels that are cut off or damaged make it broken, not grey."""

    def __init__(
        self, file: memoryview, head: Head, mode: str, *, reduced: bool, verify: bool = False
    ) -> None:
        self._file, self._head, self._reduced, self._verify = file, head, reduced, verify
        own = "L" if head.colorspace == "Gray" else "RGB"
        self._mode = own if mode == "unchanged" else mode
        self._orientation = jpeg_orientation(file)

    @property
    def size(self) -> tuple[int, int]:
        return turned_size((self._head.height, self._head.width), self._orientation)

    @property
    def printed(self) -> bool:
        """Whether its colours are inks."""
        return self._head.colorspace in _PRINTERS

    def read(self, part: Box, least: tuple[int, int] | None) -> tuple[Pixels, Box]:
        factor = self._factor(part, least)
        try:
            decoded = self._decoded(factor, self._rows(part, factor))
        except ValueError as error:
            if not _HARMLESS.search(str(error)):
                raise DataError(f"the JPEG is broken: {error}", hint="replace the file") from error
            # TurboJPEG stops there or looks at no fault behind it; Pillow goes on, to where a file is cut off.
            return ByPillow(self._file, "JPEG", self._mode).read(part, least)
        pixels = oriented(decoded, self._orientation)
        return pixels, self._within(part, factor, pixels)

    def _factor(self, part: Box, least: tuple[int, int] | None) -> int:
        """The scale, one in so many, at which the part still has pixels enough."""
        if least is None or not self._reduced or max(self.size) < _LEAST_SIDE:
            return 1
        spare = min(part.height / least[0], part.width / least[1])
        return next((factor for factor in (8, 4, 2) if spare >= _SPARE * factor), 1)

    def _rows(self, part: Box, factor: int) -> int:
        """How many rows of the file, from its first one on, show the part at a scale of one in `factor`."""
        turned, (upside_down, mirrored) = self._orientation >= 5, flips(self._orientation)
        start, length = (part.left, part.width) if turned else (part.top, part.height)
        height = self._head.height
        stop = height - start if (mirrored if turned else upside_down) else start + length
        return min(height, max(_LEAST_SIDE, factor * (ceil(stop / factor) + MARGIN)))

    def _decoded(self, factor: int, rows: int) -> Pixels:
        """All rows of the file, or the first `rows` of them."""
        space = "CMYK" if self.printed else _SPACES[self._mode]
        pixels = self._upper(factor, rows, space)
        if pixels is None:
            height, width = -(-self._head.height // factor), -(-self._head.width // factor)
            pixels = simplejpeg.decode_jpeg(
                self._file, space, min_height=height, min_width=width, min_factor=1, strict=True
            )
        return _from_print(pixels, self._mode) if self.printed else pixels

    def _upper(self, factor: int, rows: int, space: str) -> Pixels | None:
        # To copy the file and to cut it costs two hundredths of decoding it.
        if self._verify or rows > self._head.height * _MOST_ROWS:
            return None
        shape = (-(-rows // factor), -(-self._head.width // factor), _CHANNELS[space])
        made = np.empty(shape, np.uint8)
        return made if upper_rows(self._file, rows, space, made) else None

    def _within(self, part: Box, factor: int, pixels: Pixels) -> Box:
        """Where a part lies in the upper pixels of the file, each of which shows `factor` x `factor` of the image."""
        if factor == 1 and pixels.shape[:2] == self.size:
            return part
        upside_down, mirrored = flips(self._orientation)
        height, width = self.size
        # The last pixel may show more than there is, or have been left out; turned, it is the first.
        above = pixels.shape[0] * factor - height if upside_down else 0
        before = pixels.shape[1] * factor - width if mirrored else 0
        return Box(
            (part.top + above) / factor,
            (part.left + before) / factor,
            part.height / factor,
            part.width / factor,
        )


def _from_print(inks: Pixels, mode: str) -> Pixels:
    """Cyan, magenta, yellow and black, each 255 where there is no ink, as `mode`; with Pillow's plain formula."""
    # In their place, one ink after the other: the image is large, and three copies of it are not needed.
    black = np.ascontiguousarray(inks[..., 3])
    for ink in range(3):
        inks[..., ink] = cv2.multiply(np.ascontiguousarray(inks[..., ink]), black, scale=1 / 255)
    inks[..., 3] = 255
    if mode == "RGBA":
        return inks
    made = cv2.cvtColor(inks, cv2.COLOR_RGBA2GRAY if mode == "L" else cv2.COLOR_RGBA2RGB)
    return made.reshape(*made.shape[:2], -1)
