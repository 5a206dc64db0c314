"""Rows in delivery order, on their way from the reader through the operators to a batch."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from connectors.conform import rows_alone
from connectors.tensors import to_arrow

__all__ = ["BadSample", "Block", "Column", "as_arrow", "concat_blocks", "joined", "memory_axes", "own_arrays"]

Int64s = npt.NDArray[np.int64]
Column = npt.NDArray[np.generic] | Any


@dataclass(frozen=True, slots=True)
class BadSample:
    """A row that an operator or a reader could not make: it is no longer in its block."""

    origin: int  # row of the window, in delivery order
    id: int  # sample id
    operator: str
    error: Exception
    among: int = 1  # the fault is that of one of so many rows of a block, of which it is not known which


@dataclass(frozen=True, slots=True)
class Block:
    """Rows of one window in delivery order.

    `columns` maps a name to an array of `rows` entries: NumPy (rows, *shape) for dense columns without
    nulls, Arrow for all else. `ids` is int64 (rows,), or (rows, k) behind `zip` and `flat_map`. `origin` is
    int64 (rows,), ascending: which row of the window each row came from; two rows of one origin are the
    outputs of one `flat_map` call, in order. `owned` says that the dense columns are writable memory that
    nobody else will read. `permuted_by` is 0; of a window whose outputs were permuted, where origins are all 0, it
    is the number of columns of `ids` by which they were: sub-numbers from further on came later.
    """

    columns: Mapping[str, Column]
    ids: Int64s
    origin: Int64s
    owned: bool = False
    bad: tuple[BadSample, ...] = field(default=())
    permuted_by: int = 0

    @property
    def rows(self) -> int:
        return len(self.origin)

    @property
    def nbytes(self) -> int:
        return sum(column.nbytes for column in self.columns.values())

    def with_columns(self, columns: Mapping[str, Column], *, owned: bool = False) -> Block:
        """The same rows with other columns."""
        return replace(self, columns=columns, owned=owned)

    def slice(self, start: int, stop: int) -> Block:
        """Rows `start` to `stop`, without a copy; bad samples stay with the whole block."""
        cut = {name: column[start:stop] for name, column in self.columns.items()}
        # Not by `replace`, which takes twice as long: this is done once a batch.
        return Block(cut, self.ids[start:stop], self.origin[start:stop], self.owned, (), self.permuted_by)

    def take(self, index: Int64s) -> Block:
        """The rows at `index`, copied."""
        columns = {
            name: column[index] if isinstance(column, np.ndarray) else column.take(index)
            for name, column in self.columns.items()
        }
        return replace(self, columns=columns, ids=self.ids[index], origin=self.origin[index], owned=True)

    def without(self, bad: Sequence[BadSample], keep: npt.NDArray[np.bool_]) -> Block:
        """The rows where `keep` holds; `bad` says what became of the others."""
        return replace(self.take(np.flatnonzero(keep)), bad=(*self.bad, *bad))

    def record_batch(self) -> pa.RecordBatch:
        """The columns as Arrow, without a copy for dense columns."""
        if not self.columns:
            return rows_alone(self.rows)
        arrays = [as_arrow(column) for column in self.columns.values()]
        return pa.RecordBatch.from_arrays(arrays, names=list(self.columns))


def as_arrow(column: Column) -> pa.Array[Any]:
    """A column as an Arrow array; dense memory is shared."""
    return to_arrow(column) if isinstance(column, np.ndarray) else column


def own_arrays(columns: Mapping[str, Column], *, owned: bool, but: Collection[str] = ()) -> dict[str, Column]:
    """The columns, of which dense ones are copied where they are not `owned`; those named in `but` are left out."""
    return {
        name: values if owned or not isinstance(values, np.ndarray) else values.copy(order="K")
        for name, values in columns.items()
        if name not in but
    }


def joined(parts: Sequence[Column], *, in_place: bool = False) -> Column:
    """The rows of several columns of one type, one behind the other; Arrow where one of them is.

    `in_place`: dense ones that lie side by side in memory already are not copied.
    """
    kinds = [part.type for part in parts if not isinstance(part, np.ndarray)]
    if not kinds:
        whole = _side_by_side(parts) if in_place else None
        return np.concatenate(parts) if whole is None else whole
    # A dense column has forgotten which of Arrow's types for its shape it had: the others know.
    arrays = [to_arrow(part, kinds[0]) if isinstance(part, np.ndarray) else part for part in parts]
    return pa.concat_arrays(arrays)


def _side_by_side(parts: Sequence[npt.NDArray[Any]]) -> npt.NDArray[Any] | None:
    """All parts as one view, where each begins in memory where the one before ends; else None."""
    base = parts[0].base
    if base is None or not isinstance(base, np.ndarray) or base.ndim != 1 or base.dtype != parts[0].dtype:
        return None
    axes = memory_axes(parts[0])
    at = first = parts[0].ctypes.data
    for part in parts:
        if part.base is not base or part.ctypes.data != at or not part.transpose(axes).flags.c_contiguous:
            return None
        at += part.nbytes
    start = (first - base.ctypes.data) // base.itemsize
    stop = start + (at - first) // base.itemsize
    rows = base[start:stop].reshape(-1, *(parts[0].shape[axis] for axis in axes[1:]))
    return rows.transpose(np.argsort(axes))


def memory_axes(column: npt.NDArray[Any]) -> list[int]:
    """The axes of a dense column as they lie in memory: the rows, and then what is furthest apart first."""
    return [0, *sorted(range(1, column.ndim), key=lambda axis: -column.strides[axis])]


def concat_blocks(blocks: Sequence[Block]) -> Block:
    """The rows of several blocks, one after the other; all have the same columns and types."""
    if len(blocks) == 1:
        return blocks[0]
    # What somebody else will read may not become ours by lying side by side.
    owned = all(block.owned for block in blocks)
    columns = {
        name: joined([block.columns[name] for block in blocks], in_place=owned) for name in blocks[0].columns
    }
    return Block(
        columns,
        np.concatenate([block.ids for block in blocks]),
        np.concatenate([block.origin for block in blocks]),
        owned=True,
        bad=tuple(bad for block in blocks for bad in block.bad),
        permuted_by=max(block.permuted_by for block in blocks),
    )
