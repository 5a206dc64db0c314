"""`scan_files`: every file scanned once, many at a time."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait

import numpy as np

from connectors.contract import Connector, FileInfo, Scan
from connectors.stop import end_waits_at
from connectors.store import Store
from dataflow.cores import available_cores
from dataflow.errors import InternalError
from dataflow.index.progress import Progress

__all__ = ["scan_files"]

_TICK_S = 0.5
_REMOTE_THREADS = 32
# One future per file would cost more than a footer; more files than this per future make the bar jump.
_MOST_FILES_A_TASK = 64


def scan_files(
    connector: Connector, store: Store, files: Sequence[FileInfo], progress: Progress
) -> list[Scan]:
    """Scan files in threads; one `Scan` a file, or one for all where `Traits.scans` is "listing".

    After a failure nothing new is begun, and the error of the first failed file is raised.

    Raises:
        DataError, ConnectorError: as `Connector.scan`.
        InternalError: the connector broke its contract.
    """
    groups = _groups(connector, store, files)
    whole_files = connector.traits.counts_need_scan

    def weight(group: list[FileInfo]) -> int:
        return sum(f.size for f in group) if whole_files else len(group)

    progress.begin(sum(map(weight, groups)))
    scans: list[list[Scan]] = [[] for _ in groups]
    stop = threading.Event()
    pool = ThreadPoolExecutor(
        _threads(store), thread_name_prefix="dataflow-scan", initializer=end_waits_at, initargs=(stop,)
    )
    try:
        running = {pool.submit(_scan_group, connector, store, g): n for n, g in enumerate(groups)}
        pending: set[Future[list[Scan]]] = set(running)
        while pending:
            done, pending = wait(pending, timeout=_TICK_S, return_when=FIRST_COMPLETED)
            for future in sorted(done, key=running.__getitem__):
                number = running[future]
                scans[number] = future.result()
                progress.advance(weight(groups[number]))
            progress.advance()
    finally:
        stop.set()
        pool.shutdown(cancel_futures=True)
    return [scan for group in scans for scan in group]


def _groups(connector: Connector, store: Store, files: Sequence[FileInfo]) -> list[list[FileInfo]]:
    """The files of each task."""
    if connector.traits.scans == "listing":
        return [list(files)]
    size = min(_MOST_FILES_A_TASK, max(1, len(files) // (8 * _threads(store))))
    return [list(files[i : i + size]) for i in range(0, len(files), size)]


def _threads(store: Store) -> int:
    return min(_REMOTE_THREADS, 2 * available_cores()) if store.is_local else _REMOTE_THREADS


def _scan_group(connector: Connector, store: Store, files: list[FileInfo]) -> list[Scan]:
    if connector.traits.scans == "listing":
        return [_checked(connector, connector.scan(store, files), files)]
    return [_checked(connector, connector.scan(store, [file]), [file]) for file in files]


def _checked(connector: Connector, scan: Scan, files: list[FileInfo]) -> Scan:
    arrays = (scan.file, scan.offset, scan.length, scan.rows)
    equal = len({len(a) for a in arrays}) == 1
    if not equal or (len(scan.file) and not 0 <= scan.file.min() <= scan.file.max() < len(files)):
        raise _broken(connector, files, "fragment arrays of unequal length or file numbers out of range")
    if len(scan.rows) and (scan.rows.min() < 0 or np.diff(scan.file).min(initial=0) < 0):
        raise _broken(connector, files, "negative row counts or files out of order")
    return scan


def _broken(connector: Connector, files: list[FileInfo], what: str) -> InternalError:
    first = files[0].path if files else "no file"
    return InternalError(
        f"the scan of {first} by connector {connector.name!r} gave {what}.",
        hint="report this to the author of the connector",
    )
