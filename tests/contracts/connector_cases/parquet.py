from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from connector_case import ConnectorCase

from connectors.parquet import Parquet

TABLE = pa.table(
    {
        "id": pa.array(range(23), pa.int32()),
        "name": pa.array([None if k % 7 == 3 else f"row {k}" for k in range(23)]),
        "vector": pa.array([[k, k + 1.5] for k in range(23)], pa.list_(pa.float32(), 2)),
        "nested": pa.array([{"a": k, "b": ["x"] * (k % 3)} for k in range(23)]),
    }
)


def write(folder: Path) -> Sequence[Path]:
    paths = [folder / "a.parquet", folder / "b.parquet"]
    pq.write_table(TABLE.slice(0, 15), paths[0], row_group_size=6)
    pq.write_table(TABLE.slice(15), paths[1], row_group_size=100)
    return paths


CASE = ConnectorCase(name="parquet", connector=Parquet(), write=write, expected=TABLE)
