"""Which columns are dense: NumPy memory of a fixed shape for every row. All others stay Arrow."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from connectors.tensors import shape_of

__all__ = ["dense_shape"]


def dense_shape(kind: pa.DataType) -> tuple[np.dtype[np.generic], tuple[int, ...]] | None:
    """Dtype and shape of columns that are scattered as NumPy: numbers and fixed shapes of numbers.

    Times stay Arrow until they become a tensor, so that functions and filters still see times.
    """
    leaf = kind
    while isinstance(leaf, pa.FixedShapeTensorType) or pa.types.is_fixed_size_list(leaf):
        leaf = leaf.value_type
    return None if pa.types.is_temporal(leaf) else shape_of(kind)
