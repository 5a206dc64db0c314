"""Memory of whole batches that the ranges of a window fill side by side.

A batch of 64 images of 224 x 224 in float32 has 38 MB: to copy it out of several ranges costs a tenth of making it.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from connectors.tensors import empty_rows
from dataflow.execute.buffers import BufferPool
from dataflow.execute.due import Due

__all__ = ["Slot", "Slots"]

# Memory for the rows of one range by column: arrays (rows, *shape).
Slot = Mapping[str, npt.NDArray[np.generic]]


@dataclass(slots=True)
class _Open:
    columns: dict[str, npt.NDArray[np.generic]]
    left: int


class Slots:
    """The batches that rows of one window go to; thread-safe.

    Args:
        kinds: the types of the columns that are written there, which are dense.
        due: which rows of the window go to one batch.
        first, stop: the rows of the window that are wanted.
    """

    def __init__(
        self, memory: BufferPool, kinds: Mapping[str, pa.DataType], due: Due, first: int, stop: int
    ) -> None:
        self._memory, self._kinds, self._due = memory, kinds, due
        self._first, self._stop = first, stop
        self._open: dict[int, _Open] = {}
        self._lock = threading.Lock()

    def slot(self, start: int, stop: int) -> Slot:
        """Memory for these rows, which go to one batch; asked for once."""
        batch = self._due.batch(start)
        begin, end = max(batch.start, self._first), min(batch.stop, self._stop)
        with self._lock:
            found = self._open.get(begin)
            if found is None:
                found = self._open[begin] = _Open(self._batch(end - begin), end - begin)
            found.left -= stop - start
            if not found.left:
                del self._open[begin]
        return {name: column[start - begin : stop - begin] for name, column in found.columns.items()}

    def _batch(self, rows: int) -> dict[str, npt.NDArray[np.generic]]:
        return {name: empty_rows(rows, kind, self._memory.empty) for name, kind in self._kinds.items()}
