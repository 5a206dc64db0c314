"""Two files, the first larger than a block, with nested, missing and null values."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
from connector_case import ConnectorCase

from connectors.jsonl import Jsonl

_KIND = pa.struct([pa.field("n", pa.int64()), pa.field("tags", pa.list_(pa.string()))])
_TYPES: dict[str, pa.DataType] = {
    "id": pa.int64(),
    "x": pa.float64(),
    "text": pa.string(),
    "more": _KIND,
}
_ROWS = [
    {
        "id": k,
        "x": k / 4,
        "text": "ü" * (k * 1000),
        "more": None if k % 3 else {"n": k, "tags": ["a"] * (k % 4)},
    }
    for k in range(120)
]


def write(folder: Path) -> Sequence[Path]:
    paths = [folder / "0.jsonl", folder / "1.jsonl"]
    for path, rows in zip(paths, (_ROWS[:100], _ROWS[100:]), strict=True):
        path.write_text("\n".join(json.dumps(row, ensure_ascii=False) for row in rows), encoding="utf-8")
    return paths


CASE = ConnectorCase(
    name="jsonl",
    connector=Jsonl(),
    write=write,
    expected=pa.Table.from_pylist(_ROWS, pa.schema(_TYPES)),
    empty="fewer rows",
    truncated="bad rows",
)
