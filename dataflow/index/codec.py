"""How indexes, file tables and bitmaps are laid out in a file, to be memory mapped.

A file is one Arrow IPC file that holds one row of large lists: columns of different lengths, zero-copy, in
one piece that a rename can swap. The schema's metadata has a JSON header and a checksum of every column. Those
of more than 16 MiB are checked once, when a file comes from another store: opening a map of ten million fragments
shall not read all of it.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from connectors.arrow_types import Column
from connectors.contract import Connector, Json
from connectors.store import Store
from dataflow.index.index import FileTable, Fragments, Index, Variant

__all__ = [
    "BrokenFile",
    "check_whole",
    "decode_bits",
    "decode_files",
    "decode_index",
    "encode_bits",
    "encode_files",
    "encode_index",
]

# Raised whenever the layout, or what a connector's scan means, changes: older files are then built anew.
VERSION = 2
_SUMMED_BYTES = 16 << 20

Columns = dict[str, Column]


class BrokenFile(Exception):
    """A cached file is damaged, or of another version: it is built again, so no user sees this."""


def check_whole(buffer: pa.Buffer) -> None:
    """Compare every column of a file with its checksum.

    Raises:
        BrokenFile: the file is damaged, or not all of it is there.
    """
    _open(buffer, None)


def encode_index(index: Index) -> pa.RecordBatch:
    """One row with everything of an index but its connector, store and name."""
    header: dict[str, Json] = {
        "kind": "index",
        "hash": index.hash,
        "root": index.root,
        "row_bytes": dict(index.row_bytes),
        "metas": [dict(v.meta) for v in index.variants],
        "remarks": [list(v.remarks) for v in index.variants],
        "meta": dict(index.meta),
        "connector": repr(index.connector),
    }
    schemas = [index.schema, *(v.schema for v in index.variants)]
    f = index.fragments
    columns = _file_columns(index.files)
    for name in ("file", "offset", "length", "rows", "bytes", "starts"):
        columns[f"fragment_{name}"] = pa.array(getattr(f, name))
    columns["schema"] = pa.array([s.serialize().to_pybytes() for s in schemas], pa.large_binary())
    return _row(header, columns)


def decode_index(buffer: pa.Buffer, *, name: str, connector: Connector, store: Store) -> Index:
    """The index in a file; its arrays are views of `buffer`.

    Raises:
        BrokenFile: the file is damaged, of another version, or was made with other options of the format.
    """
    header, columns = _open(buffer, "index")
    if header["connector"] != repr(connector):
        raise BrokenFile("made with other options of the format")
    try:
        files = _files(str(header["root"]), columns)
        fragments = _fragments(columns)
        schemas = [pa.ipc.read_schema(pa.py_buffer(s.as_py())) for s in columns["schema"]]
        return Index(
            name=name,
            connector=connector,
            store=store,
            schema=schemas[0],
            files=files,
            fragments=fragments,
            row_bytes=header["row_bytes"],
            meta=header["meta"],
            variants=tuple(map(Variant, schemas[1:], header["metas"], map(tuple, header["remarks"]))),
            hash=header["hash"],
            persistent=True,
        )
    except (KeyError, IndexError, ValueError, TypeError, OSError, pa.ArrowException) as error:
        raise BrokenFile(str(error)) from error


def encode_files(files: FileTable, content: str) -> pa.RecordBatch:
    """One row with a file table, to be found again by the hash of its index."""
    return _row({"kind": "files", "hash": content, "root": files.root}, _file_columns(files))


def decode_files(buffer: pa.Buffer) -> FileTable:
    """The file table in a file.

    Raises:
        BrokenFile: the file is damaged or of another version.
    """
    header, columns = _open(buffer, "files")
    try:
        return _files(str(header["root"]), columns)
    except (KeyError, ValueError, pa.ArrowException) as error:
        raise BrokenFile(str(error)) from error


def encode_bits(bits: npt.NDArray[np.uint8], rows: int, key: str) -> pa.RecordBatch:
    """One row with a bitmap."""
    return _row({"kind": "bits", "rows": rows, "key": key}, {"bits": pa.array(bits)})


def decode_bits(buffer: pa.Buffer, rows: int) -> npt.NDArray[np.uint8]:
    """The bitmap in a file, uint8[ceil(rows / 8)].

    Raises:
        BrokenFile: the file is damaged, of another version, or is not a bitmap of this many rows.
    """
    header, columns = _open(buffer, "bits")
    bits: npt.NDArray[np.uint8] = columns["bits"].to_numpy() if "bits" in columns else np.zeros(0, np.uint8)
    if header.get("rows") != rows or len(bits) != (rows + 7) // 8:
        raise BrokenFile(f"not a bitmap of {rows} rows")
    return bits


def _row(header: Mapping[str, Json], columns: Columns) -> pa.RecordBatch:
    lists = [pa.LargeListArray.from_arrays(pa.array([0, len(c)], pa.int64()), c) for c in columns.values()]
    text = json.dumps({**header, "version": VERSION, "sums": {n: _sum(c) for n, c in columns.items()}})
    fields = [pa.field(n, a.type) for n, a in zip(columns, lists, strict=True)]
    # The sum of the header is beside it: it could not be in it.
    metadata: dict[bytes | str, bytes | str] = {"header": text, "header_sum": str(zlib.crc32(text.encode()))}
    return pa.RecordBatch.from_arrays(lists, schema=pa.schema(fields, metadata=metadata))


def _open(buffer: pa.Buffer, kind: str | None) -> tuple[dict[str, Any], Columns]:
    """The header and the columns; with `kind` None of a file of any kind, of which all is checked."""
    try:
        with pa.ipc.open_file(buffer) as reader:
            metadata = reader.schema.metadata or {}
            text = metadata[b"header"]
            if int(metadata[b"header_sum"]) != zlib.crc32(text):
                raise BrokenFile("the header is damaged")
            header: dict[str, Any] = json.loads(text)
            if (header["version"], header["kind"]) != (VERSION, kind or header["kind"]):
                raise BrokenFile(f"version {header['version']} of {header['kind']}, not {VERSION} of {kind}")
            batch = reader.get_batch(0)
        batch.validate()
        columns = {n: batch.column(n)[0].values for n in header["sums"]}
        checked = {n: c for n, c in columns.items() if kind is None or c.nbytes <= _SUMMED_BYTES}
        damaged = [n for n, c in checked.items() if _sum(c) != header["sums"][n]]
    except (KeyError, IndexError, ValueError, TypeError, AttributeError, OSError, pa.ArrowException) as error:
        raise BrokenFile(str(error)) from error
    if damaged:
        raise BrokenFile(f"damaged columns: {', '.join(damaged)}")
    return header, columns


def _sum(column: Column) -> int:
    """A checksum of what the column means."""
    if not pa.types.is_primitive(column.type):
        offsets = np.frombuffer(column.buffers()[1], np.int64)[column.offset :][: len(column) + 1]
        text = memoryview(column.buffers()[2] or b"")[offsets[0] : offsets[-1]]
        return zlib.crc32(text, zlib.crc32(np.diff(offsets).data))
    return zlib.crc32(column.to_numpy().data)


def _file_columns(files: FileTable) -> Columns:
    return {
        "name": files.names,
        "etag": files.etag,
        "size": pa.array(files.size),
        "mtime": pa.array(files.mtime),
        "file_rows": pa.array(files.rows),
        "variant": pa.array(files.variant),
    }


def _files(root: str, columns: Columns) -> FileTable:
    for name in ("name", "etag"):
        columns[name].validate(full=True)
    return FileTable(
        root=root,
        names=columns["name"],
        etag=columns["etag"],
        size=columns["size"].to_numpy(),
        mtime=columns["mtime"].to_numpy(),
        rows=columns["file_rows"].to_numpy(),
        variant=columns["variant"].to_numpy(),
    )


def _fragments(columns: Columns) -> Fragments:
    names = ("file", "offset", "length", "rows", "bytes", "starts")
    fragments = Fragments(**{name: columns[f"fragment_{name}"].to_numpy() for name in names})
    lengths = {len(getattr(fragments, name)) for name in names[:-1]}
    if lengths != {len(fragments.starts) - 1} or fragments.starts[0] != 0:
        raise BrokenFile("columns of unequal length")
    return fragments
