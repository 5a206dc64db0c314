"""Arrow IPC: files (as Feather version 2), streams, and streams compressed as a whole."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from connectors.arrow_layout import (
    Batch,
    Layout,
    Packing,
    batch_head,
    file_layout,
    packing_of,
    schema_message,
    stream_layout,
)
from connectors.arrow_rows import DamagedRows, Rows, can_be_cut
from connectors.arrow_types import Kind
from connectors.conform import conformed, plain, rows_alone
from connectors.contract import Chunk, FileInfo, Fragment, Json, Opened, Scan, Traits
from connectors.faults import changed, damaged, reading
from connectors.isolate import isolated
from connectors.kept import Kept
from connectors.store import Store

__all__ = ["ArrowIpc"]


FORMAT = "Arrow"
KEPT_BYTES = 32 << 20
BATCH_BYTES = 256  # what a `Batch` takes, about
COLUMN_BYTES = 512  # what a column of a schema takes, about
# In the `meta` of an index: in some file a part of a record batch costs all of it.
WHOLE: Final = "whole"


class _File(NamedTuple):
    """What all reads of one file need.

    Fields:
        message: of the schema; empty where the stream is compressed as a whole.
        dictionaries: where their messages lie.
        alone: a record batch can be read by itself: there are no dictionaries, and numbers have the machine's order.
        known: a batch of no rows with the dictionaries; None where there are none, or not the same for all batches.
        can_be_cut: the types, the dictionaries and the order of bytes let some rows of a batch be read alone.
    """

    packing: Packing
    message: pa.Buffer
    schema: pa.Schema
    dictionaries: tuple[Batch, ...] = ()
    alone: bool = False
    known: pa.RecordBatch | None = None
    can_be_cut: bool = False

    @property
    def nbytes(self) -> int:
        # As they lie in the file: offsets that nobody has checked may not be followed.
        known = 0 if self.known is None else sum(d.length for d in self.dictionaries)
        return COLUMN_BYTES * len(self.schema) + BATCH_BYTES * len(self.dictionaries) + known


@dataclass(frozen=True, kw_only=True)
class ArrowIpc:
    """Arrow IPC files and streams, told apart by their first bytes; a fragment is a record batch.

    Dictionary columns are delivered as their values. On the local disk the rows are a view of the mapped file; from
    another store only the bytes of the rows and columns are asked for that are wanted. A record batch of compressed
    buffers has no such parts, nor has one with columns of unions, run-ends or list views: of a source with one of
    these, record batches larger than the window are read forward, once. A stream that is compressed as a whole (gzip,
    zstd, lz4) is one fragment, read forward.

    Args:
        trusted: leave out the check that offsets and text are sound, without which a damaged file can crash
            the process; the check reads the offsets and the bytes of every string.
    """

    trusted: bool = False
    _files: Kept[_File] = field(
        default_factory=lambda: Kept(KEPT_BYTES), init=False, repr=False, compare=False
    )

    @property
    def name(self) -> str:
        return "arrow"

    @property
    def suffixes(self) -> tuple[str, ...]:
        return (".feather", ".arrows", ".arrow", ".ipc")

    @property
    def traits(self) -> Traits:
        return Traits(row_ranges=True, single_rows=True)

    def traits_of(self, meta: Mapping[str, Json]) -> Traits:
        """See `Adapts`."""
        return replace(self.traits, row_ranges=False, single_rows=False) if meta.get(WHOLE) else self.traits

    def scan(self, store: Store, files: Sequence[FileInfo]) -> Scan:
        """See `Connector`; reads the heads of the messages. `offset` and `length` are the bytes of the record batch."""
        (info,) = files
        with reading(info.path, FORMAT), store.open(info, memory_map=True) as source:
            schema, batches, whole = _scan(source, info)
            schema = plain(schema, file=info.path)
        return Scan(
            schema=schema,
            file=np.zeros(len(batches), np.int64),
            offset=np.array([batch.offset for batch in batches], np.int64),
            length=np.array([batch.length for batch in batches], np.int64),
            rows=np.array([batch.rows for batch in batches], np.int64),
            meta={WHOLE: True} if whole else {},
        )

    def read(
        self, opened: Opened, fragment: Fragment, schema: pa.Schema, start: int, stop: int, max_rows: int
    ) -> Iterator[Chunk]:
        """See `Connector`."""
        info = opened.files[fragment.file]
        if start == stop:
            return
        with reading(info.path, FORMAT):
            # Mapped no longer than for a fragment: what was read of a map counts as memory of this process.
            with opened.store.open(info, memory_map=True, read_ahead=False) as source:
                file = self._files.get(opened.store, info, lambda: _weighed(_file(source, info.path)))
                if file.packing in ("file", "stream"):
                    names = [name for name in file.schema.names if schema.get_field_index(name) >= 0]
                    part = _Part(source, file, info, fragment, names)
                    rows = range(start, stop, max_rows)
                    yield from (self._by_rows if file.can_be_cut else self._as_one)(part, schema, rows)
                    return
            with opened.store.open(info, memory_map=True) as source:
                reader = pa.ipc.open_stream(_unpacked(source, file.packing))
                position = 0
                for batch in reader:
                    # Also what lies in front, so that nothing behind a damage is read.
                    found = self._checked(_selected(batch, schema), info.path)
                    rows = range(max(start - position, 0), min(stop - position, batch.num_rows), max_rows)
                    for row in rows:
                        some = found.slice(row, min(max_rows, rows.stop - row))
                        yield conformed(some, schema, file=info.path)
                    position += batch.num_rows
                    if position >= stop:
                        return
        raise changed(info.path, f"a fragment has {position} rows, not {fragment.rows}")

    def _as_one(self, part: _Part, schema: pa.Schema, rows: range) -> Iterator[Chunk]:
        """Rows of a record batch that cannot be cut, `rows.step` at a time: a damage anywhere costs all of it."""
        path = part.info.path
        found = self._checked(_selected(_batch(part, range(part.fragment.rows)), schema), path)
        for row in rows:
            yield conformed(found.slice(row, min(rows.step, rows.stop - row)), schema, file=path)

    def _by_rows(self, part: _Part, schema: pa.Schema, rows: range) -> Iterator[Chunk]:
        """Rows of a record batch, `rows.step` at a time: a damaged row costs itself."""
        path = part.info.path

        def alone(low: int, high: int) -> pa.RecordBatch:
            return self._checked(_selected(_cut_out(part, range(low, high)), schema), path)

        found: pa.RecordBatch | None = None
        with suppress(DamagedRows):
            found = _selected(_batch(part, range(rows.start, rows.stop)), schema)
        for row in rows:
            stop = min(row + rows.step, rows.stop)
            chunk: Chunk | None = None
            if found is not None:
                with suppress(DamagedRows):
                    chunk = Chunk(self._checked(found.slice(row - rows.start, stop - row), path))
            if chunk is None:
                names = [field for field in part.file.schema if field.name in part.names]
                chunk = isolated(alone, row, stop, pa.schema(names), DamagedRows)
            fitting = conformed(chunk.batch, schema, file=path)
            yield Chunk(fitting.batch, (*chunk.bad, *fitting.bad))

    def _checked(self, batch: pa.RecordBatch, path: str) -> pa.RecordBatch:
        """The same batch, unless it has offsets or text that are not sound.

        Raises:
            DamagedRows: it has.
        """
        if not self.trusted:
            try:
                batch.validate(full=True)
            except pa.ArrowInvalid as error:
                raise damaged(path, FORMAT, error, DamagedRows) from error
        return batch


def _scan(source: pa.NativeFile, info: FileInfo) -> tuple[pa.Schema, tuple[Batch, ...], bool]:
    """The schema, the record batches, and whether a part of some batch costs all of it."""
    packing = packing_of(source, info.path)
    if packing in ("file", "stream"):
        layout = _layout(source, info.path, packing)
        file = _file(source, info.path, layout)
        whole = layout.compressed or not file.can_be_cut
        return file.schema, layout.batches, whole and bool(layout.batches)
    source.seek(0)
    reader = pa.ipc.open_stream(_unpacked(source, packing))
    rows = sum(batch.num_rows for batch in reader)
    return reader.schema, (Batch(0, info.size, rows),), True


def _layout(source: pa.NativeFile, path: str, packing: Packing) -> Layout:
    return (file_layout if packing == "file" else stream_layout)(source, path)


def _weighed(file: _File) -> tuple[_File, int]:
    return file, file.nbytes


def _file(source: pa.NativeFile, path: str, layout: Layout | None = None) -> _File:
    source.seek(0)
    packing = packing_of(source, path)
    if packing not in ("file", "stream"):
        return _File(packing, pa.py_buffer(b""), pa.schema([]))
    message, big_endian = schema_message(source, path, packing)
    schema = pa.ipc.read_schema(message)
    swapped = big_endian != (sys.byteorder == "big")
    cut = not swapped and all(can_be_cut(column.type) for column in schema)
    if not any(_has_dictionary(column.type) for column in schema):
        return _File(packing, message, schema, alone=not swapped, can_be_cut=cut)
    layout = layout or _layout(source, path, packing)
    dictionaries = layout.dictionaries
    # A file has one set of dictionaries; in a stream later batches may have other ones.
    first = min((batch.offset for batch in layout.batches), default=0)
    if not layout.batches or (packing == "stream" and any(d.offset > first for d in dictionaries)):
        return _File(packing, message, schema, dictionaries)
    none = pa.RecordBatch.from_pylist([], schema=schema).serialize()
    # A copy, or a map of the file would be kept with what is kept here.
    parts = [
        message,
        *(pa.py_buffer(_bytes(source, d.offset, d.length).to_pybytes()) for d in dictionaries),
        none,
    ]
    known = pa.ipc.open_stream(_joined(parts)).read_next_batch()
    return _File(packing, message, schema, dictionaries, known=known, can_be_cut=cut)


class _Part(NamedTuple):
    """The columns `names` of one record batch."""

    source: pa.NativeFile
    file: _File
    info: FileInfo
    fragment: Fragment
    names: list[str]


def _cut_out(part: _Part, rows: range) -> pa.RecordBatch:
    """Some rows of a record batch that can be cut, made of the bytes of these rows alone."""
    source, file, info, fragment, names = part
    if not names:
        return rows_alone(len(rows))
    head = batch_head(source, fragment.offset, info.path, 0)
    if head is None:
        raise changed(info.path, f"there is no record batch at byte {fragment.offset}")
    return Rows(source, head, file.schema, info.path, file.known).columns(names, rows.start, rows.stop)


def _batch(part: _Part, rows: range) -> pa.RecordBatch:
    """Some rows of a record batch, with the columns wanted and perhaps others."""
    source, file, info, fragment, names = part
    offset, length = fragment.offset, fragment.length
    if offset + length > info.size:
        raise changed(info.path, f"a record batch at byte {offset} lies outside of it")
    is_mapped = isinstance(source, pa.MemoryMappedFile)
    is_whole = (len(rows), len(names)) == (fragment.rows, len(file.schema))
    # From another store all of it comes in one request, a part in one for each buffer.
    body, base = source, 0
    if not is_mapped and (is_whole or not file.can_be_cut):
        body, base = pa.BufferReader(_bytes(source, offset, length)), offset
    head = batch_head(body, offset - base, info.path, base)
    if head is None or (head.rows, head.length) != (fragment.rows, length):
        raise changed(info.path, f"there is no record batch of {fragment.rows} rows at byte {offset}")
    if not names:
        return rows_alone(len(rows))
    if is_mapped and file.alone and not head.compressed:
        # A view of all columns takes no memory; with a choice of columns Arrow would copy those.
        body.seek(offset)
        return pa.ipc.read_record_batch(pa.ipc.read_message(body), file.schema).slice(rows.start, len(rows))
    if file.can_be_cut:
        return Rows(body, head, file.schema, info.path, file.known).columns(names, rows.start, rows.stop)
    content = _bytes(body, offset - base, length)
    return _by_arrow(source, file, fragment, names, content).slice(rows.start, len(rows))


def _by_arrow(
    source: pa.NativeFile, file: _File, fragment: Fragment, names: list[str], content: pa.Buffer
) -> pa.RecordBatch:
    """One batch, read as a stream of the schema, the dictionaries that hold for it, and the batch."""
    before = [d for d in file.dictionaries if file.packing == "file" or d.offset < fragment.offset]
    parts = [file.message, *(_bytes(source, d.offset, d.length) for d in before), content]
    # Not all columns, which none would mean.
    places = [k for k, name in enumerate(file.schema.names) if name in names]
    options = pa.ipc.IpcReadOptions(use_threads=False, included_fields=places)
    return pa.ipc.open_stream(_joined(parts), options=options).read_next_batch()


def _selected(batch: pa.RecordBatch, wanted: pa.Schema) -> pa.RecordBatch:
    """The batch with the columns that are wanted, so that no others are checked."""
    if not len(batch.schema):
        return rows_alone(batch.num_rows)
    if batch.schema.names == wanted.names:
        return batch
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


def _bytes(source: pa.NativeFile, offset: int, length: int) -> pa.Buffer:
    source.seek(offset)
    return source.read_buffer(length)


def _joined(parts: list[pa.Buffer]) -> pa.NativeFile:
    file: Any = _Parts(parts)
    return pa.PythonFile(file, mode="r")


def _unpacked(source: pa.NativeFile, packing: Packing) -> pa.NativeFile:
    kind: Any = packing
    return pa.CompressedInputStream(source, kind)


def _has_dictionary(kind: Kind) -> bool:
    if isinstance(kind, pa.BaseExtensionType):
        return _has_dictionary(kind.storage_type)
    return pt.is_dictionary(kind) or any(_has_dictionary(kind.field(k).type) for k in range(kind.num_fields))
