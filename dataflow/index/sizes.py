"""`row_bytes`: the decoded bytes of one row of each column, from one decoded slice."""

from __future__ import annotations

from contextlib import closing
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from connectors.arrow_types import Column, Kind
from connectors.contract import Chunk, Connector, Opened
from dataflow.errors import DataError
from dataflow.index.index import Fragments

__all__ = ["decoded_bytes", "row_bytes"]

# Enough rows for a mean; few enough bytes that a source of large images is not decoded by the gigabyte.
_SLICE_ROWS = 1024
_SLICE_BYTES = 16 << 20
_CHUNK_ROWS = 32


def row_bytes(
    connector: Connector, opened: Opened, schema: pa.Schema, fragments: Fragments
) -> dict[str, float]:
    """Decoded bytes per row of every column, from the first rows of the middle fragment.

    A middle fragment that cannot be read is passed over for the first and the last: what the run does with
    a bad file is for its error policy to say. A source without rows has zeros.

    Raises:
        DataError: none of the three can be read.
        ConnectorError: the store cannot be read.
    """
    if not len(fragments):
        return dict.fromkeys(schema.names, 0.0)
    middle = int(np.searchsorted(fragments.starts, fragments.starts[-1] // 2, side="right")) - 1
    first_error: DataError | None = None
    for number in dict.fromkeys((middle, 0, len(fragments) - 1)):
        try:
            return _measure(connector, opened, schema, fragments, number)
        except DataError as error:
            first_error = first_error or error
    raise cast("DataError", first_error)


def decoded_bytes(column: Column) -> int:
    """Bytes of a column as its rows are used: dictionaries decoded, a byte for each bool."""
    if pt.is_dictionary(column.type):
        column = column.dictionary_decode()
    width = _width(column.type)
    return int(column.nbytes) if width is None else len(column) * width


def _width(kind: Kind) -> int | None:
    """Bytes of one value of a dense type, without the bitmaps of nulls that a reader may add; else None."""
    if pt.is_null(kind):
        return 0
    if pt.is_boolean(kind):
        return 1
    if isinstance(kind, pa.BaseExtensionType):
        return _width(kind.storage_type)
    if pt.is_fixed_size_list(kind):
        width = _width(kind.value_type)
        return None if width is None else width * int(kind.list_size)
    return int(kind.bit_width) // 8 if pt.is_primitive(kind) else None


def _measure(
    connector: Connector, opened: Opened, schema: pa.Schema, fragments: Fragments, number: int
) -> dict[str, float]:
    fragment = fragments.fragment(number)
    stop = min(fragment.rows, _SLICE_ROWS)
    total = np.zeros(len(schema))
    rows = 0
    chunks = cast(
        "Any", connector.read(opened, fragment, schema, 0, stop, _CHUNK_ROWS)
    )  # a generator, to be closed early
    with closing(chunks):
        chunk: Chunk
        for chunk in chunks:
            total += [decoded_bytes(column) for column in chunk.batch.columns]
            rows += chunk.batch.num_rows
            if total.sum() > _SLICE_BYTES:
                break
    return dict(zip(schema.names, (total / max(rows, 1)).tolist(), strict=True))
