"""`Arrivals`: the columns of a window while its rows arrive, then in delivery order.

Dense columns without nulls go into reused buffers. Wide rows are written to their places as they are read: one
copy from what the connector decoded. Narrow ones are kept as they were read and put in order column by column
when all are there: random reads within one column of a window mostly hit the cache, where writes of 8 bytes to
random places of all columns do not (47 and 105 ns for a row of 8 numbers, 350,000 rows a window).
Strings, lists and columns with nulls stay Arrow and are brought into order by one `take`.
"""

from __future__ import annotations

import threading
from math import prod

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from connectors.arrow_types import Arrow
from connectors.tensors import has_nulls, to_numpy
from dataflow.execute.arrow_use import ArrowUse
from dataflow.execute.buffers import BufferPool
from dataflow.execute.dense import dense_shape
from dataflow.execute.pieces import Pieces, Rows
from dataflow.execute.places import Places
from dataflow.graph.block import Column

__all__ = ["Arrivals"]

# A cache line: what a random read fetches in any case.
_NARROW_BYTES = 64

Int64s = npt.NDArray[np.int64]


class Arrivals:
    """The columns of `schema`; `put` may run on several threads at once.

    Args:
        arrow: is told what Arrow takes here.
    """

    def __init__(self, schema: pa.Schema, places: Places, pool: BufferPool, arrow: ArrowUse) -> None:
        self._schema, self._places, self._pool, self._arrow = schema, places, pool, arrow
        self._lock = threading.Lock()
        self._dense: dict[str, npt.NDArray[np.generic]] = {}
        self._scattered: set[str] = set()  # dense columns whose rows are written where they are delivered
        self._pieces: dict[str, Pieces] = {}
        self._mixed: dict[str, Pieces] = {}  # those parts of dense columns that had nulls
        for column in schema:
            dense = dense_shape(column.type)
            if dense is None:
                self._pieces[column.name] = Pieces()
                continue
            self._dense[column.name] = pool.empty((places.rows, *dense[1]), dense[0])
            if places.order is not None and dense[0].itemsize * prod(dense[1]) > _NARROW_BYTES:
                self._scattered.add(column.name)
        self.keeps_arrow = bool(self._pieces)  # the size of some columns is known only when they are there

    @property
    def copies_arrow(self) -> bool:
        """Whether `in_order` holds a column once more while it puts it in order."""
        return bool(self._pieces or self._mixed)

    def put(self, name: str, array: Arrow, index: Int64s | None, rows: Rows) -> int:
        """Keep what arrived of one column: the entries `index` of `array` (None for all), which are the read `rows`.

        Returns the bytes that are kept of a column that stays Arrow, 0 of one that is dense.
        """
        if name not in self._dense:
            kept = array if index is None else array.take(pa.array(index))
            self._keep(self._pieces[name], kept, rows)
            return int(kept.nbytes)
        taken = array if index is None or not has_nulls(array) else array.take(pa.array(index))
        if has_nulls(taken):
            with self._lock:
                pieces = self._mixed.setdefault(name, Pieces())
            self._keep(pieces, taken, rows)
            return 0
        values = to_numpy(taken)
        if index is not None and taken is array:
            values = values[index]
        if name in self._scattered:
            _scatter(values, self._places.to[rows], self._dense[name])
        else:
            self._dense[name][rows] = values
        return 0

    def _keep(self, pieces: Pieces, array: Arrow, rows: Rows) -> None:
        with self._lock:
            pieces.arrays.append(array)
            pieces.rows.append(rows)

    def in_order(self, name: str, kind: pa.DataType) -> Column:
        """A column in delivery order, once, when all has arrived; what it was read into is free for the next one."""
        if name in self._pieces:
            return self._pieces.pop(name).arranged(self._places, kind, self._arrow)
        dense = self._dense.pop(name)
        order = None if name in self._scattered else self._places.order
        if name in self._mixed:
            mixed = self._mixed.pop(name)
            to = [self._places.to[rows] for rows in mixed.rows] if name in self._scattered else mixed.rows
            whole = mixed.laid_over(dense, to, kind)
            return whole if order is None else whole.take(pa.array(order))
        if order is None:
            return dense
        out = self._pool.empty(dense.shape, dense.dtype)
        # Indices are in range; without "clip" NumPy takes through a copy.
        np.take(dense, order, axis=0, out=out, mode="clip")
        return out


def _scatter(values: npt.NDArray[np.generic], to: Int64s, out: npt.NDArray[np.generic]) -> None:
    """Write rows to the places `to` of `out`.

    NumPy sets single values of any size in two thirds of the time that it sets rows of an array: 0.1 us a row less.
    """
    row = np.dtype(f"V{out.dtype.itemsize * prod(out.shape[1:])}")
    whole = np.ascontiguousarray(values)
    out.reshape(len(out), -1).view(row)[to, 0] = whole.reshape(len(whole), -1).view(row)[:, 0]
