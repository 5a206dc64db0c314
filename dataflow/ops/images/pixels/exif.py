"""The orientation that a camera wrote into a JPEG.

Source: CIPA DC-008 (Exif 2.32), section 4.6.4, tag 0x0112, in an APP1 segment as TIFF 6.0 has it.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from dataflow.graph.image_column import Pixels

__all__ = ["jpeg_orientation", "oriented", "turned_size"]

_ORIENTATION = 0x0112
_ENTRIES = 1 << 10  # a directory of more is none


def jpeg_orientation(file: memoryview) -> int:
    """1 to 8; 1, as it lies, where the file says nothing or nothing that can be read."""
    for segment in _exif_segments(file):
        found = _tag(segment)
        if found is not None and 1 <= found <= 8:
            return found
    return 1


def _exif_segments(file: memoryview) -> Iterator[memoryview]:
    """The TIFF parts of the Exif segments in front of the pixels."""
    at = 2
    while at + 4 <= len(file) and file[at] == 0xFF:
        marker = file[at + 1]
        if marker == 0xFF:  # padding
            at += 1
            continue
        if marker in (0xDA, 0xD9):
            return
        length = file[at + 2] << 8 | file[at + 3]
        if marker == 0xE1 and bytes(file[at + 4 : at + 10]) == b"Exif\0\0":
            yield file[at + 10 : at + 2 + length]
        at += 2 + max(2, length)


def _tag(tiff: memoryview) -> int | None:
    order = {b"II": "<", b"MM": ">"}.get(bytes(tiff[:2]))
    if order is None or len(tiff) < 8:
        return None
    try:
        (first,) = struct.unpack_from(order + "I", tiff, 4)
        (entries,) = struct.unpack_from(order + "H", tiff, first)
        for entry in range(min(entries, _ENTRIES)):
            tag, kind, count, value = struct.unpack_from(order + "HHIH", tiff, first + 2 + 12 * entry)
            if tag == _ORIENTATION:
                return int(value) if (kind, count) == (3, 1) else None
    except struct.error:  # cut off
        return None
    return None


def turned_size(size: tuple[int, int], orientation: int) -> tuple[int, int]:
    """Height and width as the image is to be seen."""
    return size[::-1] if orientation >= 5 else size


def oriented(pixels: Pixels, orientation: int) -> Pixels:
    """Pixels (height, width, channels) as they are to be seen, a view."""
    if orientation >= 5:
        pixels = pixels.transpose(1, 0, 2)
    if orientation in (2, 3, 6, 7):
        pixels = pixels[:, ::-1]
    if orientation in (3, 4, 7, 8):
        pixels = pixels[::-1]
    return pixels
