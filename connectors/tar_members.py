"""`Members`: the regular files of a tar archive, found by walking its headers.

Python's tarfile reads the same archives but builds an object of two dozen attributes for each member:
48,000 members a second, all of it under the GIL, which a fragment of small files would hold longer than
its read takes. This walk reads only what a sample needs: names, sizes and places.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from typing import Any, Final, NamedTuple, Protocol

import pyarrow as pa

from connectors.forward import Truncated
from dataflow.errors import ConnectorError, DataError, DataflowError
from dataflow.wording import counted

__all__ = ["Archive", "FileArchive", "ForwardArchive", "Member", "Members", "MemoryArchive"]

_BLOCK: Final = 512
_ZEROS: Final = bytes(_BLOCK)
_MAX_EXTENSION: Final = 1 << 20  # bytes of one extended header; a name longer than that is an attack
_MAX_LENGTH_DIGITS: Final = 8  # of a record in one
# name, size, checksum, type, magic, prefix
_HEADER: Final = struct.Struct("100s24x12s12x8sc100x6s82x155s12x")
_REGULAR: Final = frozenset((b"0", b"\0", b"7"))
_NO_PAYLOAD: Final = frozenset((b"1", b"2", b"3", b"4", b"5", b"6"))  # links, devices, folders, pipes


class Archive(Protocol):
    """Bytes by offset. `size` is the length of the archive, or None while it is not known."""

    @property
    def size(self) -> int | None: ...

    def at(self, offset: int, length: int) -> bytes:
        """Return `length` bytes at `offset`, fewer at the end; offsets never decrease."""


class Member(NamedTuple):
    """One regular file: `start` is the offset of its first header, `data` that of its `size` bytes."""

    name: str
    start: int
    data: int
    size: int

    @property
    def end(self) -> int:
        return _padded(self.data + self.size)


class Members:
    """Iterates over the regular files from `start` to `stop` of the formats v7, ustar, GNU and PAX.

    Folders, links, devices and pipes are passed over. Zero blocks are too, so that archives written behind
    one another are one; `marked` is True after the iteration if the last blocks were zeros, the mark that
    ends an archive. Bytes of a name that are not UTF-8 are written as ``\\xNN``.

    Source: POSIX.1-2001 `pax` (ustar and extended headers), GNU tar manual, "Basic Tar Format".

    Raises:
        Truncated: the archive ends inside a header or a file.
        DataError: a header is wrong, or a member is sparse; names file and offset.
    """

    def __init__(self, archive: Archive, file: str, start: int = 0, stop: int | None = None) -> None:
        self.marked = False
        self._archive, self._file, self._start, self._stop = archive, file, start, stop

    def __iter__(self) -> Iterator[Member]:
        at, stop = self._archive.at, self._stop
        offset = start = self._start
        extended: dict[str, str] = {}
        while stop is None or offset < stop:
            block = at(offset, _BLOCK)
            if len(block) < _BLOCK:
                self._check_end(block, offset, pending=offset != start)
                return
            if block == _ZEROS:
                self.marked = True
                offset = start = offset + _BLOCK
                continue
            self.marked = False
            name, size, kind = self._parse(block, offset)
            data = offset + _BLOCK
            if kind in _REGULAR:
                if extended:
                    name, size = self._extend(extended, name, size, offset)
                    extended = {}
                self._check_size(data + size, start)
                if not (name.endswith("/") and kind == b"\0"):
                    yield Member(name, start, data, size)
            elif kind in b"xXgL":
                self._check_size(data + size, start)
                extended |= self._extension(kind, data, size, offset)
            elif kind == b"S":
                raise self._wrong(f"member {name!r} is sparse.", offset, hint="write it without --sparse")
            elif kind in _NO_PAYLOAD:
                size, extended = 0, {}
            elif kind != b"K":
                # An unknown kind has a payload, and what came before it was its own.
                extended = {}
            offset = _padded(data + size)
            if kind not in b"xXgLK":
                start = offset

    def _parse(self, block: bytes, offset: int) -> tuple[str, int, bytes]:
        raw_name, raw_size, raw_sum, kind, magic, prefix = _HEADER.unpack(block)
        try:
            size, checksum = _number(raw_size), _number(raw_sum)
        except ValueError:
            size = checksum = -1
        if size < 0 or not _sums_to(block, raw_sum, checksum):
            what = "this is no tar archive." if offset == 0 else "the tar header here is damaged."
            raise self._wrong(what, offset, hint="check the format of the file, or copy it again")
        if magic == b"ustar\0" and prefix[0]:
            raw_name = prefix.partition(b"\0")[0] + b"/" + raw_name
        return _text(raw_name), size, kind

    def _extension(self, kind: bytes, data: int, size: int, offset: int) -> dict[str, str]:
        if size > _MAX_EXTENSION:
            found = counted(size, "byte")
            raise self._wrong(f"an extended header has {found}.", offset, hint="write the archive again")
        payload = self._archive.at(data, size)
        if kind == b"L":
            return {"path": _text(payload)}
        try:
            records = _pax_records(payload)
        except ValueError as error:
            raise self._wrong(
                "an extended header is damaged.", offset, hint="write the archive again"
            ) from error
        if kind != b"g":
            return records
        if {"path", "size"} & records.keys():
            raise self._wrong(
                "a global header sets the name or size of members.", offset, hint="write the archive again"
            )
        return {}

    def _extend(self, records: dict[str, str], name: str, size: int, offset: int) -> tuple[str, int]:
        if any(key.startswith("GNU.sparse") for key in records):
            raise self._wrong(f"member {name!r} is sparse.", offset, hint="write it without --sparse")
        given = records.get("size", str(size))
        if not (given.isascii() and given.isdigit() and len(given) < 20):
            raise self._wrong(f"a member has the size {given!r}.", offset, hint="write the archive again")
        return records.get("path", name), int(given)

    def _check_size(self, end: int, start: int) -> None:
        size = self._archive.size
        if size is not None and end > size:
            raise self._truncated(start)

    def _check_end(self, block: bytes, offset: int, *, pending: bool) -> None:
        size = self._archive.size
        if pending or block.strip(b"\0") or (size is not None and offset > size):
            raise self._truncated(offset)

    def _truncated(self, offset: int) -> Truncated:
        return Truncated(
            "the archive ends inside a member.", file=self._file, offset=offset, hint="copy it again"
        )

    def _wrong(self, message: str, offset: int, *, hint: str) -> DataError:
        return DataError(message, file=self._file, offset=offset, hint=hint)


class MemoryArchive:
    """A part of an archive that was read into memory; offsets are those of the whole archive."""

    def __init__(self, buffer: pa.Buffer, offset: int) -> None:
        self.size: int | None = offset + buffer.size
        self._view, self._offset = memoryview(buffer), offset

    def at(self, offset: int, length: int) -> bytes:
        begin = offset - self._offset
        return bytes(self._view[begin : begin + length])


class FileArchive:
    """An archive in a file with random access: payloads are passed over unread."""

    # Headers of small members share a read; more would read payloads for nothing.
    _WINDOW: Final = 1 << 14

    def __init__(self, file: pa.NativeFile, path: str) -> None:
        self.size: int | None = file.size()
        # The stubs of pyarrow have `read_at` without its offset.
        self._file: Any = file
        self._path = path
        self._offset = 0
        self._window = b""

    def at(self, offset: int, length: int) -> bytes:
        begin = offset - self._offset
        if begin + length > len(self._window):
            try:
                self._window = self._file.read_at(max(length, self._WINDOW), offset)
            except DataflowError:
                raise
            except OSError as error:
                raise ConnectorError(f"{self._path} cannot be read at byte {offset}: {error}") from error
            self._offset, begin = offset, 0
        return self._window[begin : begin + length]


class ForwardArchive:
    """An archive that can only be read forward; what lies before the offset asked for is let go."""

    def __init__(self, stream: Iterator[bytes]) -> None:
        self.size: int | None = None
        self._stream, self._offset, self._held = stream, 0, bytearray()

    def at(self, offset: int, length: int) -> bytes:
        held = self._held
        while self._offset + len(held) < offset + length:
            if self._offset < offset:
                gone = min(offset - self._offset, len(held))
                del held[:gone]
                self._offset += gone
            piece = next(self._stream, None)
            if piece is None:
                self.size = self._offset + len(held)
                break
            held += piece
        begin = offset - self._offset
        return bytes(memoryview(held)[begin : begin + length])


def _padded(offset: int) -> int:
    return -(-offset // _BLOCK) * _BLOCK


def _text(raw: bytes) -> str:
    return raw.partition(b"\0")[0].decode("utf-8", "backslashreplace")


def _number(raw: bytes) -> int:
    """Read octal digits, or GNU's base 256, marked by the first bit."""
    if raw[0] == 0x80:
        return int.from_bytes(raw[1:], "big")
    return int(raw.partition(b"\0")[0].strip() or b"0", 8)


def _sums_to(block: bytes, field: bytes, checksum: int) -> bool:
    # The checksum counts its own field as eight spaces.
    spaces = 8 * ord(" ") - sum(field)
    # The low half of Adler-32 is 1 + the sum of the bytes modulo 65521, at thirty times the speed of sum().
    if (zlib.adler32(block) % 65536 - 1 + spaces - checksum) % 65521 == 0:
        return True
    # Some old writers summed signed bytes.
    return sum(block) - 256 * sum(byte > 127 for byte in block) + spaces == checksum


def _pax_records(payload: bytes) -> dict[str, str]:
    """Read records of the form ``LENGTH KEY=VALUE\\n``, where LENGTH counts the whole record."""
    records = {}
    start, stop = 0, len(payload.rstrip(b"\0"))
    while start < stop:
        space = payload.find(b" ", start, start + _MAX_LENGTH_DIGITS + 1)
        end = start + int(payload[start:space]) if space > start else start
        if end <= space or payload[end - 1 : end] != b"\n":
            raise ValueError("not a record")
        key, equals, value = payload[space + 1 : end - 1].partition(b"=")
        if not equals:
            raise ValueError("not a record")
        records[_text(key)] = _text(value)
        start = end
    return records
