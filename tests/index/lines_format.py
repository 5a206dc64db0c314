"""A small format for tests of the index: the first line of a file has its types, each other line a row."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from connectors.contract import Chunk, FileInfo, Fragment, Json, Opened, Scan, Traits
from connectors.paths import Listing, resolve
from connectors.store import Store
from dataflow.errors import DataError
from dataflow.index import Index, build_index, open_index

__all__ = ["Counted", "Lines", "counted", "listed", "opened", "scanned", "write_lines"]

TYPES: dict[str, Any] = {
    "int64": pa.int64(),
    "int32": pa.int32(),
    "string": pa.string(),
    "float64": pa.float64(),
    "null": pa.null(),
}
MARKS = "LINES_MARKS"
ENTERED = "LINES_ENTERED"
LEAVE = "LINES_LEAVE"


@dataclass(frozen=True, kw_only=True)
class Lines:
    """`rows` rows a fragment. A scan notes process and file in `$LINES_MARKS`.

    With the pipes `$LINES_ENTERED` and `$LINES_LEAVE` a scan says that it has begun, and waits to go on.
    """

    rows: int = 3
    scans: str = "file"

    @property
    def name(self) -> str:
        return "lines"

    @property
    def suffixes(self) -> tuple[str, ...]:
        return (".lines",)

    @property
    def traits(self) -> Traits:
        whole = self.scans == "listing"
        return Traits(row_ranges=True, single_rows=True, scans="listing" if whole else "file")

    def scan(self, store: Store, files: Sequence[FileInfo]) -> Scan:
        schema: pa.Schema = pa.schema([])
        file: list[int] = []
        offset: list[int] = []
        length: list[int] = []
        meta: dict[str, Json] = {}
        for number, info in enumerate(files):
            mark(info.path)
            schema, rows, meta = parse(store, info.path)
            starts = range(0, len(rows), self.rows) if rows else [0]
            file += [number] * len(starts)
            offset += starts
            length += [min(self.rows, len(rows) - start) for start in starts]
        a, b, c = (np.array(part, np.int64) for part in (file, offset, length))
        return Scan(schema, a, b, c, c, meta)

    def read(
        self, opened: Opened, fragment: Fragment, schema: pa.Schema, start: int, stop: int, max_rows: int
    ) -> Iterator[Chunk]:
        _, rows, _ = parse(opened.store, opened.files[fragment.file].path)
        rows = rows[fragment.offset :][start:stop]
        for first in range(0, len(rows), max_rows):
            part = rows[first : first + max_rows]
            columns = [pa.array([row.get(f.name) for row in part], f.type) for f in schema]
            yield Chunk(pa.RecordBatch.from_arrays(columns, schema=schema))


@dataclass(frozen=True, kw_only=True)
class Counted(Lines):
    """Files that are only their sizes: n bytes are rows 0 .. n-1 of column x; nothing is opened."""

    def scan(self, store: Store, files: Sequence[FileInfo]) -> Scan:
        starts = np.arange(0, files[0].size, self.rows)
        rows = np.minimum(self.rows, files[0].size - starts)
        return Scan(pa.schema([("x", pa.int64())]), np.zeros(len(starts), np.int64), starts, rows, rows)

    def read(
        self, opened: Opened, fragment: Fragment, schema: pa.Schema, start: int, stop: int, max_rows: int
    ) -> Iterator[Chunk]:
        for first in range(start, stop, max_rows):
            x = pa.array(range(fragment.offset + first, fragment.offset + min(stop, first + max_rows)))
            yield Chunk(pa.record_batch([x.cast(pa.int64())] * len(schema), schema=schema))


def counted(files: Sequence[FileInfo], rows: int, old: Index | None = None) -> Index:
    """An index of such files, with `rows` rows a fragment."""
    return build_index(Counted(rows=rows), Listing(Store(), "/m", tuple(files)), name="counted", old=old)


def mark(path: str) -> None:
    if MARKS in os.environ:
        with Path(os.environ[MARKS]).open("a") as marks:
            marks.write(f"{os.getpid()} {Path(path).name}\n")
    if ENTERED in os.environ:
        with Path(os.environ[ENTERED]).open("w") as pipe:
            pipe.write("entered")
        Path(os.environ[LEAVE]).read_text()


def parse(store: Store, path: str) -> tuple[pa.Schema, list[dict[str, object]], dict[str, Json]]:
    head, *lines = store.read(path).to_pybytes().decode().splitlines()
    if not head.startswith("{"):
        raise DataError("not a file of lines.", file=path, offset=0, hint="write its types first")
    types = json.loads(head)
    meta = types.pop("meta", {})
    schema = pa.schema([pa.field(n, TYPES[t]) for n, t in types.items()])
    return schema, [json.loads(line) for line in lines], meta


def write_lines(
    path: Path,
    rows: Sequence[Mapping[str, object]] | int,
    types: Mapping[str, object] | None = None,
    mtime: int | None = None,
) -> Path:
    """Write a file; a number stands for rows `{"x": 0}, {"x": 1}, ...`."""
    if isinstance(rows, int):
        rows = [{"x": x} for x in range(rows)]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(map(json.dumps, [types or {"x": "int64"}, *rows])) + "\n")
    if mtime is not None:
        os.utime(path, (mtime, mtime))
    return path


def listed(folder: Path) -> Listing:
    return resolve(str(folder))


def opened(url: Path | str, **options: object) -> Index:
    """`open_index` with the format of this file."""
    return open_index(url, **{"format": Lines(), "progress": False, **options})  # type: ignore[arg-type]


def scanned(marks: Path) -> list[str]:
    """The names of the files scanned so far, sorted; forgets them."""
    names = sorted(line.split()[1] for line in marks.read_text().splitlines()) if marks.exists() else []
    marks.unlink(missing_ok=True)
    return names
