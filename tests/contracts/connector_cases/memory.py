from __future__ import annotations

import pyarrow as pa
from connector_case import ConnectorCase

from connectors.memory import InMemory

PARTS = [
    pa.table(
        {
            "id": pa.array(range(start, start + 1100), pa.int32()),
            "vector": pa.array([[k, -k] for k in range(start, start + 1100)], pa.list_(pa.int16(), 2)),
            "text": pa.array([None if k % 5 == 0 else str(k) for k in range(start, start + 1100)]),
        }
    )
    for start in (0, 1100)
]
TABLE = pa.concat_tables(PARTS)

CASE = ConnectorCase(name="memory", connector=InMemory(TABLE), write=None, expected=TABLE)
