"""`Folder`: each file is a row; the folder that it lies in may be its class."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Final, Literal, cast

import numpy as np
import pyarrow as pa

from connectors.arrow_types import Column
from connectors.conform import conform
from connectors.contract import BadRow, Chunk, FileInfo, Fragment, Json, Opened, Scan, Traits
from connectors.store import Store
from dataflow.errors import ConnectorError, DataError, PlanError, near
from dataflow.wording import counted

__all__ = ["Folder"]

_FRAGMENT_FILES: Final = 512
_FRAGMENT_BYTES: Final = 4 << 20
# These say something about the file asked for, anything else about the store.
_OF_THE_FILE: Final = (FileNotFoundError, PermissionError, IsADirectoryError, NotADirectoryError)


@dataclass(frozen=True, kw_only=True)
class Folder:
    """A folder of files, one a row, in the order of the listing.

    Columns: `path` (string, relative to the root), `bytes` (large_binary, the content as it is, also where it
    is empty) and, for class folders, `label` (int64): the place of the file's first folder below the root in
    the class names, which the index keeps as ``meta["classes"]``; where there are none, ``meta["no_classes"]`` says
    why.

    A file that is gone, or may not be read, is a bad row.

    Fields:
        suffixes: the endings of the files to take, in lower case; none takes every file.
        label: "auto" gives labels if every file lies exactly one folder below the root, True demands a
            folder for every file (deeper ones count to it), False gives none.
        classes: the class names in the order of the labels; without them, the folders' names sorted. Give
            them where two sources (train, validation) must agree although one may lack a class.
        root: the folder, as a full path inside the store, that paths and classes start from; without it,
            the deepest folder that has all the files. Give it where the files may all be of one class.
    """

    suffixes: tuple[str, ...] = (".jpeg", ".webp", ".tiff", ".jpg", ".png", ".bmp", ".gif", ".tif")
    label: Literal["auto"] | bool = "auto"
    classes: tuple[str, ...] = ()
    root: str = ""

    def __post_init__(self) -> None:
        if self.label not in ("auto", True, False):
            raise PlanError(f"Folder(label={self.label!r}) is unknown.", hint="use 'auto', True or False")
        # A string instead of a tuple is a sequence of endings of one letter.
        if any(suffix != suffix.lower() or len(suffix) < 2 for suffix in self.suffixes):
            raise PlanError(
                f"Folder(suffixes={self.suffixes!r}) are not lower-case endings.",
                hint='give a tuple as (".jpg", ".png"), or () for every file',
            )
        if len(set(self.classes)) < len(self.classes):
            raise PlanError(
                f"Folder(classes={self.classes!r}) has a name twice.", hint="name each class once"
            )

    @property
    def name(self) -> str:
        return "folder"

    @property
    def traits(self) -> Traits:
        return Traits(row_ranges=True, single_rows=True, scans="listing")

    def scan(self, store: Store, files: Sequence[FileInfo]) -> Scan:
        """Cut the listing into slices of at most 512 files and (unless one file is larger) 4 MiB.

        Raises:
            DataError: no file has one of the suffixes, a file lies outside the root, or has no class where
                there must be one.
        """
        taken = [number for number, info in enumerate(files) if self.takes(info.path)]
        if files and not taken:
            raise DataError(
                f"none of the {counted(len(files), 'file')} ends in {', '.join(self.suffixes)}.",
                file=files[0].path,
                hint="name the endings with Folder(suffixes=...), () for every file",
            )
        root = self.root.rstrip("/") + "/" if self.root else _common([files[k].path for k in taken])
        paths = [_below(root, files[number].path) for number in taken]
        columns: list[pa.Field[Any]] = [pa.field("path", pa.string()), pa.field("bytes", pa.large_binary())]
        meta: dict[str, Json] = {"root": root}
        remarks: tuple[str, ...] = ()
        if self._labelled(paths):
            columns.append(pa.field("label", pa.int64()))
            meta["classes"] = self._name_classes(paths)
        else:
            odd = _odd_one(paths) if self.label == "auto" else ""
            meta["no_classes"] = odd or "the files do not lie in a folder of their class, as cat/1.jpg does."
            remarks = (f"no column 'label', because {odd}",) if odd else ()
        slices = np.array(_slices(taken, files), dtype=np.int64).reshape(-1, 3)
        return Scan(
            schema=pa.schema(columns),
            file=slices[:, 0].copy(),
            offset=np.zeros(len(slices), dtype=np.int64),
            length=slices[:, 1].copy(),
            rows=slices[:, 2].copy(),
            meta=meta,
            remarks=remarks,
        )

    def read(
        self, opened: Opened, fragment: Fragment, schema: pa.Schema, start: int, stop: int, max_rows: int
    ) -> Iterator[Chunk]:
        """Yield files as rows; none is opened unless `bytes` is asked for.

        Raises:
            DataError: the listing is not what the index says.
            ConnectorError: the store fails, for whatever reason but one file that is gone or forbidden.
        """
        files, begin = opened.files, fragment.file
        if fragment.length != fragment.rows:
            every = files[begin : begin + fragment.length]
            files, begin = [info for info in every if self.takes(info.path)], 0
        for first in range(start, stop, max_rows):
            yield _chunk(opened, files[begin + first : begin + min(first + max_rows, stop)], schema)

    def takes(self, path: str) -> bool:
        """Whether the file's name has one of the suffixes."""
        return not self.suffixes or path.lower().endswith(self.suffixes)

    def _labelled(self, paths: Sequence[str]) -> bool:
        if self.label != "auto":
            return self.label
        return bool(paths) and all(path.count("/") == 1 for path in paths)

    def _name_classes(self, paths: Sequence[str]) -> list[Json]:
        found: dict[str, str] = {}
        for path in paths:
            name, slash, _ = path.partition("/")
            if not slash:
                raise DataError(
                    "lies in no class folder.", file=path, hint="move it into one, or use Folder(label=False)"
                )
            found.setdefault(name, path)
        for name in sorted(found.keys() - set(self.classes)) if self.classes else ():
            raise DataError(
                f"the folder {name!r} is none of the {counted(len(self.classes), 'class')}.",
                file=found[name],
                hint=near(name, self.classes, what="class"),
            )
        return list(self.classes or sorted(found))


def _odd_one(paths: Sequence[str]) -> str:
    """Which file keeps all the others from having a label, and what to do about it; empty where none lie in classes."""
    depths = [path.count("/") for path in paths]
    if 1 not in depths:
        return ""
    for path, depth in zip(paths, depths, strict=True):
        if depth == 0:
            return (
                f"{path} lies in no class folder: move it away, or read a pattern that leaves it out, as "
                "'images/*/*'."
            )
        if depth > 1:
            return (
                f"{path} lies deeper than in a class folder: format=Folder(label=True) counts it to its first folder, "
                "and root= says below which folder the classes lie."
            )
    return ""


def _chunk(opened: Opened, files: Sequence[FileInfo], schema: pa.Schema) -> Chunk:
    root = str(opened.meta["root"])
    names: list[str | None] = [_below(root, info.path) for info in files]
    columns: dict[str, Column] = {}
    bad: dict[int, ConnectorError] = {}
    if "bytes" in schema.names:
        found = _read_in_place(files) if opened.store.is_local else None
        if found is None:
            contents, bad = _contents(opened.store, files)
            found = _binaries(list(map(len, contents)), pa.py_buffer(b"".join(contents)), bad)
        columns["bytes"] = found
    for row in bad:
        names[row] = None
    columns["path"] = pa.array(names, pa.string())
    if "label" in schema.names:
        columns["label"] = pa.array(_labels(names, cast("list[str]", opened.meta["classes"])), pa.int64())
    batch = conform(pa.RecordBatch.from_pydict(columns), schema, file=files[0].path if files else root)
    return Chunk(batch, tuple(BadRow(row, error) for row, error in bad.items()))


def _labels(names: Sequence[str | None], classes: Sequence[str]) -> list[int | None]:
    labels = {name: label for label, name in enumerate(classes)}
    try:
        return [None if name is None else labels[name.partition("/")[0]] for name in names]
    except KeyError as error:
        raise DataError(
            f"the folder {error.args[0]!r} is no class of the index.", hint="build the index again"
        ) from error


def _read_in_place(files: Sequence[FileInfo]) -> Column | None:
    """The contents of local files, read into one buffer; None where one is not as it was listed.

    An Arrow file for each, and a join of what they hold, took three times as long for files of 10 KB.
    """
    sizes = [info.size for info in files]
    buffer = pa.allocate_buffer(sum(sizes) + 1)
    room = memoryview(buffer)
    begin = 0
    for info, size in zip(files, sizes, strict=True):
        try:
            handle = os.open(info.path, os.O_RDONLY | os.O_CLOEXEC)
            try:
                # One byte more than there should be, which tells that a file has grown.
                got = os.readv(handle, [room[begin : begin + size + 1]])
            finally:
                os.close(handle)
        except OSError:
            return None
        if got != size:
            return None
        begin += size
    return _binaries(sizes, buffer, {})


def _contents(
    store: Store, files: Sequence[FileInfo]
) -> tuple[list[bytes | pa.Buffer], dict[int, ConnectorError]]:
    """The content of each file, and of those that cannot be read (b"") what is wrong, by row."""
    contents: list[bytes | pa.Buffer] = []
    bad: dict[int, ConnectorError] = {}
    for row, content in enumerate(_read_each(store, files)):
        if isinstance(content, ConnectorError):
            bad[row] = content
        contents.append(b"" if isinstance(content, ConnectorError) else content)
    return contents, bad


def _read_each(store: Store, files: Sequence[FileInfo]) -> Iterator[bytes | pa.Buffer | ConnectorError]:
    """Yield the content of each file, or what is wrong with it."""
    if store.is_local:
        for info in files:
            try:
                # Whatever it is by now: a file is a row of its own, and no other row depends on it.
                yield store.read(info.path)
            except ConnectorError as error:
                if not isinstance(error.__cause__, _OF_THE_FILE):
                    raise
                yield error
        return
    for info, got in zip(files, store.read_whole(files), strict=True):
        if not isinstance(got, Exception):
            yield got
            continue
        failure = ConnectorError(f"{info.path} cannot be read: {got}", hint="check that it is still there")
        failure.__cause__ = got
        if not isinstance(got, _OF_THE_FILE):
            raise failure
        yield failure


def _binaries(sizes: Sequence[int], data: pa.Buffer, bad: dict[int, ConnectorError]) -> Column:
    ends = np.fromiter(accumulate(sizes, initial=0), np.int64, len(sizes) + 1)
    valid = None
    if bad:
        good = np.array([row not in bad for row in range(len(sizes))])
        valid = pa.py_buffer(np.packbits(good, bitorder="little").tobytes())
    return pa.Array.from_buffers(pa.large_binary(), len(sizes), [valid, pa.py_buffer(ends.tobytes()), data])


def _slices(taken: Sequence[int], files: Sequence[FileInfo]) -> list[tuple[int, int, int]]:
    """(first file, files, rows) of each fragment; it may have files in it that are not taken."""
    slices = []
    first = rows = held = 0
    for place, number in enumerate(taken):
        size = files[number].size
        if rows and (rows == _FRAGMENT_FILES or held + size > _FRAGMENT_BYTES):
            slices.append((first, taken[place - 1] + 1 - first, rows))
            rows = held = 0
        first = first if rows else number
        rows, held = rows + 1, held + size
    if rows:
        slices.append((first, taken[-1] + 1 - first, rows))
    return slices


def _common(paths: Sequence[str]) -> str:
    """The deepest folder that has all the files, with its slash."""
    if not paths:
        return ""
    low, high = min(paths), max(paths)
    same = next(
        (k for k, (a, b) in enumerate(zip(low, high, strict=False)) if a != b), min(len(low), len(high))
    )
    return low[: low.rfind("/", 0, same) + 1]


def _below(root: str, path: str) -> str:
    if not path.startswith(root):
        raise DataError(
            f"does not lie below {root}.",
            file=path,
            hint="correct Folder(root=...), or build the index again",
        )
    return path[len(root) :]
