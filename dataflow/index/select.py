"""`bits`: which rows a deterministic filter keeps, computed once and cached as a bitmap."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np
import numpy.typing as npt

from connectors.stop import end_waits_at
from dataflow.cores import available_cores
from dataflow.errors import InternalError
from dataflow.index.cache import Place, cache_folder, key_of
from dataflow.index.codec import BrokenFile, decode_bits, encode_bits
from dataflow.index.index import Index
from dataflow.index.once import made_once
from dataflow.index.progress import Progress

__all__ = ["bits"]

Bitmap = npt.NDArray[np.uint8]
Keep = Callable[[int], npt.NDArray[np.bool_]]

# A task for a fragment of a few rows would cost more than the fragment.
_TASK_ROWS = 65_536


def bits(
    index: Index, key: str, compute: Keep, *, threads: int | None = None, progress: bool = True
) -> Bitmap:
    """Which rows are kept: uint8[ceil(rows / 8)]; row i is bit `i % 8`, the lowest first, of byte `i // 8`.

    `compute(k)` gives bool[rows of fragment k]; it is called from threads. `key` is a text for everything
    that decides its result beside the data. The bitmap of a persistent index is cached, read-only and memory
    mapped; one process of this node makes it while the others wait.

    Raises:
        InternalError: `compute` gave another shape or dtype; its own errors are passed on.
    """

    def make() -> Bitmap:
        with Progress(f"Filtering {index.name}", bar=progress) as shown:
            return _computed(index, compute, threads or available_cores(), shown)

    if not index.persistent:
        return make()
    place = Place.local(cache_folder() / "select" / f"{key_of(index.stamp, key)}.arrow")

    def find() -> Bitmap | None:
        buffer = place.read()
        try:
            return None if buffer is None else decode_bits(buffer, index.rows)
        except BrokenFile:
            return None

    def make_and_keep() -> Bitmap:
        made = make()
        kept = place.write(encode_bits(made, index.rows, key))
        found = find() if kept else None
        return made if found is None else found

    return made_once(key_of(index.stamp, key), f"a filter of {index.name}", find, make_and_keep)


def _computed(index: Index, compute: Keep, threads: int, progress: Progress) -> Bitmap:
    bitmap = np.zeros((index.rows + 7) // 8, np.uint8)
    progress.begin(index.rows)
    running: deque[tuple[int, int, Future[Bitmap]]] = deque()
    stop = threading.Event()
    pool = ThreadPoolExecutor(
        threads, thread_name_prefix="dataflow-filter", initializer=end_waits_at, initargs=(stop,)
    )

    def take_first() -> None:
        first, rows, future = running.popleft()
        part = future.result()
        # Neighbours share a byte where they meet, hence "or".
        bitmap[first // 8 : first // 8 + len(part)] |= part
        progress.advance(rows)

    try:
        for begin, end in _groups(index):
            first, last = int(index.starts[begin]), int(index.starts[end])
            running.append((first, last - first, pool.submit(_part, index, compute, begin, end)))
            if len(running) > 4 * threads:
                take_first()
        while running:
            take_first()
    finally:
        stop.set()
        pool.shutdown(cancel_futures=True)
    bitmap.flags.writeable = False
    return bitmap


def _groups(index: Index) -> Iterator[tuple[int, int]]:
    begin = 0
    while begin < len(index.fragments):
        after = int(np.searchsorted(index.starts, index.starts[begin] + _TASK_ROWS, side="left"))
        end = min(max(after, begin + 1), len(index.fragments))
        yield begin, end
        begin = end


def _part(index: Index, compute: Keep, begin: int, end: int) -> Bitmap:
    """The packed bits of some fragments, from the byte on in which they begin."""
    first = int(index.starts[begin])
    pad = first % 8
    kept = np.zeros(pad + int(index.starts[end]) - first, np.bool_)
    for number in range(begin, end):
        keep = compute(number)
        place = slice(pad + int(index.starts[number]) - first, pad + int(index.starts[number + 1]) - first)
        if keep.dtype != np.bool_ or keep.shape != (place.stop - place.start,):
            raise InternalError(
                f"a filter gave {keep.dtype}{list(keep.shape)} for fragment {number} of {index.name!r}, "
                f"not bool[{place.stop - place.start}]."
            )
        kept[place] = keep
    return np.packbits(kept, bitorder="little")
