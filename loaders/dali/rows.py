"""The files of a column, without a copy."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from connectors.arrow_types import Arrow

__all__ = ["files_of"]

Bytes = npt.NDArray[np.uint8]


def files_of(column: Arrow) -> list[Bytes]:
    """The bytes of each row of a binary column, views of its memory; none of a row that is null."""
    wide: Any = np.int64 if pa.types.is_large_binary(column.type) else np.int32
    _, offsets, data = column.buffers()
    at = np.frombuffer(offsets, wide)[column.offset : column.offset + len(column) + 1].tolist()
    memory = np.empty(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)
    return [memory[start:stop] for start, stop in pairwise(at)]
