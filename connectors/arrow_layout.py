"""Where the record batches of an Arrow file or stream lie, and the buffers in each, without reading them.

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
    "Buffers",
    "Codec",
    "Footer",
    "Head",
    "Layout",
    "Packing",
    "SchemaMessage",
    "batch_head",
    "buffers_of",
    "file_footer",
    "file_layout",
    "packing_of",
    "schema_message",
    "stream_layout",
]

Packing = Literal["file", "stream", "gzip", "zstd", "lz4"]
Codec = Literal["lz4", "zstd"]

MAGIC = b"ARROW1"
FILE_SCHEMA = 8  # where a file's first message lies: behind the magic bytes and two of padding
CONTINUATION = b"\xff\xff\xff\xff"
PACKED: dict[bytes, Packing] = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd", b"\x04\x22\x4d\x18": "lz4"}
MAX_METADATA_BYTES = 256 << 20
SCHEMA, DICTIONARY, RECORD_BATCH = 1, 2, 3
CODECS: dict[int, Codec] = {0: "lz4", 1: "zstd"}
BLOCK = np.dtype([("offset", "<i8"), ("head", "<i4"), ("unused", "<i4"), ("body", "<i8")])
PAIR = np.dtype("<i8")
# Most heads are smaller than this, and so come in one request.
HEAD_BYTES = 4 << 10


class Batch(NamedTuple):
    """A message with its head: `offset` and `length` in bytes."""

    offset: int
    length: int
    rows: int


@dataclass(frozen=True)
class Layout:
    """The record batches and the messages of the dictionaries, each in their order.

    `compressed` says that buffers of some record batch are, so that a part of it costs all of it.
    """

    batches: tuple[Batch, ...]
    dictionaries: tuple[Batch, ...] = ()
    compressed: bool = False


class Footer(NamedTuple):
    """What a file's footer says: the bytes at which its dictionaries and its record batches begin."""

    dictionaries: npt.NDArray[np.int64]
    batches: npt.NDArray[np.int64]


class SchemaMessage(NamedTuple):
    """The message that says what the columns are, and whether numbers begin with their highest byte."""

    message: pa.Buffer
    big_endian: bool


class Head(NamedTuple):
    """The head of a record batch, of which `start` is its byte in the file and `body` where in the source its body
    begins. `table` is what else it says, for `buffers_of`."""

    start: int
    rows: int
    length: int
    compressed: bool
    body: int
    body_bytes: int
    table: bytes
    header: int


class Buffers(NamedTuple):
    """Where the buffers of a record batch lie, as offset and length in its body, and what each is compressed with.

    `nodes` has the rows and nulls of each column and of each column in it, `variadic` how many buffers of text each
    column of views has.
    """

    codec: Codec | None
    nodes: list[list[int]]
    places: list[list[int]]
    variadic: list[int]


class _Facts(NamedTuple):
    """What the head of a message says: of a record batch its rows, and whether its buffers are compressed.

    `header` is where in the head the part of its kind begins.
    """

    kind: int
    header: int
    body_bytes: int
    rows: int = 0
    compressed: bool = False


class _Message(NamedTuple):
    """A message: `table` is its head as bytes."""

    facts: _Facts
    head_bytes: int
    table: bytes

    @property
    def kind(self) -> int:
        return self.facts.kind

    @property
    def length(self) -> int:
        return self.head_bytes + self.facts.body_bytes


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
    compressed = False
    for offset, message in _messages(source, path):
        found = Batch(offset, message.length, message.facts.rows)
        if message.kind == DICTIONARY:
            dictionaries.append(found)
        elif message.kind == RECORD_BATCH:
            batches.append(found)
            compressed = compressed or message.facts.compressed
        elif message.kind != SCHEMA or offset:
            raise _damaged(path, offset, f"a message of kind {message.kind} is not expected here")
    return Layout(tuple(batches), tuple(dictionaries), compressed)


def schema_message(source: pa.NativeFile, path: str, packing: Packing) -> SchemaMessage:
    """The first message of a file or stream."""
    start = FILE_SCHEMA if packing == "file" else 0
    message = _message(source, start, path)
    if message is None or message.kind != SCHEMA:
        raise _damaged(path, start, "it does not begin with a schema")
    try:
        # Field 0 of a schema: 1 for big-endian.
        order_at = _field(message.table, message.facts.header, 0)
        big_endian = bool(order_at and message.table[order_at])
    except (struct.error, IndexError) as error:
        raise _damaged(path, start, f"its schema cannot be read: {error}") from error
    source.seek(start)
    # A copy: whoever keeps it would keep a map of the file.
    return SchemaMessage(pa.py_buffer(source.read(message.length)), big_endian)


def batch_head(source: pa.NativeFile, offset: int, path: str, base: int = 0) -> Head | None:
    """The head of the record batch at a byte offset; None where there is no record batch.

    Args:
        base: where in the file the source begins.
    """
    message = _message(source, offset, path, base)
    if message is None or message.kind != RECORD_BATCH:
        return None
    facts = message.facts
    return Head(
        start=base + offset,
        rows=facts.rows,
        length=message.length,
        compressed=facts.compressed,
        body=offset + message.head_bytes,
        body_bytes=facts.body_bytes,
        table=message.table,
        header=facts.header,
    )


def buffers_of(head: Head, path: str) -> Buffers:
    """Where the buffers of a record batch lie; that they lie in its body is not checked."""
    table, header = head.table, head.header
    try:
        # Fields of a record batch: 1 nodes, 2 buffers, 3 compression, whose field 0 is the codec, 4 variadic counts.
        codec = None
        if head.compressed:
            codec_at = _field(table, _follow(table, _field(table, header, 3)), 0)
            codec = CODECS[table[codec_at] if codec_at else 0]
        nodes, places, variadic = (
            _numbers(table, _field(table, header, number), width)
            for number, width in ((1, 2), (2, 2), (4, 1))
        )
    except (struct.error, IndexError, ValueError, KeyError) as error:
        raise _damaged(path, head.start, f"the head of a record batch cannot be read: {error}") from error
    return Buffers(codec, nodes.tolist(), places.tolist(), variadic.ravel().tolist())


def file_layout(source: pa.NativeFile, path: str) -> Layout:
    """Take the places of the messages from the footer of a file, and the rows of each from its head."""
    footer = file_footer(source, path)
    found: dict[int, list[Batch]] = {DICTIONARY: [], RECORD_BATCH: []}
    compressed = False
    for kind, offsets in ((DICTIONARY, footer.dictionaries), (RECORD_BATCH, footer.batches)):
        for offset in offsets.tolist():
            message = _message(source, offset, path)
            if message is None or message.kind != kind:
                raise _damaged(path, offset, "there is another message than the footer says")
            found[kind].append(Batch(offset, message.length, message.facts.rows))
            compressed = compressed or message.facts.compressed
    return Layout(tuple(found[RECORD_BATCH]), tuple(found[DICTIONARY]), compressed)


def file_footer(source: pa.NativeFile, path: str) -> Footer:
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
        # Fields of a footer: 2 dictionaries and 3 record batches, each a vector of blocks.
        root = _u32(footer, 0)
        return Footer(*(_blocks(footer, _field(footer, root, number)) for number in (2, 3)))
    except (struct.error, IndexError, ValueError) as error:
        raise _damaged(path, start, f"its footer cannot be read: {error}") from error


def _messages(source: pa.NativeFile, path: str) -> Iterator[tuple[int, _Message]]:
    offset = 0
    while (message := _message(source, offset, path)) is not None:
        yield offset, message
        offset += message.length
    if not offset:
        raise _damaged(path, 0, "the stream has no schema")


def _message(source: pa.NativeFile, offset: int, path: str, base: int = 0) -> _Message | None:
    """Read the head of the message at a byte offset; None at the end of the stream."""
    size = source.size()
    if not 0 <= offset <= size:
        raise _damaged(path, size, f"a message at byte {offset} lies outside of it")
    source.seek(offset)
    start = source.read(min(HEAD_BYTES, size - offset))
    prefix_bytes = 8 if start.startswith(CONTINUATION) else 4
    prefix = start[prefix_bytes - 4 : prefix_bytes]
    if not start or (len(prefix) == 4 and not any(prefix)):
        return None
    length = int.from_bytes(prefix, "little", signed=True)
    head_bytes = prefix_bytes + length
    if len(prefix) < 4 or not 0 < length <= min(size - offset - prefix_bytes, MAX_METADATA_BYTES):
        raise _damaged(path, base + offset, f"a message head of {length} bytes is cut off or damaged")
    if head_bytes > len(start):
        start += source.read(head_bytes - len(start))
    try:
        facts = _facts(table := start[prefix_bytes:head_bytes])
    except (struct.error, IndexError) as error:
        raise _damaged(path, base + offset, f"a message head cannot be read: {error}") from error
    if facts.rows < 0 or not 0 <= facts.body_bytes <= size - offset - head_bytes:
        what = f"a message of {facts.rows} rows and {facts.body_bytes} bytes"
        raise _damaged(path, base + offset, f"{what} is cut off or damaged")
    return _Message(facts, head_bytes, table)


def _facts(message: bytes) -> _Facts:
    """Fields of a message: 1 kind of header, 2 header, 3 body length; of a record batch: 0 rows, 3 compression."""
    root = _u32(message, 0)
    kind_at, header_at, body_at = (_field(message, root, number) for number in (1, 2, 3))
    kind = message[kind_at] if kind_at and header_at else 0
    header = _follow(message, header_at) if header_at else 0
    body_bytes = _i64(message, body_at) if body_at else 0
    if kind != RECORD_BATCH:
        return _Facts(kind, header, body_bytes)
    rows_at = _field(message, header, 0)
    rows = _i64(message, rows_at) if rows_at else 0
    return _Facts(kind, header, body_bytes, rows, bool(_field(message, header, 3)))


def _blocks(footer: bytes, place: int) -> npt.NDArray[np.int64]:
    """The offsets in a vector of blocks; none where the field is not there."""
    if not place:
        return np.empty(0, np.int64)
    vector = _follow(footer, place)
    return np.frombuffer(footer, BLOCK, _u32(footer, vector), vector + 4)["offset"].copy()


def _numbers(table: bytes, place: int, width: int) -> npt.NDArray[np.int64]:
    """A vector of structs of so many 64-bit numbers; none where the field is not there."""
    if not place:
        return np.empty((0, width), np.int64)
    vector = _follow(table, place)
    found: npt.NDArray[np.int64] = np.frombuffer(table, PAIR, _u32(table, vector) * width, vector + 4)
    return found.reshape(-1, width)


def _follow(table: bytes, place: int) -> int:
    """Where the offset at `place` leads."""
    return place + _u32(table, place)


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
