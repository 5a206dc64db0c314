"""Files of images: what they are by their content, how large, and their pixels."""

from __future__ import annotations

import io
import warnings
from typing import Final

import numpy as np
from PIL import Image, ImageOps

from dataflow.errors import DataError
from dataflow.graph.image_column import Pixels
from dataflow.ops.images.canvas import Box, Source
from dataflow.ops.images.pixels.jpeg import Jpeg, is_jpeg

__all__ = ["open_image"]

# Where a mode has no own channels for what a file has.
_UNCHANGED: Final = {"1": "L", "P": "RGB", "PA": "RGBA", "CMYK": "RGB", "YCbCr": "RGB", "LAB": "RGB", "HSV": "RGB",
                     "La": "LA", "RGBa": "RGBA", "RGBX": "RGB"}  # fmt: skip


def open_image(file: memoryview, mode: str, *, max_pixels: int, reduced: bool) -> Source:
    """The image in a file, as `mode` has it.

    Raises:
        DataError: it is none, is broken at its head, or has more than `max_pixels`.
    """
    image: Source
    if not len(file):
        raise DataError("the image file is empty.", hint="leave the row out, or replace the file")
    if is_jpeg(file) and (jpeg := Jpeg(file, mode, reduced=reduced)).colorspace not in ("CMYK", "YCCK"):
        image = jpeg
    else:
        image = _Other(file, mode)
    height, width = image.size
    if height * width > max_pixels:
        raise DataError(
            f"the image has {height} x {width} pixels, more than {max_pixels:,}.",
            hint="raise max_pixels= of decode_image where such images are meant",
        )
    return image


class _Other:
    """An image that Pillow reads: PNG, WebP, GIF, BMP, TIFF, and JPEG in printers' colours."""

    def __init__(self, file: memoryview, mode: str) -> None:
        try:
            # Its warnings about many pixels are ours to give.
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                self._image = Image.open(io.BytesIO(file))
        except Exception as error:
            raise DataError(
                f"the file is no image that can be read: {error}",
                hint="JPEG, PNG, WebP, GIF, BMP and TIFF can",
            ) from error
        self._mode = mode

    @property
    def size(self) -> tuple[int, int]:
        width, height = self._image.size
        turned = self._image.getexif().get(0x0112, 1) in (5, 6, 7, 8)
        return (width, height) if turned else (height, width)

    def read(self, part: Box, least: tuple[int, int] | None) -> tuple[Pixels, Box]:
        try:
            image = ImageOps.exif_transpose(self._image)
            pixels = np.asarray(_in_mode(image, self._mode))
        except Exception as error:
            raise DataError(f"the image is broken: {error}", hint="replace the file") from error
        return pixels.reshape(*pixels.shape[:2], -1), part


def _in_mode(image: Image.Image, mode: str) -> Image.Image:
    """The image in a mode of the pipeline; samples of 16 bits lose their lower half."""
    if image.mode.startswith("I;16") or image.mode in ("I", "F"):
        values = np.asarray(image, np.float64)
        # 16-bit files come as whole numbers up to 65,535.
        image = Image.fromarray(np.clip(values / 257, 0, 255).astype(np.uint8))
    if mode == "unchanged":
        wanted = (
            "RGBA"
            if "transparency" in image.info and image.mode == "P"
            else _UNCHANGED.get(image.mode, image.mode)
        )
    else:
        wanted = mode
    return image if image.mode == wanted else image.convert(wanted)
