"""`Pieces`: what arrived of one column that stays Arrow, and how it becomes one array."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from connectors.arrow_types import Arrow
from connectors.tensors import to_arrow
from dataflow.execute.arrow_use import ArrowUse
from dataflow.execute.places import Places

__all__ = ["Pieces", "Rows"]

Int64s = npt.NDArray[np.int64]
Rows: TypeAlias = slice | Int64s


@dataclass
class Pieces:
    """Arrays in the order in which they arrived, and which read rows theirs are."""

    arrays: list[Arrow] = field(default_factory=list)
    rows: list[Rows] = field(default_factory=list)

    def arranged(self, places: Places, kind: Arrow, arrow: ArrowUse) -> Arrow:
        """The arrays' rows in delivery order; a row that did not arrive (it was bad) is null.

        The arrays are let go of as soon as they are one: there are never more than two copies of a column.
        """
        order, rows = places.order, places.rows
        if not self.arrays:
            return pa.nulls(rows, kind)
        # Spans arrive in any order.
        firsts = [_first(some) for some in self.rows]
        sequence = sorted(range(len(firsts)), key=firsts.__getitem__)
        whole = _joined([self.arrays[number] for number in sequence])
        self.arrays.clear()
        arrow.took(whole.nbytes)
        if len(whole) == rows:
            out = whole if order is None else whole.take(pa.array(order))
            del whole
            arrow.took(out.nbytes)
            return out
        index = np.full(rows, -1, np.int64)
        index[np.concatenate([_numbers(self.rows[number]) for number in sequence])] = np.arange(len(whole))
        index = index if order is None else index[order]
        return whole.take(pa.array(index, mask=index < 0))

    def laid_over(self, dense: npt.NDArray[np.generic], places: Sequence[Rows], kind: pa.DataType) -> Arrow:
        """`dense` as Arrow, with the rows of the arrays at `places`."""
        index = np.arange(len(dense))
        to = np.concatenate([_numbers(some) for some in places])
        index[to] = len(dense) + np.arange(len(to))
        return pa.concat_arrays([to_arrow(dense, kind), *self.arrays]).take(pa.array(index))


def _first(rows: Rows) -> int:
    if isinstance(rows, slice):
        return int(rows.start)
    return int(rows[0]) if len(rows) else -1


def _numbers(rows: Rows) -> Int64s:
    return np.arange(rows.start, rows.stop) if isinstance(rows, slice) else rows


def _joined(arrays: Sequence[Arrow]) -> Arrow:
    """One array; 32-bit offsets become 64-bit ones where 2 GB do not fit them."""
    kind = arrays[0].type
    wider = {pa.string(): pa.large_string(), pa.binary(): pa.large_binary()}.get(kind)
    if wider is not None and sum(array.nbytes for array in arrays) > (1 << 31) - (1 << 20):
        arrays = [array.cast(wider) for array in arrays]
    if isinstance(kind, pa.DictionaryType):
        # A dictionary of its own in every fragment: one for all.
        unified = pa.chunked_array(arrays).unify_dictionaries()
        return pa.concat_arrays(unified.chunks)
    return arrays[0] if len(arrays) == 1 else pa.concat_arrays(arrays)
