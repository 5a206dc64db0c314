"""What is known of the images of a column before they are seen, and the Arrow type that says so."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
import pyarrow as pa

from connectors.bfloat16 import BFloat16Type, is_bfloat16
from connectors.tensors import shape_of
from dataflow.errors import PlanError
from dataflow.graph.image_column import ImageType

__all__ = ["Dtype", "Form", "Layout", "form_of", "is_encoded", "tensor_form"]

# "HWC" is what decoders give; the others are those of a batch: channels first, last, and first over memory that has
# them last (torch.channels_last).
Layout = Literal["HWC", "NCHW", "NHWC", "channels_last"]
Dtype = Literal["uint8", "float16", "bfloat16", "float32"]
# The stubs of pyarrow know the members of an array or type only when its class is known statically.
Kind: TypeAlias = Any


@dataclass(frozen=True, kw_only=True)
class Form:
    """`channels` and `size` (height, width) are None where images differ in them."""

    dtype: str = "uint8"
    channels: int | None = None
    size: tuple[int, int] | None = None
    layout: Layout = "HWC"

    @property
    def _number(self) -> Kind:
        return BFloat16Type() if self.dtype == "bfloat16" else pa.from_numpy_dtype(np.dtype(self.dtype))

    @property
    def type(self) -> Kind:
        """The Arrow type of a column of such images."""
        if self.size is None or self.channels is None:
            return ImageType(self.dtype, self.channels)
        height, width = self.size
        if self.layout == "NCHW":
            return pa.fixed_shape_tensor(self._number, [self.channels, height, width])
        if self.layout == "channels_last":
            return pa.fixed_shape_tensor(self._number, [height, width, self.channels], permutation=[2, 0, 1])
        return pa.fixed_shape_tensor(self._number, [height, width, self.channels])


def is_encoded(kind: Kind) -> bool:
    """Whether a column may hold files of images."""
    return pa.types.is_binary(kind) or pa.types.is_large_binary(kind)


def form_of(kind: Kind, *, step: str, column: str) -> Form:
    """What a column type says of its images.

    Raises:
        PlanError: it is no column of images.
    """
    if isinstance(kind, ImageType):
        return Form(dtype=str(kind.dtype), channels=kind.channels)
    dense = shape_of(kind)
    if dense is not None and len(dense[1]) == 3 and not is_bfloat16(kind):
        height, width, channels = dense[1]
        if dense[0].name in ("uint8", "uint16") and channels <= 4:
            return Form(dtype=dense[0].name, channels=channels, size=(height, width))
    hint = (
        f"decode it first: .decode_image({column!r})" if is_encoded(kind)
        else "an image is (height, width, channels) of uint8; put this step in front of normalize and to_dtype"
    )  # fmt: skip
    raise PlanError(f"{step}: column {column!r} is {kind}, no images.", hint=hint)


def tensor_form(kind: Kind) -> Form | None:
    """What a column type says of the tensors that images have become; None where it holds none.

    An axis of at most 4 has the channels; whole numbers with the channels last are still pixels.

    Raises:
        PlanError: it may be the first axis or the last.
    """
    dense = shape_of(kind)
    if dense is None or len(dense[1]) != 3 or not isinstance(kind, pa.FixedShapeTensorType):
        return None
    dtype, shape = "bfloat16" if is_bfloat16(kind) else dense[0].name, dense[1]
    first, last = shape[0] <= 4, shape[2] <= 4 and kind.permutation is None
    if not (first or last) or (last and dtype.startswith("uint")):
        return None
    if first and last:
        raise PlanError(
            f"in {kind} the channels may be the first axis or the last.",
            hint="make the images wider than 4 pixels",
        )
    if first:
        channels, height, width = shape
        layout: Layout = "NCHW" if kind.permutation is None else "channels_last"
    else:
        height, width, channels = shape
        layout = "NHWC"
    return Form(dtype=dtype, channels=channels, size=(height, width), layout=layout)
