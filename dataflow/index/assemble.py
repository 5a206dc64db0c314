"""`assemble`: files, fragments and what scans said of them become a whole `Index`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from connectors.contract import Connector, Json, Opened, Scan
from connectors.store import Store
from dataflow.errors import DataError
from dataflow.index.index import FileTable, Fragments, Index, Int64s, Variant, content_hash
from dataflow.index.schemas import bare, unify
from dataflow.index.sizes import row_bytes

__all__ = ["MOST_ROWS", "Source", "VariantPool", "assemble", "gather"]

# A sample id is the number of a source and 40 bits for its row.
MOST_ROWS = 1 << 40


class Source(NamedTuple):
    """What an index has that no scan can say."""

    name: str
    connector: Connector
    store: Store
    persistent: bool

    @classmethod
    def of(cls, index: Index) -> Source:
        return cls(index.name, index.connector, index.store, index.persistent)


class VariantPool:
    """Numbers the different variants met, each once."""

    def __init__(self, known: Sequence[Variant] = ()) -> None:
        self.known = list(known)
        self._numbers = {_key(v): n for n, v in enumerate(known)}
        self._last: tuple[Scan, int] | None = None

    def number(self, scan: Scan) -> int:
        """The number of what a scan found."""
        if self._last is not None:
            before, number = self._last
            # Most files are like the one before; serialising 100,000 equal schemas takes a second.
            if scan.schema.equals(before.schema) and (scan.meta, scan.remarks) == (
                before.meta,
                before.remarks,
            ):
                return number
        variant = Variant(bare(scan.schema), dict(scan.meta), scan.remarks)
        number = self._numbers.setdefault(_key(variant), len(self.known))
        if number == len(self.known):
            self.known.append(variant)
        self._last = (scan, number)
        return number


def assemble(source: Source, files: FileTable, fragments: Fragments, variants: Sequence[Variant]) -> Index:
    """The index of these files; fills in schema, meta, sizes, row counts and hash.

    Raises:
        DataError: the files' columns do not fit each other, or no row can be decoded.
        ConnectorError: the store cannot be read.
    """
    used, first, variant = np.unique(files.variant, return_index=True, return_inverse=True)
    by_appearance = np.argsort(first)
    rank = np.empty(len(used), np.int32)
    rank[by_appearance] = np.arange(len(used), dtype=np.int32)
    files = replace(files, variant=rank[variant], rows=_rows_of_files(files, fragments))
    kinds = tuple(variants[int(used[k])] for k in by_appearance)
    names = [files.name(int(first[k])) for k in by_appearance]
    schema = unify(zip(names, (v.schema for v in kinds), strict=True))
    meta = _merged(zip(names, (v.meta for v in kinds), strict=True))
    sizes = row_bytes(source.connector, Opened(source.store, files, meta), schema, fragments)
    fragments = fragments.sized(sum(sizes.values()))
    return Index(
        **source._asdict(),
        schema=schema,
        files=files,
        fragments=fragments,
        row_bytes=sizes,
        meta=meta,
        variants=kinds,
        hash=content_hash(files, fragments),
    )


def _rows_of_files(files: FileTable, fragments: Fragments) -> Int64s:
    """The rows of each file.

    Raises:
        DataError: they are more than sample ids have room for, which only a damaged file says.
    """
    rows = np.bincount(fragments.file, weights=fragments.rows, minlength=len(files))
    if rows.sum() > MOST_ROWS:
        most = int(rows.argmax())
        raise DataError(
            f"it says that it has {rows[most]:,.0f} rows; a source may have {MOST_ROWS:,}.",
            file=files.name(most),
            hint="write the file again, or leave it out",
        )
    return rows.astype(np.int64)


def gather(begin: Int64s, count: Int64s) -> Int64s:
    """The numbers `begin[k] .. begin[k] + count[k] - 1` for every k, one after the other."""
    ends = np.cumsum(count)
    total = int(ends[-1]) if len(ends) else 0
    numbers: Int64s = np.arange(total) + np.repeat(begin - (ends - count), count)
    return numbers


def _merged(metas: Iterable[tuple[str, Mapping[str, Json]]]) -> dict[str, Json]:
    merged: dict[str, Json] = {}
    origin: dict[str, str] = {}
    for file, meta in metas:
        for key, value in meta.items():
            if key in merged and merged[key] != value:
                raise DataError(
                    f"{key} is {value!r} here, but {merged[key]!r} in {origin[key]}.",
                    file=file,
                    hint="read the files as two sources",
                )
            merged.setdefault(key, value)
            origin.setdefault(key, file)
    return merged


def _key(variant: Variant) -> tuple[bytes, str, tuple[str, ...]]:
    return variant.schema.serialize().to_pybytes(), json.dumps(variant.meta, sort_keys=True), variant.remarks
