from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from connector_case import ConnectorCase

from connectors.dataset import Dataset
from connectors.tensors import to_arrow


class Squares:
    """A map-style data set of 1,500 rows, so of two fragments."""

    def __len__(self) -> int:
        return 1500

    def __getitem__(self, index: int) -> dict[str, Any]:
        return {"x": np.full((2, 2), index, np.float32), "y": index**2, "name": f"n{index}"}


CASE = ConnectorCase(
    name="dataset",
    connector=Dataset(data=Squares()),
    write=None,
    expected=pa.table(
        {
            "x": to_arrow(np.arange(1500, dtype=np.float32).repeat(4).reshape(1500, 2, 2)),
            "y": pa.array([k**2 for k in range(1500)]),
            "name": [f"n{k}" for k in range(1500)],
        }
    ),
)
