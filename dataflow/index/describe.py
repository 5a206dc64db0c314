"""`describe`: facts and problems of an index, for people."""

from __future__ import annotations

import numpy as np

from connectors.contract import Json
from dataflow.index.index import Index

__all__ = ["describe"]

# A window and a read-ahead of such fragments no longer fit in memory beside a training job.
_LARGE_BYTES = 256 << 20
# Below this the request, the task and the decoder's start cost more than the rows.
_SMALL_BYTES = 64 << 10
_MANY = 1000


def describe(index: Index) -> dict[str, Json]:
    """Facts of an index, ready for JSON; sizes in bytes, decoded unless said otherwise.

    `problems` are sentences that each say what is unusual and what would help.
    """
    f = index.fragments
    some = len(f) > 0
    return {
        "name": index.name,
        "format": index.connector.name,
        "root": index.root,
        "hash": index.hash,
        "files": len(index.files),
        "file_bytes": int(index.files.size.sum()),
        "rows": index.rows,
        "bytes": int(f.bytes.sum()),
        "row_bytes": dict(index.row_bytes),
        "schema": {field.name: str(field.type) for field in index.schema},
        "fragments": len(f),
        "fragment_rows": {
            "smallest": int(f.rows.min()) if some else 0,
            "median": float(np.median(f.rows)) if some else 0.0,
            "largest": int(f.rows.max()) if some else 0,
        },
        "problems": list(_problems(index)),
    }


def _problems(index: Index) -> list[str]:
    f = index.fragments
    problems = []
    if not len(f):
        problems.append("There are no rows.")
    empty = int((index.files.rows == 0).sum())
    if len(f) and empty and index.connector.traits.scans == "file":
        problems.append(f"{empty} files have no rows.")
    large = int((f.bytes > _LARGE_BYTES).sum())
    if large:
        number = int(f.bytes.argmax())
        problems.append(
            f"{large} fragments are over {_LARGE_BYTES >> 20} MiB when decoded; the largest has "
            f"{int(f.bytes[number]) >> 20} MiB, in {index.files.name(int(f.file[number]))}: write "
            "smaller ones (row groups, shards) for better shuffling in less memory."
        )
    if len(f) >= _MANY and f.bytes.mean() < _SMALL_BYTES:
        problems.append(
            f"{len(f)} fragments have only {int(f.bytes.mean())} bytes on average: larger row groups or "
            "shards read faster."
        )
    schemas = len({str(variant.schema) for variant in index.variants})
    if schemas > 1:
        problems.append(f"The files have {schemas} different schemas: columns that a file lacks are null.")
    return problems
