"""Arrow IPC: files (as Feather version 2), streams, and streams compressed as a whole."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.types as pt

from connectors.arrow_layout import (
    Batch,
    Layout,
    Packing,
    file_footer,
    file_layout,
    has_packed_buffers,
    packing_of,
    schema_message,
    stream_layout,
)
from connectors.conform import conform, plain, rows_alone
from connectors.contract import Chunk, FileInfo, Fragment, Opened, Scan, Traits
from connectors.faults import reading
from connectors.kept import Kept
from connectors.store import Store
from dataflow.errors import DataError

__all__ = ["ArrowIpc"]

Kind: TypeAlias = Any  # the stubs of pyarrow know the members of a type only when its class is known

FORMAT = "Arrow"
DICTIONARIES_BYTES = 16 << 20
BATCH_BYTES = 256  # what a `Batch` takes, about
HEADS_BYTES = 16 << 20
COLUMN_BYTES = 512  # what a column of a schema takes, about


class _Head(NamedTuple):
    """What all reads of one file need: its schema, and where its record batches lie.

    `alone` says that a record batch can be read by itself: it has no dictionaries and the machine's byte order.
    """

    schema: pa.Schema
    offsets: npt.NDArray[np.int64]
    alone: bool


@dataclass(frozen=True, kw_only=True)
class ArrowIpc:
    """Arrow IPC files and streams, told apart by their first bytes; a fragment is a record batch.

    Dictionary columns are delivered as their values. On the local disk the rows are a view of the mapped
    file. A stream that is compressed as a whole (gzip, zstd, lz4) is one fragment, read forward.

    Args:
        trusted: leave out the check that offsets and text are sound, without which a damaged file can crash
            the process; the check reads the offsets and the bytes of every string.
    """

    trusted: bool = False
    # Where the dictionaries of a stream lie: otherwise each batch would cost a walk over all the others.
    _dictionaries: Kept[tuple[Batch, ...]] = field(
        default_factory=lambda: Kept(DICTIONARIES_BYTES), init=False, repr=False, compare=False
    )

    _heads: Kept[_Head] = field(
        default_factory=lambda: Kept(HEADS_BYTES), init=False, repr=False, compare=False
    )

    @property
    def name(self) -> str:
        return "arrow"

    @property
    def suffixes(self) -> tuple[str, ...]:
        return (".feather", ".arrows", ".arrow", ".ipc")

    @property
    def traits(self) -> Traits:
        return Traits(row_ranges=True, single_rows=True, projection=True)

    def scan(self, store: Store, files: Sequence[FileInfo]) -> Scan:
        """See `Connector`; reads the heads of the messages.

        `offset` and `length` are the bytes of the record batch; in a file `offset` is the batch's number.
        """
        schemas: list[pa.Schema] = []
        found: list[tuple[int, Batch]] = []
        for number, info in enumerate(files):
            with reading(info.path, FORMAT), store.open(info, memory_map=True) as source:
                schema, layout = _scan(source, info)
            schemas.append(plain(schema, file=info.path))
            found += [(number, batch) for batch in layout.batches]
        return Scan(
            schema=pa.unify_schemas(schemas, promote_options="permissive"),
            file=np.array([number for number, _ in found], np.int64),
            offset=np.array([batch.offset for _, batch in found], np.int64),
            length=np.array([batch.length for _, batch in found], np.int64),
            rows=np.array([batch.rows for _, batch in found], np.int64),
        )

    def read(
        self, opened: Opened, fragment: Fragment, schema: pa.Schema, start: int, stop: int, max_rows: int
    ) -> Iterator[Chunk]:
        """See `Connector`."""
        info = opened.files[fragment.file]
        if start == stop:
            return
        position = 0
        with reading(info.path, FORMAT), opened.store.open(info, memory_map=True) as source:
            _check_size(source, info)
            for batch in self._batches(source, opened.store, info, fragment, schema):
                found = _selected(batch, schema)
                for row in range(max(start - position, 0), min(stop - position, batch.num_rows), max_rows):
                    rows = found.slice(row, min(max_rows, stop - position - row))
                    if not self.trusted:
                        rows.validate(full=True)
                    yield Chunk(conform(rows, schema, file=info.path))
                position += batch.num_rows
                if position >= stop:
                    return
        raise _changed(info.path, f"a fragment has {position} rows, not {fragment.rows}")

    def _batches(
        self, source: pa.NativeFile, store: Store, info: FileInfo, fragment: Fragment, wanted: pa.Schema
    ) -> Iterator[pa.RecordBatch]:
        """The record batches of a fragment: one, unless the whole stream is compressed."""
        packing = packing_of(source, info.path)
        source.seek(0)
        if packing == "file":
            batch = self._of_file(source, store, info, fragment, wanted)
        elif packing == "stream":
            batch = self._of_stream(source, store, info, fragment, wanted)
        else:
            yield from pa.ipc.open_stream(_unpacked(source, packing))
            return
        if batch.num_rows != fragment.rows:
            raise _changed(info.path, f"a record batch has {batch.num_rows} rows, not {fragment.rows}")
        yield batch

    def _of_file(
        self, source: pa.NativeFile, store: Store, info: FileInfo, fragment: Fragment, wanted: pa.Schema
    ) -> pa.RecordBatch:
        """One batch; Arrow's own reader takes four times as long to open a file as the batch takes to read."""
        head = self._heads.get(store, info, lambda: _head(source, info.path))
        if fragment.offset >= len(head.offsets):
            raise _changed(info.path, f"there is no record batch {fragment.offset}")
        offset = int(head.offsets[fragment.offset])
        is_view = _is_view(source, info.path, offset)
        if is_view and head.alone:
            source.seek(offset)
            return pa.ipc.read_record_batch(pa.ipc.read_message(source), head.schema)
        source.seek(0)
        reader = pa.ipc.open_file(source, options=None if is_view else _only(head.schema, wanted))
        if fragment.offset >= reader.num_record_batches:
            raise _changed(info.path, f"there is no record batch {fragment.offset}")
        return reader.get_batch(fragment.offset)

    def _of_stream(
        self, source: pa.NativeFile, store: Store, info: FileInfo, fragment: Fragment, wanted: pa.Schema
    ) -> pa.RecordBatch:
        """One batch, read as a stream of the schema, the dictionaries before the batch, and the batch."""
        if fragment.offset + fragment.length > info.size:
            raise _changed(info.path, f"a record batch at byte {fragment.offset} lies outside of it")
        head = schema_message(source, info.path)
        schema = pa.ipc.read_schema(head)
        places = [(fragment.offset, fragment.length)]
        if any(_has_dictionary(column.type) for column in schema):

            def walk() -> tuple[tuple[Batch, ...], int]:
                found = stream_layout(source, info.path).dictionaries
                return found, BATCH_BYTES * len(found)

            known = self._dictionaries.get(store, info, walk)
            places[:0] = [(d.offset, d.length) for d in known if d.offset < fragment.offset]
        parts = [head]
        for offset, length in places:
            source.seek(offset)
            parts.append(source.read_buffer(length))
        reader = pa.ipc.open_stream(_joined(parts), options=_only(schema, wanted))
        return reader.read_next_batch()


def _scan(source: pa.NativeFile, info: FileInfo) -> tuple[pa.Schema, Layout]:
    _check_size(source, info)
    packing = packing_of(source, info.path)
    source.seek(0)
    if packing == "file":
        layout = file_layout(source, info.path)
        source.seek(0)
        schema = pa.ipc.open_file(source).schema
        numbered = (Batch(k, 1, batch.rows) for k, batch in enumerate(layout.batches))
        return schema, Layout(tuple(numbered))
    if packing == "stream":
        layout = stream_layout(source, info.path)
        return pa.ipc.read_schema(schema_message(source, info.path)), layout
    reader = pa.ipc.open_stream(_unpacked(source, packing))
    rows = sum(batch.num_rows for batch in reader)
    return reader.schema, Layout((Batch(0, info.size, rows),))


def _head(source: pa.NativeFile, path: str) -> tuple[_Head, int]:
    footer = file_footer(source, path)
    source.seek(0)
    schema = pa.ipc.open_file(source).schema
    swapped = footer.big_endian != (sys.byteorder == "big")
    alone = not swapped and not any(_has_dictionary(column.type) for column in schema)
    return _Head(schema, footer.offsets, alone), footer.offsets.nbytes + COLUMN_BYTES * len(schema)


def _selected(batch: pa.RecordBatch, wanted: pa.Schema) -> pa.RecordBatch:
    """The batch with the columns that are wanted, so that no others are checked."""
    if not len(batch.schema):
        return rows_alone(batch.num_rows)
    return batch.select([k for k, name in enumerate(batch.schema.names) if wanted.get_field_index(name) >= 0])


class _Parts:
    """Buffers behind each other as a file that Arrow reads from without a copy."""

    closed = False

    def __init__(self, parts: list[pa.Buffer]) -> None:
        self._parts = parts[::-1]
        self._position = 0

    def read(self, size: int = -1) -> pa.Buffer | bytes:
        """The next bytes, at most those of one part: no message reaches over two."""
        if not self._parts:
            return b""
        found = self._parts[-1].slice(self._position, None if size < 0 else size)
        self._position += found.size
        if self._position == self._parts[-1].size:
            self._parts.pop()
            self._position = 0
        return found

    def close(self) -> None:
        self._parts.clear()


def _is_view(source: pa.NativeFile, path: str, offset: int) -> bool:
    """Whether the batch at a byte offset takes no memory when all of its columns are read.

    With a choice of columns Arrow would copy those.
    """
    return isinstance(source, pa.MemoryMappedFile) and not has_packed_buffers(source, path, offset)


def _joined(parts: list[pa.Buffer]) -> pa.NativeFile:
    file: Any = _Parts(parts)
    return pa.PythonFile(file, mode="r")


def _unpacked(source: pa.NativeFile, packing: Packing) -> pa.NativeFile:
    kind: Any = packing
    return pa.CompressedInputStream(source, kind)


def _only(schema: pa.Schema, wanted: pa.Schema) -> pa.ipc.IpcReadOptions:
    """Read the wanted columns; where the file has none of them the first, since none would mean all."""
    places = [k for k, name in enumerate(schema.names) if wanted.get_field_index(name) >= 0]
    return pa.ipc.IpcReadOptions(use_threads=False, included_fields=places or list(range(len(schema)))[:1])


def _has_dictionary(kind: Kind) -> bool:
    if isinstance(kind, pa.BaseExtensionType):
        return _has_dictionary(kind.storage_type)
    return pt.is_dictionary(kind) or any(_has_dictionary(kind.field(k).type) for k in range(kind.num_fields))


def _check_size(source: pa.NativeFile, info: FileInfo) -> None:
    if source.size() != info.size:
        raise _changed(info.path, f"it has {source.size()} bytes, not {info.size}")


def _changed(path: str, what: str) -> DataError:
    return DataError(f"{what}.", file=path, hint="the file has changed since it was indexed: index it again")
