"""`isolated`: rows that cannot be made are found by halving, so that each of them costs itself alone."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from connectors.contract import BadRow, Chunk
from dataflow.errors import DataError

__all__ = ["isolated"]


def isolated(
    make: Callable[[int, int], pa.RecordBatch],
    start: int,
    stop: int,
    schema: pa.Schema,
    fault: type[DataError],
) -> Chunk:
    """Rows `start` to `stop` of what `make` gives for such a range; a row for which it fails alone is bad.

    Args:
        make: gives batches of `schema`.
        fault: what it raises where it fails because of some of the rows; all else is raised here, too.
    """
    parts: list[pa.RecordBatch] = []
    bad: list[BadRow] = []
    ranges = [(start, stop)]
    while ranges:
        low, high = ranges.pop()
        try:
            parts.append(make(low, high))
        except fault as error:
            if high - low > 1:
                middle = (low + high) // 2
                ranges += [(middle, high), (low, middle)]
            else:
                bad.append(BadRow(low - start, error))
                parts.append(pa.RecordBatch.from_arrays([pa.nulls(1, f.type) for f in schema], schema=schema))
    if len(parts) == 1:
        return Chunk(parts[0], tuple(bad))
    (batch,) = pa.Table.from_batches(parts, schema).combine_chunks().to_batches()
    return Chunk(batch, tuple(bad))
