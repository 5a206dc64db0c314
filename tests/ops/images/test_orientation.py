"""Images are as the camera was held; what cannot be read of that is as if it were not there."""

from __future__ import annotations

import io
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from odd_files import decoded, exif, tiff, with_exif
from photographs import encoded, photograph
from PIL import Image, ImageOps

from dataflow.ops.images.pixels.exif import jpeg_orientation, tiff_orientation

PIXELS = photograph(0, 31, 47)
JPEG = encoded(PIXELS)
FORMATS: dict[str, tuple[str, dict[str, object]]] = {
    "JPEG": ("JPEG", {}),
    "PNG": ("PNG", {}),
    "WebP": ("WEBP", {"lossless": True}),
    "TIFF": ("TIFF", {}),
    "TIFF, LZW": ("TIFF", {"compression": "tiff_lzw"}),
}


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("name", FORMATS)
def test_every_orientation_is_that_of_pillow(name: str, orientation: int) -> None:
    format, options = FORMATS[name]
    tags = Image.Exif()
    tags[0x0112] = orientation
    file = encoded(PIXELS, format, exif=tags, **options)
    wanted = np.asarray(ImageOps.exif_transpose(Image.open(io.BytesIO(file))))
    assert np.abs(decoded(file).astype(int) - wanted).max() <= 2 * (name == "JPEG")


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("kind", ["H", "I"])
def test_the_tag_is_read_in_both_byte_orders_and_widths(orientation: int, order: str, kind: str) -> None:
    assert (
        jpeg_orientation(memoryview(with_exif(JPEG, exif(orientation, order=order, kind=kind))))
        == orientation
    )


def loop() -> bytes:
    """A directory that is followed by itself."""
    structure = bytearray(tiff([(0x0110, 2, 4, b"cam\0")]))
    structure[-4:] = struct.pack("<I", 8)
    return bytes(structure)


ODD: dict[str, bytes] = {
    "nothing": b"",
    "no TIFF": b"garbage of a camera",
    "cut off in its head": exif(6)[:5],
    "cut off in its directory": exif(6)[:14],
    "a directory far behind the end": b"II*\0\xff\xff\xff\xff",
    "a directory at 0": b"II*\0\0\0\0\0",
    "more entries than bytes": b"II*\0\x08\0\0\0\xff\xff",
    "a huge count": tiff([(0x0112, 3, 0xFFFFFFFF, b"\6\0\0\0")]),
    "a type that is no number": tiff([(0x0112, 2, 1, b"\6\0\0\0")]),
    "orientation 0": exif(0),
    "orientation 9": exif(9),
    "a loop": loop(),
}


@pytest.mark.parametrize("name", ODD)
def test_odd_exif_leaves_an_image_as_it_lies(name: str) -> None:
    assert np.array_equal(decoded(with_exif(JPEG, ODD[name])), decoded(JPEG))
    for format in ("PNG", "WEBP"):
        file = encoded(
            PIXELS, format, exif=ODD[name] or b"x", **({"lossless": True} if format == "WEBP" else {})
        )
        assert np.array_equal(decoded(file), PIXELS)


@given(st.binary(max_size=80), st.sampled_from([b"", b"II*\0\x08\0\0\0", b"MM\0*\0\0\0\x08"]))
def test_no_bytes_of_exif_are_an_error(garbage: bytes, head: bytes) -> None:
    assert 1 <= tiff_orientation(memoryview(head + garbage)) <= 8
    assert 1 <= jpeg_orientation(memoryview(with_exif(JPEG, head + garbage))) <= 8


@given(st.integers(0, len(JPEG)))
def test_a_file_may_end_anywhere_in_front_of_its_exif(length: int) -> None:
    assert 1 <= jpeg_orientation(memoryview(with_exif(JPEG, exif(6))[:length])) <= 8
