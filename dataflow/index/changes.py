"""Which files of a listing an older file table has, and which of those are as they were."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from connectors.arrow_types import Column
from dataflow.index.index import FileTable, Int64s

__all__ = ["Bools", "is_current", "places_in", "same_content", "unchanged"]

Bools = npt.NDArray[np.bool_]


def places_in(old: FileTable, files: FileTable) -> Int64s:
    """For each file, the number of the file of the same relative name in `old`, or -1."""
    found: Column = pc.index_in(files.names, value_set=old.names)
    places: Int64s = found.fill_null(-1).to_numpy().astype(np.int64)
    return places


def same_content(files: FileTable, old: FileTable, places: Int64s) -> Bools:
    """For each file that `old` has, whether sizes agree, and etags where the store had them both times."""
    there = places >= 0
    agree, both = _etags(files, old, places)
    same: Bools = np.zeros(len(files), np.bool_)
    same[there] = files.size[there] == old.size[places[there]]
    return same & (agree | ~both)


def unchanged(files: FileTable, old: FileTable, places: Int64s) -> Bools:
    """For each file that `old` has, whether a scan would find the same: as `same_content`, and times too.

    An etag says more than a time. Under another root times say nothing: a copy has its own.
    """
    same = same_content(files, old, places)
    if files.root == old.root:
        _, both = _etags(files, old, places)
        same[same] &= both[same] | (files.mtime[same] == old.mtime[places[same]])
    return same


def is_current(old: FileTable, files: FileTable) -> bool:
    """Whether `old` is this listing: the same files in the same order, none changed."""
    if not files.names.equals(old.names):
        return False
    return bool(unchanged(files, old, np.arange(len(files))).all())


def _etags(files: FileTable, old: FileTable, places: Int64s) -> tuple[Bools, Bools]:
    """For each file, whether its etag is that in `old`, and whether there is one in both."""
    known = pa.array(places, pa.int64(), mask=places < 0)
    before: Column = pc.take(old.etag, known).fill_null("")
    agree = pc.call_function("equal", [files.etag, before])
    both = pc.call_function("and", [_known(files.etag), _known(before)])
    return np.asarray(agree), np.asarray(both)


def _known(etag: Column) -> Column:
    return pc.call_function("not_equal", [etag, pa.scalar("", pa.large_string())])
