"""How a camera was held, as it wrote into the file, and pixels turned accordingly.

Source: CIPA DC-008 (Exif 2.32), section 4.6.4, tag 0x0112, in a structure of TIFF 6.0, which JPEG has in an APP1
segment. What cannot be read is as if it were not there: it never costs the image.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from dataflow.graph.image_column import Pixels
from dataflow.ops.images.pixels.segments import segments

__all__ = ["flips", "jpeg_orientation", "oriented", "tiff_orientation", "turned_size"]

_ORIENTATION = 0x0112
_ENTRIES = 1 << 10  # a directory of more is none
_WHOLE_NUMBERS = {3: "H", 4: "I"}  # types of TIFF: SHORT, LONG


def jpeg_orientation(file: memoryview) -> int:
    """1 to 8; 1, as it lies, where the file says nothing or nothing that can be read."""
    return next(map(tiff_orientation, _exif_segments(file)), 1)


def _exif_segments(file: memoryview) -> Iterator[memoryview]:
    """The TIFF parts of the Exif segments in front of the pixels."""
    for code, start, stop in segments(file):
        if code == 0xE1 and bytes(file[start : start + 6]) == b"Exif\0\0":
            yield file[start + 6 : stop]


def tiff_orientation(tiff: memoryview) -> int:
    """1 to 8; 1, as it lies, where the first directory says nothing or nothing that can be read."""
    order = {b"II": "<", b"MM": ">"}.get(bytes(tiff[:2]))
    if order is None:
        return 1
    try:
        (first,) = struct.unpack_from(order + "I", tiff, 4)
        (entries,) = struct.unpack_from(order + "H", tiff, first)
        for at in range(first + 2, first + 2 + 12 * min(entries, _ENTRIES), 12):
            tag, kind, count = struct.unpack_from(order + "HHI", tiff, at)
            if tag == _ORIENTATION and count == 1 and kind in _WHOLE_NUMBERS:
                (value,) = struct.unpack_from(order + _WHOLE_NUMBERS[kind], tiff, at + 8)
                return value if 1 <= value <= 8 else 1
    except struct.error:  # cut off
        return 1
    return 1


def turned_size(size: tuple[int, int], orientation: int) -> tuple[int, int]:
    """Height and width as the image is to be seen."""
    return size[::-1] if orientation >= 5 else size


def flips(orientation: int) -> tuple[bool, bool]:
    """Whether rows, and columns, come in reverse, once sides that change places have."""
    return orientation in (3, 4, 7, 8), orientation in (2, 3, 6, 7)


def oriented(pixels: Pixels, orientation: int) -> Pixels:
    """Pixels (height, width, channels) as they are to be seen, a view."""
    if orientation >= 5:
        pixels = pixels.transpose(1, 0, 2)
    upside_down, mirrored = flips(orientation)
    return pixels[:: -1 if upside_down else 1, :: -1 if mirrored else 1]
