"""Files of images that Pillow does not write, byte by byte, and what a decoder makes of a file."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from dataflow.graph.image_column import Pixels
from dataflow.ops.images.canvas import Box
from dataflow.ops.images.pixels.codec import open_image

__all__ = [
    "decoded",
    "exif",
    "interlaced_png",
    "jpeg_with",
    "png_chunk",
    "png_head",
    "tiff",
    "tiled_tiff",
    "with_exif",
]

# Where Adam7 begins, and its steps: rows and columns of each of the seven passes.
_ADAM7 = [(0, 0, 8, 8), (0, 4, 8, 8), (4, 0, 8, 4), (0, 2, 4, 4), (2, 0, 4, 2), (0, 1, 2, 2), (1, 0, 2, 1)]


def decoded(file: bytes, mode: str = "RGB", *, max_pixels: int = 10**9) -> Pixels:
    """The whole image of a file."""
    source = open_image(memoryview(file), mode, max_pixels=max_pixels, reduced=True)
    pixels, _ = source.read(Box(0, 0, *source.size), None)
    assert pixels.shape[:2] == source.size
    return pixels


def png_chunk(name: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))


def png_head(height: int, width: int, *, interlaced: bool = False) -> bytes:
    """A PNG up to its pixels, RGB of 8 bits."""
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, interlaced)
    return b"\x89PNG\r\n\x1a\n" + png_chunk(b"IHDR", head)


def interlaced_png(pixels: npt.NDArray[np.uint8]) -> bytes:
    rows = []
    for top, left, down, right in _ADAM7:
        part = pixels[top::down, left::right]
        if part.size:
            rows += [b"\0" + row.tobytes() for row in part]
    file = png_head(*pixels.shape[:2], interlaced=True)
    return file + png_chunk(b"IDAT", zlib.compress(b"".join(rows))) + png_chunk(b"IEND", b"")


def tiff(entries: Sequence[tuple[int, int, int, bytes]], *, order: str = "<", rest: bytes = b"") -> bytes:
    """A TIFF of one directory (tag, type, count, value in 4 bytes), which begins at byte 8, and what follows."""
    fields = b"".join(struct.pack(order + "HHI", *entry[:3]) + entry[3].ljust(4, b"\0") for entry in entries)
    head = (b"II*\0" if order == "<" else b"MM\0*") + struct.pack(order + "I", 8)
    return head + struct.pack(order + "H", len(entries)) + fields + bytes(4) + rest


def tiled_tiff(grey: npt.NDArray[np.uint8], tile: int = 16) -> bytes:
    """A grey image in square tiles, without compression."""
    height, width = grey.shape
    padded = np.pad(grey, [(0, -height % tile), (0, -width % tile)])
    tiles = [
        padded[top : top + tile, left : left + tile].tobytes()
        for top in range(0, height, tile)
        for left in range(0, width, tile)
    ]
    count, long, short = len(tiles), 4, 3
    tables = 8 + 2 + 12 * 9 + 4
    first = tables + 8 * count
    numbers: list[tuple[int, int, int, bytes]] = [
        (tag, long if tag in (324, 325) else short, amount, struct.pack("<I", value))
        for tag, amount, value in [
            (256, 1, width), (257, 1, height), (258, 1, 8), (259, 1, 1), (262, 1, 1), (322, 1, tile), (323, 1, tile),
            (324, count, tables), (325, count, tables + 4 * count),
        ]
    ]  # fmt: skip
    places = [first + tile * tile * number for number in range(count)]
    table = struct.pack(f"<{2 * count}I", *places, *[tile * tile] * count)
    return tiff(numbers, rest=table + b"".join(tiles))


def exif(orientation: int, *, order: str = "<", kind: str = "H") -> bytes:
    """The TIFF structure of Exif with nothing but how the camera was held."""
    return tiff([(0x0112, {"H": 3, "I": 4}[kind], 1, struct.pack(order + kind, orientation))], order=order)


def with_exif(jpeg: bytes, structure: bytes) -> bytes:
    """A JPEG with this Exif segment in front of all others."""
    content = b"Exif\0\0" + structure
    return jpeg[:2] + b"\xff\xe1" + struct.pack(">H", len(content) + 2) + content + jpeg[2:]


def jpeg_with(jpeg: bytes, **changes: Any) -> bytes:
    """A JPEG that says something else of itself.

    Args:
        frame: the second byte of the marker that says how pixels are coded.
        precision: bits of a sample.
        size: height and width.
        sampling: that of the first and of the second component, factors as two hexadecimal digits.
        transform: of Adobe's marker.
        last: the last coefficient of the first scan.
    """
    file = bytearray(jpeg)
    at = next(file.find(marker) for marker in (b"\xff\xc0", b"\xff\xc2") if marker in file)
    if "frame" in changes:
        file[at + 1] = changes["frame"]
    if "precision" in changes:
        file[at + 4] = changes["precision"]
    if "size" in changes:
        struct.pack_into(">HH", file, at + 5, *changes["size"])
    if "sampling" in changes:
        file[at + 11], file[at + 14] = changes["sampling"]
    if "transform" in changes:
        file[file.find(b"Adobe") + 11] = changes["transform"]
    if "last" in changes:
        at = file.find(b"\xff\xda")
        file[at + 6 + 2 * file[at + 4]] = changes["last"]
    return bytes(file)
