"""Files that Pillow decodes: PNG, WebP, GIF, BMP and TIFF, and JPEG of rare sampling."""

from __future__ import annotations

import io
from typing import Final

from PIL import ImageFile
from PIL.BmpImagePlugin import BmpImageFile
from PIL.GifImagePlugin import GifImageFile
from PIL.JpegImagePlugin import JpegImageFile
from PIL.PngImagePlugin import PngImageFile
from PIL.TiffImagePlugin import TiffImageFile
from PIL.WebPImagePlugin import WebPImageFile

from dataflow.errors import DataError
from dataflow.graph.image_column import Pixels
from dataflow.ops.images.canvas import Box
from dataflow.ops.images.pixels.containers import png_exif, webp_exif, webp_size
from dataflow.ops.images.pixels.exif import jpeg_orientation, oriented, tiff_orientation, turned_size
from dataflow.ops.images.pixels.modes import in_mode

__all__ = ["ByPillow"]

# Not by Image.open: it has other readers, some of which start programs, and a limit on pixels for the whole process.
_READERS: Final[dict[str, type[ImageFile.ImageFile]]] = {
    "BMP": BmpImageFile,
    "GIF": GifImageFile,
    "JPEG": JpegImageFile,
    "PNG": PngImageFile,
    "TIFF": TiffImageFile,
    "WebP": WebPImageFile,
}


class ByPillow:
    """The image in a file of this format; of several images or frames the first.

    Only its head is read until pixels are wanted, so that an image too large takes no memory.

    Raises:
        DataError: the head of the file cannot be read.
    """

    def __init__(self, file: memoryview, format: str, mode: str) -> None:
        self._file, self._format, self._mode = file, format, mode
        self._orientation = _orientation(file, format)
        self.size = turned_size(self._stored_size(), self._orientation)

    def _stored_size(self) -> tuple[int, int]:
        size = webp_size(self._file) if self._format == "WebP" else None
        if size is None:
            width, height = self._open().size
            return height, width
        return size

    def _open(self) -> ImageFile.ImageFile:
        try:
            return _READERS[self._format](io.BytesIO(self._file))
        except Exception as error:
            raise self._broken(error) from error

    def _broken(self, error: Exception) -> DataError:
        return DataError(f"the {self._format} is broken: {error}", hint="replace the file")

    def read(self, part: Box, least: tuple[int, int] | None) -> tuple[Pixels, Box]:
        image = self._open()
        try:
            image.load()
        except Exception as error:
            raise self._broken(error) from error
        return oriented(in_mode(image, self._mode), self._orientation), part


def _orientation(file: memoryview, format: str) -> int:
    """How the image is to be turned; Pillow turns TIFF by itself."""
    if format == "JPEG":
        return jpeg_orientation(file)
    exif = {"PNG": png_exif, "WebP": webp_exif}.get(format, lambda _: None)(file)
    return 1 if exif is None else tiff_orientation(exif)
