"""`Tar`: WebDataset shards, in which neighbouring members of one key are a sample."""

from __future__ import annotations

import logging
from array import array
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeVar

import numpy as np
import pyarrow as pa

from connectors.contract import Chunk, FileInfo, Fragment, Opened, Scan, Traits
from connectors.faults import changed, reading
from connectors.forward import Truncated, codec_of, pieces
from connectors.scratch import Scratch
from connectors.store import Store
from connectors.tar_members import Archive, FileArchive, ForwardArchive, Member, Members, MemoryArchive
from connectors.tar_rows import KEY, Payloads, to_chunk
from dataflow.errors import DataError, PlanError
from dataflow.wording import counted

__all__ = ["Tar"]

_FRAGMENT_BYTES: Final = 4 << 20
# What is lost before the cut of a compressed archive that is kept.
_PIECE_BYTES: Final = 1 << 16
_CUT_HINT: Final = 'copy it again, or keep what is there with Tar(truncated="keep")'

Cell = TypeVar("Cell")

_log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Tar:
    """WebDataset tar archives, plain or compressed as a whole (.gz, .tgz, .zst).

    A sample is a run of neighbouring regular files with one key: the path up to a dot of its base name.
    The rest of the name, in lower case, is the column; `__key__` is the key. Files without an extension or
    with a name that begins with a dot, folders, links and devices are passed over, as WebDataset does.

    The last part of an extension gives the type: `text` is string (UTF-8), `integers` is int64, anything else
    is large_binary, the bytes as they lie in the archive. Nothing else is decoded, and nothing unpickled.

    Fields:
        key_dot: the dot of the base name that ends the key.
        text, integers: the extensions that are decoded; the defaults are those of WebDataset's decoders.
        missing: a sample without one of the columns asked for is a bad row, or has a null there.
        optional: columns that are null where missing, whatever `missing` says.
        truncated: an archive that is cut off is an error, or its whole samples before the cut are kept. A
            cut between two members shows by the end mark of the archive that is not there.

    Source: https://github.com/webdataset/webdataset, "The WebDataset Format".
    """

    key_dot: Literal["first", "last"] = "first"
    text: tuple[str, ...] = ("txt", "text", "transcript", "json", "jsn")
    integers: tuple[str, ...] = ("cls", "cls2", "class", "count", "index", "inx", "id")
    missing: Literal["error", "null"] = "error"
    optional: tuple[str, ...] = ()
    truncated: Literal["error", "keep"] = "error"
    _scratch: Scratch = field(
        default_factory=lambda: Scratch(_FRAGMENT_BYTES), init=False, repr=False, compare=False
    )

    def __post_init__(self) -> None:
        for name, known in (
            ("key_dot", ("first", "last")),
            ("missing", ("error", "null")),
            ("truncated", ("error", "keep")),
        ):
            value = getattr(self, name)
            if value not in known:
                raise PlanError(
                    f"Tar({name}={value!r}) is unknown.", hint=f"use {known[0]!r} or {known[1]!r}"
                )
        both = sorted(set(self.text) & set(self.integers))
        if both:
            raise PlanError(
                f"Tar: {both[0]!r} is in text and in integers.", hint="leave each extension in one of them"
            )

    @property
    def name(self) -> str:
        return "tar"

    @property
    def suffixes(self) -> tuple[str, ...]:
        return (".tar.gz", ".tar", ".tgz")

    @property
    def traits(self) -> Traits:
        return Traits(row_ranges=False, single_rows=False, counts_need_scan=True)

    def scan(self, store: Store, files: Sequence[FileInfo]) -> Scan:
        """Walk the headers of one archive; eight bytes a sample are held to find keys that come twice.

        Raises:
            DataError: no tar archive, truncated (unless kept), damaged, a member with an absolute name or
                ``..`` in it, a column twice in a sample, or a key that comes back; names file and member.
            ConnectorError: the store cannot be read.
        """
        (info,) = files
        found = _Found()
        with _opened(store, info) as archive:
            self._find(archive, info.path, found)
        again = found.repeated()
        if again:
            with _opened(store, info) as archive:
                self._raise_repeated(archive, info.path, again)
        ranges = np.array(found.ranges(), dtype=np.int64).reshape(-1, 3)
        if codec_of(info.path) and found.samples:
            ranges = np.array([(0, info.size, found.samples)], dtype=np.int64)
        columns = [pa.field(KEY, pa.string()), *map(self._field, sorted(found.columns))]
        return Scan(
            schema=pa.schema(columns),
            file=np.zeros(len(ranges), dtype=np.int64),
            offset=ranges[:, 0].copy(),
            length=ranges[:, 1].copy(),
            rows=ranges[:, 2].copy(),
            remarks=tuple(self._lack(column) for column in found.lacking),
        )

    def read(
        self, opened: Opened, fragment: Fragment, schema: pa.Schema, start: int, stop: int, max_rows: int
    ) -> Iterator[Chunk]:
        """Yield samples as rows; their payloads are copied once, from the bytes read into the column.

        A bad row is a sample without a column asked for, or with text or an integer that cannot be decoded.

        Raises:
            DataError: the archive is not what the index says.
            ConnectorError: the store cannot be read.
        """
        if start == stop:
            return
        info = opened.files[fragment.file]
        path = info.path
        if codec_of(path):
            yield from self._read_forward(opened.store, info, schema, start, stop, max_rows)
            return
        with self._scratch.lend(fragment.length) as lent:
            buffer = lent.slice(0, fragment.length)
            with reading(path, "tar"), opened.store.open(info, read_ahead=False) as file:
                file.seek(fragment.offset)
                if file.readinto(memoryview(lent)[: fragment.length]) < fragment.length:
                    raise changed(path, f"it ends before byte {fragment.offset + fragment.length}")
            archive = MemoryArchive(buffer, fragment.offset)
            members = Members(archive, path, fragment.offset, fragment.offset + fragment.length)
            samples = list(self._samples(members, path, _place))
            if len(samples) != fragment.rows:
                raise changed(path, f"a fragment has {len(samples)} rows, not {fragment.rows}")
            for first in range(start, stop, max_rows):
                run = samples[first : min(first + max_rows, stop)]
                yield self._chunk(Payloads.in_place(buffer, fragment.offset, run), schema, path)

    def _read_forward(
        self, store: Store, info: FileInfo, schema: pa.Schema, start: int, stop: int, max_rows: int
    ) -> Iterator[Chunk]:
        path, wanted = info.path, frozenset(schema.names)
        run: list[tuple[str, dict[str, bytes]]] = []
        run_bytes = row = 0
        with _opened(store, info) as archive:

            def load(column: str, member: Member) -> bytes:
                return archive.at(member.data, member.size) if column in wanted else b""

            samples = self._samples(Members(archive, path), path, load)
            try:
                for sample in samples:
                    if row >= start:
                        run.append(sample)
                        run_bytes += sum(map(len, sample[1].values()))
                    row += 1
                    if run and (len(run) == max_rows or run_bytes >= _FRAGMENT_BYTES or row == stop):
                        yield self._chunk(Payloads.copied(run), schema, path)
                        run, run_bytes = [], 0
                    if row >= stop:
                        return
            except DataError:
                if run:
                    yield self._chunk(Payloads.copied(run), schema, path)
                raise
        raise changed(path, f"it has {row} rows where {stop} are needed")

    def _chunk(self, payloads: Payloads, schema: pa.Schema, path: str) -> Chunk:
        types = pa.schema([self._field(name) for name in schema.names if name != KEY])
        required = set(types.names) - set(self.optional) if self.missing == "error" else ()
        return to_chunk(payloads, types, required, schema, path)

    def _find(self, archive: Archive, path: str, found: _Found) -> None:
        members = Members(archive, path)
        try:
            for key, fields in self._samples(members, path, _place):
                found.add(key, fields)
            if not members.marked:
                raise Truncated("the archive has no end mark.", file=path, offset=archive.size)
        except Truncated as cut:
            if self.truncated == "error":
                cut.hint = _CUT_HINT
                raise
            kept = counted(found.samples, "whole sample before that is", "whole samples before that are")
            _log.warning("%s %s kept.", cut.message, kept)

    def _samples(
        self, members: Members, path: str, load: Callable[[str, Member], Cell]
    ) -> Iterator[tuple[str, dict[str, Cell]]]:
        """Group neighbouring members by key; what `load` makes of a member is the value of its column."""
        last = None
        fields: dict[str, Cell] = {}
        for member in members:
            parts = self._split(member.name)
            if parts is None:
                continue
            key, column = parts
            _check_name(member, column, path)
            if key != last:
                if last is not None:
                    yield last, fields
                last, fields = key, {}
            elif column in fields:
                raise DataError(
                    f"member {member.name!r} is the second {column!r} of its sample.",
                    file=path,
                    offset=member.start,
                    hint="each file of a sample needs an extension of its own (upper and lower case are one)",
                )
            fields[column] = load(column, member)
        if last is not None:
            yield last, fields

    def _split(self, name: str) -> tuple[str, str] | None:
        """The key and the column that a member's name stands for; None for a member that is passed over."""
        begin = name.rfind("/") + 1
        dot = name.find(".", begin) if self.key_dot == "first" else name.rfind(".", begin)
        if dot <= begin or dot + 1 == len(name) or name[begin] == ".":
            return None
        return name[:dot], name[dot + 1 :].lower()

    def _field(self, column: str) -> pa.Field[Any]:
        extension = column.rpartition(".")[2]
        if extension in self.text:
            return pa.field(column, pa.string())
        return pa.field(column, pa.int64() if extension in self.integers else pa.large_binary())

    def _lack(self, column: str) -> str:
        if self.missing == "null" or column in self.optional:
            return f"samples without {column!r}, which is null there."
        return (
            f"samples without {column!r}, which are bad rows where it is read; "
            f'Tar(optional=("{column}",)) makes it null.'
        )

    def _raise_repeated(self, archive: Archive, path: str, hashes: set[int]) -> None:
        """Raise for the first sample whose key came before; without one, keys merely share a hash."""
        seen: set[str] = set()
        try:
            for key, fields in self._samples(Members(archive, path), path, _place):
                if hash(key) not in hashes:
                    continue
                if key in seen:
                    member = next(iter(fields.values()))
                    raise DataError(
                        f"member {member.name!r} belongs to the sample {key!r}, which ended before.",
                        file=path,
                        offset=member.start,
                        hint="the files of a sample must be neighbours: write the archive in name order",
                    )
                seen.add(key)
        except Truncated:
            return  # as decided by the first walk


class _Found:
    """What a walk has found: fragments as runs of whole samples, columns, hashes of the keys."""

    def __init__(self) -> None:
        self.columns: Counter[str] = Counter()
        self.samples = 0
        self._ranges: list[tuple[int, int, int]] = []
        self._start = self._end = self._first = 0
        self._hashes = array("q")

    def add(self, key: str, fields: Mapping[str, Member]) -> None:
        members = tuple(fields.values())
        first, last = members[0], members[-1]
        if self.samples == self._first:
            self._start = first.start
        elif last.end - self._start > _FRAGMENT_BYTES:
            self._close()
            self._start = first.start
        self._end = last.end
        self.samples += 1
        self.columns.update(fields.keys())
        self._hashes.append(hash(key))

    @property
    def lacking(self) -> list[str]:
        """The columns that some samples have not."""
        return sorted(column for column, count in self.columns.items() if count < self.samples)

    def ranges(self) -> list[tuple[int, int, int]]:
        """Offset, length and samples of each fragment."""
        if self.samples > self._first:
            self._close()
        return self._ranges

    def repeated(self) -> set[int]:
        """The hashes that came more than once."""
        values, counts = np.unique(np.frombuffer(self._hashes, dtype=np.int64), return_counts=True)
        return set(values[counts > 1].tolist())

    def _close(self) -> None:
        self._ranges.append((self._start, self._end - self._start, self.samples - self._first))
        self._first = self.samples


@contextmanager
def _opened(store: Store, info: FileInfo) -> Iterator[Archive]:
    if codec_of(info.path):
        with closing(pieces(store, info, piece_bytes=_PIECE_BYTES)) as stream:
            yield ForwardArchive(stream)
    else:
        with store.open(info) as file:
            yield FileArchive(file, info.path)


def _place(column: str, member: Member) -> Member:
    return member


def _check_name(member: Member, column: str, path: str) -> None:
    name = member.name
    if name.startswith("/") or (".." in name and ".." in name.split("/")):
        message, hint = "lies outside the archive's own folder", "write the archive with relative names"
    elif column == KEY:
        message, hint = (
            f"has the extension {KEY!r}, the name of the column of keys",
            "give it another extension",
        )
    else:
        return
    raise DataError(f"member {name!r} {message}.", file=path, offset=member.start, hint=hint)
