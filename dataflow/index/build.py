"""`build_index`: scan files into an index, or only those that changed since an older one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from connectors.contract import Connector, Scan
from connectors.paths import Listing
from dataflow.index.assemble import Source, VariantPool, assemble, gather
from dataflow.index.changes import places_in, unchanged
from dataflow.index.index import FileTable, Fragments, Index, Int32s, Int64s
from dataflow.index.progress import Progress
from dataflow.index.scan import scan_files

__all__ = ["build_index"]


def build_index(
    connector: Connector,
    listing: Listing,
    *,
    name: str = "source",
    persistent: bool = False,
    old: Index | None = None,
    progress: Progress | None = None,
) -> Index:
    """Scan the files of a listing in parallel into an index; nothing is cached.

    What `old` (of the same connector) knows of files that have not changed is taken over, which changes
    nothing in the result. `persistent` is for files that are told apart by name, size and time, unlike
    tables in memory.

    Raises:
        DataError: a file is wrong, or the files' columns do not fit each other.
        ConnectorError: the store cannot be read.
    """
    files = FileTable.of(listing.root, listing.files)
    places = np.full(len(files), -1, np.int64)
    if old is not None and connector.traits.scans == "file":
        places = places_in(old.files, files)
        places[~unchanged(files, old.files, places)] = -1
    missing = np.flatnonzero(places < 0)
    with progress or Progress(f"indexing {name}", bar=False) as shown:
        scans = scan_files(connector, listing.store, [listing.files[i] for i in missing], shown)
    pool = VariantPool(old.variants if old is not None else ())
    variant = np.zeros(len(files), np.int32)
    if connector.traits.scans == "listing":
        variant[:] = pool.number(scans[0])
        fragments = _of_listing(scans[0])
    else:
        variant[missing] = [pool.number(scan) for scan in scans]
        if old is not None:
            variant[places >= 0] = old.files.variant[places[places >= 0]]
        fragments = _of_files(scans, places, old)
    source = Source(name, connector, listing.store, persistent)
    return assemble(source, replace(files, variant=variant), fragments, pool.known)


def _of_listing(scan: Scan) -> Fragments:
    return Fragments.of(
        scan.file.astype(np.int32),
        scan.offset.astype(np.int64),
        scan.length.astype(np.int64),
        scan.rows.astype(np.int64),
    )


def _of_files(scans: list[Scan], places: Int64s, old: Index | None) -> Fragments:
    """The fragments of all files in their order: from `scans` where places are negative, else from `old`."""
    kept = places >= 0
    count = np.zeros(len(places), np.int64)
    begin = np.zeros(len(places), np.int64)
    parts = {name: [getattr(scan, name) for scan in scans] for name in ("offset", "length", "rows")}
    count[~kept] = [len(rows) for rows in parts["rows"]]
    before = 0
    if old is not None:
        before = len(old.fragments)
        begin[kept], count[kept] = old.fragments.of_files(places[kept])
        for name, arrays in parts.items():
            arrays.insert(0, getattr(old.fragments, name))
    begin[~kept] = before + np.cumsum(count[~kept]) - count[~kept]
    picked = gather(begin, count)
    columns = [np.concatenate([np.zeros(0, np.int64), *arrays])[picked] for arrays in parts.values()]
    file: Int32s = np.repeat(np.arange(len(places), dtype=np.int32), count)
    return Fragments.of(file, *columns)
