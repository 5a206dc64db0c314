"""The footer of a Parquet file: read with few requests, checked, and asked where a column is."""

from __future__ import annotations

from math import prod
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.types as pt

from connectors.arrow_types import Kind, is_list
from connectors.contract import FileInfo
from connectors.faults import reading
from connectors.store import Store
from connectors.tensors import shape_of
from dataflow.errors import DataError
from dataflow.wording import counted

__all__ = ["Footer", "Projection", "Projector", "read_footer"]


MAGIC = b"PAR1"
ENCRYPTED = b"PARE"
TAIL_BYTES = 64 << 10  # holds most footers whole, so that a remote one costs one request
DICTIONARIES = frozenset({"RLE_DICTIONARY", "PLAIN_DICTIONARY"})
# What a parsed footer takes in memory was 5 to 11 times its size in the file.
PARSED_BYTES = 10


class Projection(NamedTuple):
    """Where wanted columns lie in a row group: paths of leaves, and what the footer says of their size.

    A row decodes to `dense_bytes` in the columns of a fixed size, and to about `loose_bytes` in the others. Where these
    have dictionaries, `most_bytes` are what they may decode to in the whole row group, at the very most; else 0, for
    then the footer is right.
    """

    leaves: list[str]
    dense_bytes: int
    loose_bytes: float
    most_bytes: int


class Footer:
    """What a file's footer says: its metadata, Arrow schema and the rows of each row group."""

    def __init__(self, metadata: pq.FileMetaData) -> None:
        self.metadata = metadata
        self.leaves = metadata.schema
        self.schema = self.leaves.to_arrow_schema()
        self.rows = tuple(metadata.row_group(k).num_rows for k in range(metadata.num_row_groups))

    @property
    def nbytes(self) -> int:
        """About the memory that it takes."""
        return PARSED_BYTES * self.metadata.serialized_size

    def encoded_bytes(self, group: int, leaves: list[int]) -> tuple[float, int]:
        """Bytes of one row of a row group in the leaf columns of these numbers, as encoded; `Projection.most_bytes`."""
        rows = self.rows[group]
        if not rows or not leaves:
            return 0.0, 0
        row_group = self.metadata.row_group(group)
        encoded = most = 0
        for leaf in leaves:
            chunk = row_group.column(leaf)
            nbytes = chunk.total_uncompressed_size
            encoded += nbytes
            if not DICTIONARIES.isdisjoint(chunk.encodings):
                most += chunk.num_values * nbytes
        return encoded / rows, most


class _Found(NamedTuple):
    """Where wanted columns lie in all files of one schema; `loose` are the leaves of no fixed size."""

    footer: Footer
    wanted: pa.Schema
    leaves: list[str]
    dense_bytes: int
    loose: list[int]

    def holds_for(self, footer: Footer, wanted: pa.Schema) -> bool:
        mine = self.footer
        return self.wanted is wanted and (
            mine is footer or (mine.leaves.equals(footer.leaves) and mine.schema.equals(footer.schema))
        )


class Projector:
    """Finds the columns that are wanted; a copy, also in another process, begins anew.

    The last answer is kept: a source is read with one schema object, its files have mostly one schema, and the
    search takes half as long as reading a row group of 64 rows.
    """

    def __init__(self) -> None:
        self._last: _Found | None = None

    def __reduce__(self) -> tuple[type[Projector], tuple[()]]:
        return Projector, ()

    def find(self, footer: Footer, group: int, wanted: pa.Schema) -> Projection:
        """Where the columns of `wanted` lie in a row group of the file of a footer."""
        found = self._last
        if found is None or not found.holds_for(footer, wanted):
            self._last = found = _find(footer, wanted)
        loose_bytes, most_bytes = footer.encoded_bytes(group, found.loose)
        return Projection(found.leaves, found.dense_bytes, loose_bytes, most_bytes)


def _find(footer: Footer, wanted: pa.Schema) -> _Found:
    numbers: list[int] = []
    loose: list[int] = []
    dense_bytes = place = 0
    for here in footer.schema:
        there = wanted.get_field_index(here.name)
        if there >= 0:
            leaves = _leaves(here.type, wanted.field(there).type, place)
            numbers += leaves
            row_bytes = _row_bytes(here.type)
            dense_bytes += row_bytes
            loose += [] if row_bytes else leaves
        place += _count_leaves(here.type)
    paths = [footer.leaves.column(leaf).path for leaf in numbers]
    return _Found(footer, wanted, paths, dense_bytes, loose)


def read_footer(store: Store, info: FileInfo, whole: pa.Buffer | None = None) -> Footer:
    """Read and check the footer of a file, from `whole` where that has been read already.

    Raises:
        DataError: the file is empty, cut off, encrypted, or no Parquet file; names path and offset.
        ConnectorError: the file cannot be read.
    """
    size = info.size
    if size < 12:
        raise _not_parquet(info, 0, "it is empty" if not size else f"it has only {counted(size, 'byte')}")
    with reading(info.path, "Parquet"):
        tail = whole or store.read(info, max(size - TAIL_BYTES, 0))
        end = tail[-8:].to_pybytes()
        magic = end[-4:]
        if tail.size != (size if whole else min(size, TAIL_BYTES)) or magic not in (MAGIC, ENCRYPTED):
            raise _not_parquet(info, size - 4, f"it ends with {magic!r}, not {MAGIC!r}")
        if magic == ENCRYPTED:
            raise DataError("its footer is encrypted.", file=info.path, hint="decrypt the file first")
        length = int.from_bytes(end[:4], "little")
        if length > size - 12:
            raise _not_parquet(
                info, size - 8, f"its footer of {counted(length, 'byte')} is larger than the file"
            )
        if length + 8 > tail.size:
            tail = store.read(info, size - 8 - length)
        footer = Footer(pq.read_metadata(pa.BufferReader(tail)))
    if min(footer.rows, default=0) < 0 or sum(footer.rows) != footer.metadata.num_rows:
        raise _not_parquet(info, size - 8 - length, "its footer contradicts itself on the number of rows")
    return footer


def _not_parquet(info: FileInfo, offset: int, why: str) -> DataError:
    return DataError(
        f"this is no whole Parquet file: {why}.",
        file=info.path,
        offset=offset,
        hint="copy or write the file again, give format=, or leave it out",
    )


def _leaves(here: Kind, wanted: Kind, place: int) -> list[int]:
    """The numbers of the leaves of a column of type `here`, whose first is `place`, that `wanted` needs."""
    if here.equals(wanted):
        return list(range(place, place + _count_leaves(here)))
    if pt.is_struct(here) and pt.is_struct(wanted):
        found: list[int] = []
        at = place
        for child in here:
            index = wanted.get_field_index(child.name)
            if index >= 0:
                found += _leaves(child.type, wanted.field(index).type, at)
            at += _count_leaves(child.type)
        # A struct none of whose fields are wanted still says which of its rows are null.
        return found or [place]
    if is_list(here) and is_list(wanted):
        return _leaves(here.value_type, wanted.value_type, place)
    return list(range(place, place + _count_leaves(here)))


def _count_leaves(kind: Kind) -> int:
    if isinstance(kind, pa.BaseExtensionType):
        return _count_leaves(kind.storage_type)
    if pt.is_struct(kind):
        return sum(_count_leaves(child.type) for child in kind)
    if pt.is_map(kind):
        return _count_leaves(kind.key_type) + _count_leaves(kind.item_type)
    return _count_leaves(kind.value_type) if is_list(kind) else 1


def _row_bytes(kind: Kind) -> int:
    """The bytes of one row of a dense type, which a dictionary in the file may understate; else 0."""
    dense = shape_of(kind)
    return 0 if dense is None else dense[0].itemsize * prod(dense[1])
