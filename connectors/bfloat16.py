"""bfloat16, which neither NumPy nor Arrow has: as the 16 bits of each number, in an Arrow type that says so.

A bfloat16 is the upper half of the bits of a float32.
"""

from __future__ import annotations

from typing import Any, Self, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

__all__ = ["BFloat16Type", "is_bfloat16", "rounded", "widened"]

_QUIET_NAN = np.uint16(0x7FC0)


class BFloat16Type(pa.ExtensionType):
    """A number in bfloat16, stored as the uint16 of its bits."""

    def __init__(self) -> None:
        super().__init__(pa.uint16(), "dataflow.bfloat16")

    def __arrow_ext_serialize__(self) -> bytes:
        return b""

    @classmethod
    def __arrow_ext_deserialize__(cls, storage_type: pa.DataType, serialized: bytes) -> Self:
        return cls()

    def __str__(self) -> str:
        return "bfloat16"


pa.register_extension_type(cast(Any, BFloat16Type()))


def is_bfloat16(kind: Any) -> bool:
    """Whether the numbers of a column are bfloat16, whatever their shape."""
    if isinstance(kind, pa.FixedShapeTensorType) or pa.types.is_fixed_size_list(kind):
        return is_bfloat16(kind.value_type)
    return isinstance(kind, BFloat16Type)


def rounded(values: npt.NDArray[np.float32]) -> npt.NDArray[np.uint16]:
    """The bits of the nearest bfloat16 of each value, of two the even one, as torch rounds."""
    bits = values.view(np.uint32)
    nearest = (
        (bits + (np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1)))) >> np.uint32(16)
    ).astype(np.uint16)
    return np.where(np.isnan(values), _QUIET_NAN, nearest)


def widened(bits: npt.NDArray[np.uint16]) -> npt.NDArray[np.float32]:
    """The numbers that have these bits, exactly."""
    return (bits.astype(np.uint32) << np.uint32(16)).view(np.float32)
