"""`Index`: the frozen facts about one source, its files and its fragments, in row order."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeVar, overload

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from connectors.contract import Adapts, Connector, FileInfo, Fragment, Json, Opened, Traits
from connectors.store import Store
from dataflow.errors import DataError
from dataflow.wording import counted

__all__ = ["FileTable", "Float64s", "Fragments", "Index", "Int32s", "Int64s", "Variant", "content_hash"]

_MOST_BYTES = 1 << 62

N = TypeVar("N", bound=np.generic)
Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]
Float64s = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class FileTable(Sequence[FileInfo]):
    """The files of a source as parallel columns: no Python object exists for a file until it is asked for.

    `names` are relative to `root`, in row order. `rows` counts, for each file, the rows of the fragments
    that begin in it (a fragment of a folder of files covers many). `variant` is a number in
    `Index.variants`.
    """

    root: str
    names: pa.LargeStringArray
    size: Int64s
    mtime: Float64s
    etag: pa.LargeStringArray
    rows: Int64s
    variant: Int32s

    @classmethod
    def of(cls, root: str, files: Sequence[FileInfo]) -> FileTable:
        """The table of a listing, with unknown (zero) rows.

        Raises:
            DataError: a name is not UTF-8.
        """
        prefix = _prefix(root)
        return cls(
            root=root,
            names=_text([f.path.removeprefix(prefix) for f in files]),
            size=np.fromiter((f.size for f in files), np.int64, len(files)),
            mtime=np.fromiter((f.mtime for f in files), np.float64, len(files)),
            etag=_text([f.etag for f in files]),
            rows=np.zeros(len(files), np.int64),
            variant=np.zeros(len(files), np.int32),
        )

    def __len__(self) -> int:
        return len(self.size)

    @overload
    def __getitem__(self, index: int) -> FileInfo: ...
    @overload
    def __getitem__(self, index: slice) -> list[FileInfo]: ...
    def __getitem__(self, index: int | slice) -> FileInfo | list[FileInfo]:
        if isinstance(index, slice):
            begin, stop, step = index.indices(len(self))
            if step != 1:
                return [self[i] for i in range(begin, stop, step)]
            return self._run(begin, max(begin, stop))
        return FileInfo(
            path=_prefix(self.root) + self.name(index),
            size=int(self.size[index]),
            mtime=float(self.mtime[index]),
            etag=str(self.etag[index].as_py()),
        )

    def __iter__(self) -> Iterator[FileInfo]:
        return (self[i] for i in range(len(self)))

    def _run(self, begin: int, stop: int) -> list[FileInfo]:
        """Neighbours, at a third of what they take one by one."""
        prefix, count = _prefix(self.root), stop - begin
        names = self.names.slice(begin, count).to_pylist()
        etags = self.etag.slice(begin, count).to_pylist()
        sizes, mtimes = self.size[begin:stop].tolist(), self.mtime[begin:stop].tolist()
        return [
            FileInfo(f"{prefix}{name}", size, mtime, str(etag))
            for name, size, mtime, etag in zip(names, sizes, mtimes, etags, strict=True)
        ]

    def name(self, index: int) -> str:
        """The name of one file relative to the root."""
        return str(self.names[index].as_py())

    def take(self, numbers: Int64s) -> FileTable:
        """The files of these numbers, in this order."""
        return FileTable(
            root=self.root,
            names=self.names.take(numbers),
            size=self.size[numbers],
            mtime=self.mtime[numbers],
            etag=self.etag.take(numbers),
            rows=self.rows[numbers],
            variant=self.variant[numbers],
        )


@dataclass(frozen=True, eq=False)
class Fragments:
    """The fragments of a source as parallel read-only arrays in row order; none has zero rows.

    `file`, `offset` and `length` are those of `connectors.contract.Fragment`; `bytes` is the decoded size,
    estimated from one decoded slice of the source; `starts` (one longer) are the cumulative rows.
    """

    file: Int32s
    offset: Int64s
    length: Int64s
    rows: Int64s
    bytes: Int64s
    starts: Int64s

    @classmethod
    def of(cls, file: Int32s, offset: Int64s, length: Int64s, rows: Int64s) -> Fragments:
        """Fragments without those of zero rows, of a size not yet known (zero)."""
        kept = rows > 0
        if not kept.all():
            file, offset, length, rows = file[kept], offset[kept], length[kept], rows[kept]
        starts = np.zeros(len(rows) + 1, np.int64)
        np.cumsum(rows, out=starts[1:])
        unsized = np.zeros(len(rows), np.int64)
        return cls(
            file=_frozen(file),
            offset=_frozen(offset),
            length=_frozen(length),
            rows=_frozen(rows),
            bytes=_frozen(unsized),
            starts=_frozen(starts),
        )

    def __len__(self) -> int:
        return len(self.rows)

    def sized(self, row_bytes: float) -> Fragments:
        """The same fragments, of which a row has `row_bytes` when decoded."""
        # What a damaged file says of itself may be more than 64 bits hold.
        sizes = np.minimum(np.rint(self.rows * row_bytes), float(_MOST_BYTES))
        return replace(self, bytes=_frozen(sizes.astype(np.int64)))

    def of_files(self, numbers: Int64s) -> tuple[Int64s, Int64s]:
        """The number of the first fragment, and how many there are, for each of these files."""
        # Of one type, so that NumPy does not make a wider copy of the whole column.
        keys = numbers.astype(np.int32)
        begin = np.searchsorted(self.file, keys, side="left")
        return begin, np.searchsorted(self.file, keys, side="right") - begin

    def fragment(self, number: int) -> Fragment:
        """Fragment `number` as the connector's `read` takes it."""
        return Fragment(
            int(self.file[number]), int(self.offset[number]), int(self.length[number]), int(self.rows[number])
        )


@dataclass(frozen=True, eq=False)
class Variant:
    """What a scan found in files beside fragments: equal for most files of a source, so it is kept once.

    It is kept for each file, so that an index brought up to date equals one built afresh.
    """

    schema: pa.Schema
    meta: Mapping[str, Json]
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Index:
    """One source: where its files are, which fragments they have, and what a row looks like.

    Arrays are memory mapped where the index was loaded from a cache. `row_bytes` has the decoded bytes of
    one row per column. `hash` identifies the content: relative names, sizes, etags and row counts, never
    the root or a time. `persistent` says that files can be told apart by name, size and time, so that
    results about them may be kept on disk.
    """

    name: str
    connector: Connector
    store: Store
    schema: pa.Schema
    files: FileTable
    fragments: Fragments
    row_bytes: Mapping[str, float]
    meta: Mapping[str, Json]
    variants: tuple[Variant, ...]
    hash: str
    persistent: bool = False

    def __repr__(self) -> str:
        counts = ((len(self.files), "file"), (len(self.fragments), "fragment"), (self.rows, "row"))
        facts = ", ".join(counted(number, what) for number, what in counts)
        return f"Index({self.name!r}, {self.connector.name}: {facts})"

    @property
    def root(self) -> str:
        return self.files.root

    @property
    def rows(self) -> int:
        return int(self.fragments.starts[-1])

    @property
    def starts(self) -> Int64s:
        """Cumulative rows of the fragments, int64[fragments + 1]."""
        return self.fragments.starts

    @cached_property
    def traits(self) -> Traits:
        """What is cheap with these files."""
        connector = self.connector
        return connector.traits_of(self.meta) if isinstance(connector, Adapts) else connector.traits

    @cached_property
    def opened(self) -> Opened:
        """What a connector needs to read a fragment."""
        return Opened(self.store, self.files, self.meta)

    @cached_property
    def stamp(self) -> str:
        """Identifies the content with its place and times, so that what is cached under it is never stale."""
        digest = hashlib.blake2b(digest_size=16)
        parts: list[object] = [
            self.hash,
            self.root,
            self.store.fs.protocol,
            repr(self.connector),
            self.schema,
        ]
        digest.update("\0".join(str(p) for p in parts).encode())
        digest.update(self.files.mtime.tobytes())
        return digest.hexdigest()

    def fragment(self, number: int) -> Fragment:
        """Fragment `number` as the connector's `read` takes it."""
        return self.fragments.fragment(number)

    def decoded_bytes_per_row(self, columns: Iterable[str] | None = None) -> float:
        """Estimated decoded bytes of one row of these columns (all by default), at least 1."""
        wanted = self.row_bytes if columns is None else columns
        return max(1.0, sum(self.row_bytes[c] for c in wanted))


def content_hash(files: FileTable, fragments: Fragments) -> str:
    """Hash what a resume compares: relative names, sizes, etags and row counts, in row order."""
    digest = hashlib.blake2b(digest_size=16)
    for strings in (files.names, files.etag):
        texts = [str(t) for t in strings.to_pylist()]
        # Lengths first: the joined text alone could be cut into names in more than one way.
        digest.update(np.fromiter(map(len, texts), np.int64, len(texts)).tobytes())
        digest.update("".join(texts).encode())
    for numbers in (files.size, files.rows, fragments.file, fragments.rows):
        digest.update(len(numbers).to_bytes(8, "little"))
        digest.update(np.ascontiguousarray(numbers).data)
    return digest.hexdigest()


def _frozen(array: npt.NDArray[N]) -> npt.NDArray[N]:
    """A view that cannot be written."""
    view = array.view()
    view.flags.writeable = False
    return view


def _text(texts: list[str]) -> pa.LargeStringArray:
    try:
        return pa.array(texts, pa.large_string())
    except UnicodeEncodeError as error:
        raise DataError(
            f"the file name {error.object!r} is not UTF-8.",
            hint="rename the file, or leave it out of the URL",
        ) from error


def _prefix(root: str) -> str:
    return root.rstrip("/") + "/" if root else ""
