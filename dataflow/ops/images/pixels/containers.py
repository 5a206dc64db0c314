"""PNG and WebP files as lists of chunks: how large the image is, and the Exif that lies among them.

Sources: PNG (Third Edition), sections 5 and 11.3.3; RFC 9649 (WebP), section 2.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

__all__ = ["png_exif", "webp_exif", "webp_size"]


def _chunks(file: memoryview, at: int, *, big_endian: bool) -> Iterator[tuple[bytes, memoryview]]:
    """The name and content of each chunk from byte `at` on; one that is cut off is the last."""
    while at + 8 <= len(file):
        if big_endian:
            length, name = struct.unpack_from(">I4s", file, at)
            following = at + 8 + length + 4  # a checksum
        else:
            name, length = struct.unpack_from("<4sI", file, at)
            following = at + 8 + length + length % 2
        yield name, file[at + 8 : at + 8 + length]
        at = following


def png_exif(file: memoryview) -> memoryview | None:
    """The TIFF structure of the eXIf chunk."""
    return _first(_chunks(file, 8, big_endian=True), b"eXIf")


def webp_exif(file: memoryview) -> memoryview | None:
    """The TIFF structure of the EXIF chunk; some writers put "Exif" in front, as JPEG has it."""
    found = _first(_chunks(file, 12, big_endian=False), b"EXIF")
    return found[6:] if found is not None and bytes(found[:6]) == b"Exif\0\0" else found


def _first(chunks: Iterator[tuple[bytes, memoryview]], wanted: bytes) -> memoryview | None:
    return next((content for name, content in chunks if name == wanted), None)


def webp_size(file: memoryview) -> tuple[int, int] | None:
    """Height and width, read without the decoder, which takes memory for the image first; None: they are not there."""
    name, content = next(_chunks(file, 12, big_endian=False), (b"", file[:0]))
    try:
        if name == b"VP8X":
            width, _, height, _ = struct.unpack_from("<HBHB", content, 4)
            width, height = width + (content[6] << 16) + 1, height + (content[9] << 16) + 1
        elif name == b"VP8L":
            (bits,) = struct.unpack_from("<I", content, 1)
            width, height = (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
        elif name == b"VP8 ":
            width, height = (side & 0x3FFF for side in struct.unpack_from("<HH", content, 6))
        else:
            return None
    except struct.error:  # cut off
        return None
    return height, width
