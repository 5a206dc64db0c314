"""Images of different sizes as one Arrow column, and what each of them is as NumPy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, Self, TypeAlias, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from connectors.tensors import shape_of
from dataflow.errors import DataError

__all__ = ["IMAGE_DTYPES", "ImageType", "Pixels", "image_column", "images_in"]

# (height, width, channels), uint8 or uint16.
Pixels: TypeAlias = npt.NDArray[Any]
# The stubs of pyarrow know the members of an array or type only when its class is known statically.
Arrow: TypeAlias = Any

IMAGE_DTYPES: Final = ("uint8", "uint16")
_STORAGE: Final = pa.struct(
    [pa.field("shape", pa.list_(pa.int32(), 3)), pa.field("pixels", pa.large_binary())]
)


class ImageType(pa.ExtensionType):
    """A row is an array (height, width, channels), each of a height and width of its own.

    Stored as a struct of the three numbers and the pixels' bytes, row by row, channels last.

    Args:
        dtype: that of the pixels, "uint8" or "uint16".
        channels: how many all images have; None where they differ.
    """

    def __init__(self, dtype: str = "uint8", channels: int | None = None) -> None:
        self.dtype, self.channels = np.dtype(dtype), channels
        super().__init__(_STORAGE, "dataflow.image")

    def __arrow_ext_serialize__(self) -> bytes:
        return f"{self.dtype},{self.channels or 0}".encode()

    @classmethod
    def __arrow_ext_deserialize__(cls, storage_type: pa.DataType, serialized: bytes) -> Self:
        dtype, channels = serialized.decode().split(",")
        return cls(dtype, int(channels) or None)

    def holds(self, kind: pa.DataType) -> bool:
        """Whether images of one shape, of a dense type, may be rows of such a column."""
        dense = shape_of(kind)
        return dense is not None and self.fits(*dense)

    def fits(self, dtype: np.dtype[Any], shape: tuple[int, ...]) -> bool:
        """Whether arrays of that dtype and shape may be rows."""
        return dtype == self.dtype and len(shape) == 3 and self.channels in (None, shape[2])

    def __str__(self) -> str:
        return f"image[{self.dtype}{'' if self.channels is None else f', {self.channels} channels'}]"


pa.register_extension_type(cast(Any, ImageType()))


def image_column(images: Sequence[Pixels | None], kind: ImageType) -> Arrow:
    """A column of these images, copied; None is null.

    Raises:
        DataError: an image is not of the dtype or the number of channels that `kind` says.
    """
    for image in images:
        if image is not None and not kind.fits(image.dtype, image.shape):
            raise DataError(
                f"an image of shape {image.shape} and {image.dtype} in a column of {kind}.",
                hint="give images (height, width, channels) of that dtype",
            )
    shapes = np.array([(0, 0, 0) if image is None else image.shape for image in images], np.int32)
    missing = pa.array([image is None for image in images], pa.bool_())
    shape: Arrow = pa.Array.from_buffers(
        pa.list_(pa.int32(), 3), len(images), [None], children=[pa.array(shapes.reshape(-1))]
    )
    offsets = np.zeros(len(images) + 1, np.int64)
    np.cumsum([0 if image is None else image.nbytes for image in images], out=offsets[1:])
    joined = np.empty(int(offsets[-1]), np.uint8)
    for image, start, stop in zip(images, offsets, offsets[1:], strict=False):
        if image is not None:
            joined[start:stop] = np.ascontiguousarray(image).reshape(-1).view(np.uint8)
    pixels = pa.Array.from_buffers(
        pa.large_binary(),
        len(images),
        [None, pa.py_buffer(cast(Any, offsets)), pa.py_buffer(cast(Any, joined))],
    )
    struct: Arrow = pa.StructArray.from_arrays([shape, pixels], fields=list(_STORAGE), mask=missing)
    return pa.ExtensionArray.from_storage(kind, struct)


def images_in(column: Arrow) -> Iterator[Pixels | None]:
    """The images of a column, read-only views of its memory; None where it is null."""
    storage = column.storage
    shapes = storage.field("shape").flatten().to_numpy(zero_copy_only=False).reshape(-1, 3)
    pixels = storage.field("pixels")
    _, offsets, data = pixels.buffers()
    starts = np.frombuffer(offsets, np.int64)[pixels.offset : pixels.offset + len(pixels) + 1]
    memory = np.frombuffer(data, np.uint8) if data is not None else np.empty(0, np.uint8)
    valid = storage.is_valid().to_pylist()
    for place, (shape, start, stop) in enumerate(zip(shapes, starts, starts[1:], strict=False)):
        image = memory[start:stop].view(column.type.dtype).reshape(shape) if valid[place] else None
        if image is not None:
            image.flags.writeable = False
        yield image
