"""From sample ids to the files that have the rows, and the rows' numbers in them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import numpy.typing as npt

from dataflow.errors import DataError
from dataflow.graph.block import BadSample
from dataflow.graph.node import NameRows
from dataflow.index.index import Index

__all__ = ["FindPlace", "located", "place_finder", "row_namer"]

Int64s = npt.NDArray[np.int64]
# From a sample id to the file of the row and the row in it.
FindPlace = Callable[[int], tuple[str, int]]
_ROW = (1 << 40) - 1


def row_namer(indexes: Mapping[int, Index]) -> NameRows:
    """What gives the file (its name in the source) and the row in it of each sample id.

    Args:
        indexes: the sources by number.
    """

    def named(ids: Int64s) -> tuple[list[str], Int64s]:
        names: list[str] = [""] * len(ids)
        rows = ids & _ROW
        for number in np.unique(ids >> 40).tolist():
            index = indexes[number]
            some = np.flatnonzero(ids >> 40 == number)
            file, rows[some] = _files(index, rows[some])
            known = {f: index.files.name(f) for f in np.unique(file).tolist()}
            for place, f in zip(some.tolist(), file.tolist(), strict=True):
                names[place] = known[f]
        return names, rows

    return named


def place_finder(indexes: Mapping[int, Index]) -> FindPlace:
    """As `row_namer`, for one sample id at a time."""
    named = row_namer(indexes)

    def place(sample_id: int) -> tuple[str, int]:
        names, rows = named(np.array([sample_id]))
        return names[0], int(rows[0])

    return place


def located(bad: BadSample, place: FindPlace) -> Exception:
    """The error of a bad row, which says where the row is: a DataError itself, any other in a note."""
    file, row = place(bad.id)
    if isinstance(bad.error, DataError) and not bad.error.file and bad.among == 1:
        bad.error.locate(file, row)
        return bad.error
    where = f"{file}, row {row}"
    note = where if bad.among == 1 else f"one of {bad.among} rows, of which the first is {where}"
    if note not in getattr(bad.error, "__notes__", ()):
        bad.error.add_note(note)
    return bad.error


def _files(index: Index, rows: Int64s) -> tuple[Int64s, Int64s]:
    """The number of the file of each row of a source, and the row's number in that file."""
    if index.connector.traits.scans == "listing" and index.rows == len(index.files):
        return rows, np.zeros_like(rows)  # a file is a row
    fragment = np.searchsorted(index.starts, rows, "right") - 1
    file = index.fragments.file[fragment].astype(np.int64)
    first, _ = index.fragments.of_files(file)
    return file, rows - index.starts[first]
