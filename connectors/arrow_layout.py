"""Where the record batches of an Arrow file or stream lie, found without reading their bodies.

Format: https://arrow.apache.org/docs/format/Columnar.html#serialization-and-interprocess-communication-ipc .
pyarrow tells neither where a batch lies nor how many rows it has before it has read it; this takes the few
numbers needed from the FlatBuffers of the messages. Every number is checked against the size of the file.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dataflow.errors import DataError

__all__ = [
    "Batch",
    "FileFooter",
    "Layout",
    "Packing",
    "file_footer",
    "file_layout",
    "has_packed_buffers",
    "packing_of",
    "schema_message",
    "stream_layout",
]

Packing = Literal["file", "stream", "gzip", "zstd", "lz4"]

MAGIC = b"ARROW1"
CONTINUATION = b"\xff\xff\xff\xff"
PACKED: dict[bytes, Packing] = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd", b"\x04\x22\x4d\x18": "lz4"}
MAX_METADATA_BYTES = 256 << 20
SCHEMA, DICTIONARY, RECORD_BATCH = 1, 2, 3
BLOCK = np.dtype([("offset", "<i8"), ("head", "<i4"), ("unused", "<i4"), ("body", "<i8")])


class Batch(NamedTuple):
    """A message with its head: `offset` and `length` in bytes."""

    offset: int
    length: int
    rows: int


@dataclass(frozen=True)
class Layout:
    """The record batches in order, and, of a stream, the messages of its dictionaries."""

    batches: tuple[Batch, ...]
    dictionaries: tuple[Batch, ...] = ()


class FileFooter(NamedTuple):
    """What a file's footer says: the byte offsets of its record batches, and whether its bytes are swapped."""

    offsets: npt.NDArray[np.int64]
    big_endian: bool


class _Message(NamedTuple):
    kind: int
    rows: int
    head_bytes: int
    body_bytes: int
    packed: bool


def packing_of(source: pa.NativeFile, path: str) -> Packing:
    """Tell by its first bytes how a file is packed; leaves the position behind them.

    Raises:
        DataError: it is empty or neither an Arrow file, an Arrow stream, nor compressed.
    """
    head = source.read(8)
    if head.startswith(MAGIC):
        return "file"
    for magic, packing in PACKED.items():
        if head.startswith(magic):
            return packing
    if head.startswith(b"FEA1"):
        raise DataError(
            "it is Feather version 1.", file=path, hint="write it again with pyarrow.feather.write_feather"
        )
    # Streams from before 2019 have no marker, only the length of the schema's message.
    length = int.from_bytes(head[:4], "little")
    if len(head) == 8 and (head.startswith(CONTINUATION) or 0 < length < source.size()):
        return "stream"
    what = f"it begins with {head!r}" if head else "it is empty"
    raise _damaged(path, 0, f"this is no Arrow file or stream: {what}")


def stream_layout(source: pa.NativeFile, path: str) -> Layout:
    """Walk the messages of a stream, from its begin to its end mark or the end of the file."""
    batches: list[Batch] = []
    dictionaries: list[Batch] = []
    for offset, message in _messages(source, path):
        found = Batch(offset, message.head_bytes + message.body_bytes, message.rows)
        if message.kind == DICTIONARY:
            dictionaries.append(found)
        elif message.kind == RECORD_BATCH:
            batches.append(found)
        elif message.kind != SCHEMA or offset:
            raise _damaged(path, offset, f"a message of kind {message.kind} is not expected here")
    return Layout(tuple(batches), tuple(dictionaries))


def schema_message(source: pa.NativeFile, path: str) -> pa.Buffer:
    """The first message of a stream, as bytes."""
    message = _message(source, 0, path)
    if message is None or message.kind != SCHEMA:
        raise _damaged(path, 0, "the stream does not begin with a schema")
    source.seek(0)
    return source.read_buffer(message.head_bytes + message.body_bytes)


def has_packed_buffers(source: pa.NativeFile, path: str, offset: int) -> bool:
    """Whether the buffers of the record batch at a byte offset are compressed, so that they have no view."""
    message = _message(source, offset, path)
    return message is not None and message.packed


def file_layout(source: pa.NativeFile, path: str) -> Layout:
    """Take the places of the record batches from the footer of a file, and the rows of each from its head."""
    batches = []
    for offset in file_footer(source, path).offsets.tolist():
        message = _message(source, offset, path)
        if message is None or message.kind != RECORD_BATCH:
            raise _damaged(path, offset, "there is no record batch where the footer says")
        batches.append(Batch(offset, message.head_bytes + message.body_bytes, message.rows))
    return Layout(tuple(batches))


def file_footer(source: pa.NativeFile, path: str) -> FileFooter:
    """Read the footer of a file.

    Raises:
        DataError: the file is cut off, or its footer is damaged.
    """
    size = source.size()
    source.seek(max(size - 10, 0))
    tail = source.read(10)
    if size < 20 or not tail.endswith(MAGIC):
        raise _damaged(path, max(size - 6, 0), f"the Arrow file does not end with {MAGIC!r}: it is cut off")
    length = int.from_bytes(tail[:4], "little", signed=True)
    if not 0 < length <= size - 18:
        raise _damaged(path, size - 10, f"its footer of {length} bytes does not fit in it")
    start = size - 10 - length
    source.seek(start)
    footer = source.read(length)
    try:
        # Field 1 of a footer: the schema, whose field 0 is 1 for big-endian. Field 3: a vector of structs of 24
        # bytes, the first 8 the offset.
        root = _u32(footer, 0)
        schema_at, vector_at = _field(footer, root, 1), _field(footer, root, 3)
        order_at = _field(footer, schema_at + _u32(footer, schema_at), 0) if schema_at else 0
        big_endian = bool(order_at and footer[order_at])
        if not vector_at:
            return FileFooter(np.empty(0, np.int64), big_endian)
        vector = vector_at + _u32(footer, vector_at)
        blocks = np.frombuffer(footer, BLOCK, _u32(footer, vector), vector + 4)
        return FileFooter(blocks["offset"].copy(), big_endian)
    except (struct.error, IndexError, ValueError) as error:
        raise _damaged(path, start, f"its footer cannot be read: {error}") from error


def _messages(source: pa.NativeFile, path: str) -> Iterator[tuple[int, _Message]]:
    offset = 0
    while (message := _message(source, offset, path)) is not None:
        yield offset, message
        offset += message.head_bytes + message.body_bytes
    if not offset:
        raise _damaged(path, 0, "the stream has no schema")


def _message(source: pa.NativeFile, offset: int, path: str) -> _Message | None:
    """Read the head of the message at a byte offset; None at the end of the stream."""
    size = source.size()
    if not 0 <= offset <= size:
        raise _damaged(path, size, f"a message at byte {offset} lies outside of it")
    source.seek(offset)
    prefix = source.read(4)
    prefix_bytes = 4
    if prefix == CONTINUATION:
        prefix = source.read(4)
        prefix_bytes = 8
    if not prefix and prefix_bytes == 4:
        return None
    length = int.from_bytes(prefix, "little", signed=True)
    if len(prefix) == 4 and length == 0:
        return None
    if len(prefix) < 4 or not 0 < length <= min(size - offset - prefix_bytes, MAX_METADATA_BYTES):
        raise _damaged(path, offset, f"a message head of {length} bytes is cut off or damaged")
    try:
        kind, rows, body_bytes, packed = _facts(source.read(length))
    except (struct.error, IndexError) as error:
        raise _damaged(path, offset, f"a message head cannot be read: {error}") from error
    head_bytes = prefix_bytes + length
    if rows < 0 or not 0 <= body_bytes <= size - offset - head_bytes:
        raise _damaged(path, offset, f"a message of {rows} rows and {body_bytes} bytes is cut off or damaged")
    return _Message(kind, rows, head_bytes, body_bytes, packed)


def _facts(message: bytes) -> tuple[int, int, int, bool]:
    """Kind, rows, body length, and whether its buffers are compressed.

    Fields of a message: 1 kind of header, 2 header, 3 body length; of a record batch: 0 rows, 3 compression.
    """
    root = _u32(message, 0)
    kind_at, header_at, body_at = (_field(message, root, number) for number in (1, 2, 3))
    kind = message[kind_at] if kind_at else 0
    body_bytes = _i64(message, body_at) if body_at else 0
    if kind != RECORD_BATCH or not header_at:
        return kind, 0, body_bytes, False
    header = header_at + _u32(message, header_at)
    rows_at = _field(message, header, 0)
    return kind, _i64(message, rows_at) if rows_at else 0, body_bytes, bool(_field(message, header, 3))


def _field(table: bytes, start: int, number: int) -> int:
    """The position of a field of a FlatBuffers table; 0 where the field has its default."""
    vtable = start - struct.unpack_from("<i", table, start)[0]
    place = 4 + 2 * number
    if place >= struct.unpack_from("<H", table, vtable)[0]:
        return 0
    offset: int = struct.unpack_from("<H", table, vtable + place)[0]
    return start + offset if offset else 0


def _u32(data: bytes, place: int) -> int:
    value: int = struct.unpack_from("<I", data, place)[0]
    return value


def _i64(data: bytes, place: int) -> int:
    value: int = struct.unpack_from("<q", data, place)[0]
    return value


def _damaged(path: str, offset: int, why: str) -> DataError:
    return DataError(
        f"{why}.",
        file=path,
        offset=offset,
        hint="copy or write the file again, give format=, or leave it out",
    )
