"""An index restricted to the files of an older one, or with those first and new files behind them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa

from connectors.paths import Listing
from dataflow.errors import DataError
from dataflow.index.assemble import Source, assemble, gather
from dataflow.index.build import build_index
from dataflow.index.changes import places_in
from dataflow.index.index import FileTable, Fragments, Index, Int64s, content_hash

__all__ = ["appended", "restrict"]


def restrict(index: Index, old: FileTable) -> Index:
    """The index of only the files in `old`, in their order.

    It has the etags of `old`, so that its hash is that of the old index exactly if the rows are the same.

    Raises:
        DataError: a file of `old` is gone.
    """
    return _taken(index, _numbers(index, old), old)


def appended(index: Index, old: FileTable) -> Index:
    """The index with the files in `old` first, in their order, then the others: old rows keep their numbers.

    Raises:
        DataError: a file of `old` is gone.
    """
    numbers = _numbers(index, old)
    others = np.setdiff1d(np.arange(len(index.files)), numbers)
    return _taken(index, np.concatenate([numbers, others]), old)


def _numbers(index: Index, old: FileTable) -> Int64s:
    numbers = places_in(index.files, old)
    if (numbers < 0).any():
        name = old.name(int(np.argmin(numbers)))
        raise DataError("the file is gone.", file=name, hint="put it back, or start anew")
    return numbers


def _taken(index: Index, numbers: Int64s, old: FileTable) -> Index:
    files = index.files.take(numbers)
    if index.connector.traits.scans == "listing":
        # A fragment may cover many files, so that the fragments of some files are not some fragments.
        listing = Listing(index.store, index.root, tuple(files))
        taken = build_index(index.connector, listing, name=index.name, persistent=index.persistent)
    else:
        begin, count = index.fragments.of_files(numbers)
        picked = gather(begin, count)
        f = index.fragments
        fragments = Fragments.of(
            np.repeat(np.arange(len(numbers), dtype=np.int32), count),
            f.offset[picked],
            f.length[picked],
            f.rows[picked],
        )
        taken = assemble(Source.of(index), files, fragments, index.variants)
    etag = pa.concat_arrays([old.etag, taken.files.etag.slice(len(old))])
    files = replace(taken.files, etag=etag)
    return replace(taken, files=files, hash=content_hash(files, taken.fragments))
