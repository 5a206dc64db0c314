"""`Rows`: some rows and columns of a record batch, made of the bytes in which they lie and no others.

Arrow's own reader takes a record batch whole, or whole columns of it: from a store each window of a large batch
would ask for all of the batch again.

Format: https://arrow.apache.org/docs/format/Columnar.html#recordbatch-message .
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from connectors.arrow_layout import Buffers, Codec, Head, buffers_of
from connectors.arrow_types import Column, Kind
from dataflow.errors import DataError

__all__ = ["DamagedRows", "Rows", "can_be_cut"]


_BINARY: Final = (pt.is_string, pt.is_binary, pt.is_large_string, pt.is_large_binary)
_LISTS: Final = (pt.is_list, pt.is_large_list, pt.is_map)
_VIEWS: Final = (pt.is_string_view, pt.is_binary_view)
_INLINE_BYTES: Final = 12  # a text that is no longer lies in its view
_VIEW: Final = np.dtype([("length", "<i4"), ("prefix", "<i4"), ("buffer", "<i4"), ("offset", "<i4")])


class DamagedRows(DataError):
    """Some of the rows that were asked for are wrong; others of the record batch may be read."""


def can_be_cut(kind: Kind) -> bool:
    """Whether some rows of a column can be read without all of it, as far as its type says."""
    if isinstance(kind, pa.BaseExtensionType):
        return can_be_cut(kind.storage_type)
    if pt.is_dictionary(kind) or _is(kind, _BINARY) or _is(kind, _VIEWS) or pt.is_null(kind):
        return True
    if _is(kind, _LISTS) or pt.is_struct(kind) or pt.is_fixed_size_list(kind):
        return all(can_be_cut(kind.field(k).type) for k in range(kind.num_fields))
    return _is_fixed(kind)


class _Part(NamedTuple):
    """A column, or one inside of it: how many rows it has, and its buffers, as offset and length in the body."""

    kind: Kind
    rows: int
    nulls: int
    buffers: list[list[int]]
    parts: list[_Part]


@dataclass(frozen=True)
class Rows:
    """The record batch of `head` in a file.

    Args:
        known: a batch of the same schema whose dictionary columns have the dictionaries of this one; None where the
            schema has none.
    """

    source: pa.NativeFile
    head: Head
    schema: pa.Schema
    path: str
    known: pa.RecordBatch | None = None

    def columns(self, names: list[str], start: int, stop: int) -> pa.RecordBatch:
        """Rows `start` to `stop` of some columns, of types that can be cut; not checked for sound values.

        Raises:
            DamagedRows: where these rows say that their values lie, there is nothing.
            DataError: what the batch says of its buffers cannot be.
        """
        wanted = set(names)
        found = []
        for place, (field, part) in enumerate(zip(self.schema, self._parts(), strict=True)):
            if field.name in wanted:
                known = None if self.known is None else self.known.column(place)
                found.append((field, self._column(part, start, stop, known)))
        return pa.RecordBatch.from_arrays(
            [column for _, column in found], schema=pa.schema([field for field, _ in found])
        )

    @cached_property
    def _buffers(self) -> Buffers:
        return buffers_of(self.head, self.path)

    def _parts(self) -> list[_Part]:
        found = self._buffers
        nodes, places, variadic = iter(found.nodes), iter(found.places), iter(found.variadic)

        def part(kind: Kind) -> _Part:
            if isinstance(kind, pa.BaseExtensionType):
                inner = part(kind.storage_type)
                return inner._replace(kind=kind, parts=[inner])
            rows, nulls = next(nodes)
            stored = kind.index_type if pt.is_dictionary(kind) else kind
            # Between two types the number of buffers differs, and for views between two batches.
            count = next(variadic) + 2 if _is(kind, _VIEWS) else _buffers_of(stored)
            own = [next(places) for _ in range(count)]
            inside = [] if pt.is_dictionary(kind) else [kind.field(k).type for k in range(kind.num_fields)]
            return _Part(kind, rows, nulls, own, [part(child) for child in inside])

        try:
            return [part(field.type) for field in self.schema]
        except StopIteration as error:
            raise self._damaged("has fewer buffers than its columns need") from error

    def _column(self, part: _Part, start: int, stop: int, known: Column | None) -> Column:
        kind = part.kind
        if isinstance(kind, pa.BaseExtensionType):
            inside = self._column(part.parts[0], start, stop, None if known is None else known.storage)
            return pa.ExtensionArray.from_storage(kind, inside)
        if not 0 <= start <= stop <= part.rows:
            raise self._damaged(f"has a column of {part.rows} rows where {stop} are needed")
        if pt.is_null(kind):
            return pa.nulls(stop - start)
        if pt.is_dictionary(kind):
            assert known is not None
            indices = self._column(part._replace(kind=kind.index_type), start, stop, None)
            return pa.DictionaryArray.from_arrays(indices, known.dictionary, ordered=kind.ordered)
        # From a whole byte of the bitmap on.
        first = start - start % 8
        valid = self._bits(part.buffers[0], first, stop) if part.nulls and part.buffers[0][1] else None
        own, inside = (
            (self._views(part, first, stop, valid), [])
            if _is(kind, _VIEWS)
            else self._content(part, first, stop, known)
        )
        made: Column = pa.Array.from_buffers(
            kind, stop - start, [valid, *own], offset=start - first, children=inside or None
        )
        return made

    def _content(
        self, part: _Part, start: int, stop: int, known: Column | None
    ) -> tuple[list[pa.Buffer], list[Column]]:
        """The buffers behind the bitmap of nulls, and the columns inside."""
        kind = part.kind
        if pt.is_boolean(kind):
            return [self._bits(part.buffers[1], start, stop)], []
        if _is(kind, _BINARY):
            offsets, first, last = self._offsets(part, start, stop)
            return [offsets, self._bytes(part.buffers[2], first, last - first)], []
        if _is(kind, _LISTS):
            offsets, first, last = self._offsets(part, start, stop)
            return [offsets], [self._column(part.parts[0], first, last, _inside(known))]
        if pt.is_fixed_size_list(kind):
            size = kind.list_size
            return [], [self._column(part.parts[0], start * size, stop * size, _inside(known))]
        if pt.is_struct(kind):
            fields = (None if known is None else known.field(k) for k in range(len(part.parts)))
            return [], [
                self._column(p, start, stop, field) for p, field in zip(part.parts, fields, strict=True)
            ]
        width = kind.bit_width // 8
        return [self._bytes(part.buffers[1], start * width, (stop - start) * width)], []

    def _offsets(self, part: _Part, start: int, stop: int) -> tuple[pa.Buffer, int, int]:
        """The offsets of these rows, and from where to where in the content they lie; they count from there."""
        is_large = (
            pt.is_large_list(part.kind) or pt.is_large_string(part.kind) or pt.is_large_binary(part.kind)
        )
        dtype = np.dtype("<i8" if is_large else "<i4")
        if start == stop and not part.buffers[1][1]:
            return pa.py_buffer(bytes(dtype.itemsize)), 0, 0  # of no rows the offsets may be left out
        buffer = self._bytes(part.buffers[1], start * dtype.itemsize, (stop - start + 1) * dtype.itemsize)
        offsets: Column = np.frombuffer(memoryview(buffer), dtype)
        first, last = int(offsets[0]), int(offsets[-1])
        if not 0 <= first <= last:
            raise self._damaged(f"has offsets from {first} to {last}", DamagedRows)
        # A map takes no notice of an offset of the columns inside.
        first -= first % 8 if part.parts else 0
        return (pa.py_buffer(offsets - first) if first else buffer), first, last

    def _views(self, part: _Part, start: int, stop: int, valid: pa.Buffer | None) -> list[pa.Buffer]:
        """Views, and of each buffer of texts the part that they look at."""
        stored = self._bytes(part.buffers[1], start * _VIEW.itemsize, (stop - start) * _VIEW.itemsize)
        views: Column = np.frombuffer(memoryview(stored), _VIEW).copy()
        if valid is not None:
            # What the view of a null has in it means nothing.
            views[
                np.unpackbits(np.frombuffer(memoryview(valid), np.uint8), bitorder="little")[: len(views)]
                == 0
            ] = 0
        texts = []
        for number, buffer in enumerate(part.buffers[2:]):
            here = (views["length"] > _INLINE_BYTES) & (views["buffer"] == number)
            begin = views["offset"][here].astype(np.int64)
            first = int(begin.min()) if len(begin) else 0
            last = int((begin + views["length"][here]).max(initial=first))
            texts.append(self._bytes(buffer, first, last - first))
            views["offset"][here] -= first
        return [pa.py_buffer(views), *texts]

    def _bits(self, buffer: list[int], start: int, stop: int) -> pa.Buffer:
        return self._bytes(buffer, start // 8, -(-stop // 8) - start // 8)

    def _bytes(self, buffer: list[int], start: int, length: int) -> pa.Buffer:
        offset, size = buffer
        if not 0 <= offset <= offset + size <= self.head.body_bytes:
            raise self._damaged(
                f"has a buffer of {size} bytes at {offset} in a body of {self.head.body_bytes}"
            )
        if not length:
            return pa.py_buffer(b"")
        codec = self._buffers.codec
        content = None if codec is None else self._unpacked(offset, size, codec)
        size = size if content is None else content.size
        if not 0 <= start <= start + length <= size:
            raise self._damaged(
                f"has a buffer of {size} bytes where {start + length} are needed", DamagedRows
            )
        return self._read(offset + start, length) if content is None else content.slice(start, length)

    def _unpacked(self, offset: int, size: int, codec: Codec) -> pa.Buffer:
        """A compressed buffer: its length when it is unpacked, -1 where it is as it is, and the rest."""
        if size < 8:
            raise self._damaged(f"has a compressed buffer of {size} bytes")
        raw = self._read(offset, size)
        length = int.from_bytes(raw.slice(0, 8).to_pybytes(), "little", signed=True)
        if length == -1:
            return raw.slice(8)
        if length < 0:
            raise self._damaged(f"has a compressed buffer of {length} bytes")
        unpacked: pa.Buffer = pa.Codec(codec).decompress(raw.slice(8), length)
        return unpacked

    def _read(self, offset: int, length: int) -> pa.Buffer:
        self.source.seek(self.head.body + offset)
        found = self.source.read_buffer(length)
        if found.size < length:
            raise self._damaged("ends early")
        return found

    def _damaged(self, what: str, kind: type[DataError] = DataError) -> DataError:
        return kind(
            f"the record batch {what}.",
            file=self.path,
            offset=self.head.start,
            hint="copy or write the file again, or leave it out",
        )


def _is(kind: Kind, tests: tuple[Any, ...]) -> bool:
    return any(test(kind) for test in tests)


def _is_fixed(kind: Kind) -> bool:
    try:
        return int(kind.bit_width) > 0 and not pt.is_nested(kind)
    except ValueError:
        return False


def _buffers_of(kind: Kind) -> int:
    """How many buffers a column of a type has in a batch, views left out."""
    if pt.is_null(kind):
        return 0
    if pt.is_struct(kind) or pt.is_fixed_size_list(kind):
        return 1
    return 3 if _is(kind, _BINARY) else 2


def _inside(known: Column | None) -> Column | None:
    return None if known is None else known.values
