"""Files of images: what they are by their content, how large, and their pixels."""

from __future__ import annotations

from dataflow.errors import DataError
from dataflow.ops.images.canvas import Source
from dataflow.ops.images.pixels.content import format_of
from dataflow.ops.images.pixels.jpeg import Jpeg, jpeg_head
from dataflow.ops.images.pixels.pillow import ByPillow

__all__ = ["open_image"]


def open_image(
    file: memoryview, mode: str, *, max_pixels: int, reduced: bool, verify: bool = False
) -> Source:
    """The image in a file, as `mode` has it; no memory is taken for its pixels.

    `reduced` and `verify` are those of `decode_image`.

    Raises:
        DataError: it is none, is broken at its head, or has more than `max_pixels`.
    """
    format = format_of(file)
    head = jpeg_head(file) if format == "JPEG" else None
    image: Source
    if head is None:
        image = ByPillow(file, format, mode)
    else:
        image = Jpeg(file, head, mode, reduced=reduced, verify=verify)
    height, width = image.size
    if height * width > max_pixels:
        raise DataError(
            f"the image has {height:,} x {width:,} pixels, more than {max_pixels:,}.",
            hint="raise max_pixels= of decode_image where such images are meant",
        )
    return image
