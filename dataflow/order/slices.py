"""What a shuffle permutes: whole pieces, and slices of those that are longer than the window."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dataflow.order.stream import Stream

__all__ = ["Units", "group_ids", "units_of"]

Bools = npt.NDArray[np.bool_]
Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]

_BLOCK = 1 << 16


class Units(NamedTuple):
    """What is permuted, in file order: slices of pieces, of which a group stays together.

    `piece` None: unit i is all of piece i. `groups` (groups + 1) None: every unit is a group.
    """

    piece: Int32s | None
    lo: Int64s
    hi: Int64s
    groups: Int64s | None


def units_of(stream: Stream, window: int) -> Units:
    """Cut pieces longer than `window` source rows into the fewest slices, equal to one row.

    Slices that keep no row are left out. They are groups of their own where the source reads row ranges
    cheaply, else those of a piece are one group.
    """
    blocks = [slice(at, at + _BLOCK) for at in range(0, len(stream.lo), _BLOCK)]
    total = sum(int(_slices(stream.lo[b], stream.hi[b], window).sum()) for b in blocks)
    if total == len(stream.lo):
        return Units(None, stream.lo, stream.hi, None)
    piece, lo, hi = np.empty(total, np.int32), np.empty(total, np.int64), np.empty(total, np.int64)
    end = 0
    # In blocks, so that ten million fragments with a long one among them stay far below a gigabyte.
    for block in blocks:
        parts = _sliced(stream, window, block)
        start, end = end, end + len(parts[0])
        piece[start:end], lo[start:end], hi[start:end] = parts
    piece, lo, hi = piece[:end], lo[:end], hi[:end]
    alone = _row_ranges(stream)
    if alone.all():
        return Units(piece, lo, hi, None)
    opens = alone[stream.leaf[piece]]
    opens |= np.diff(piece, prepend=-1) != 0
    return Units(piece, lo, hi, np.append(np.flatnonzero(opens), end))


def _slices(lo: Int64s, hi: Int64s, window: int) -> Int64s:
    return -(-(hi - lo) // window)


def _sliced(stream: Stream, window: int, block: slice) -> tuple[Int64s, Int64s, Int64s]:
    """The piece, lo and hi of the slices of a block of pieces, those that keep a row."""
    low, high = stream.lo[block], stream.hi[block]
    slices = _slices(low, high, window)
    behind = np.cumsum(slices)
    within = np.arange(behind[-1]) - np.repeat(behind - slices, slices)
    whole, rest = (np.repeat(part, slices) for part in np.divmod(high - low, slices))
    # length * i // slices in two parts, whose products stay far below 2**63.
    lo = np.repeat(low, slices) + whole * within + rest * within // np.repeat(slices, slices)
    hi = np.append(lo[1:], 0)
    hi[behind - 1] = high
    piece = np.repeat(np.arange(block.start, block.start + len(slices)), slices)
    if stream.bits is None:
        return piece, lo, hi
    some = np.flatnonzero(stream.kept(piece, lo, hi))
    return piece[some], lo[some], hi[some]


def _row_ranges(stream: Stream) -> Bools:
    return np.array([leaf.row_ranges for leaf in stream.leaves])


def group_ids(stream: Stream, units: Units) -> Int64s:
    """The sample id of the first source row, kept or not, of every group: a slice, or a whole piece."""
    if units.piece is None:
        ids = stream.numbers[stream.leaf]
        ids += units.lo
        return ids
    piece, lo = units.piece, units.lo
    if units.groups is not None:
        first = units.groups[:-1]
        piece, lo = piece[first], lo[first]
        together = np.flatnonzero(~_row_ranges(stream)[stream.leaf[piece]])
        lo[together] = stream.lo[piece[together]]
    ids = stream.numbers[stream.leaf[piece]]
    ids += lo
    return ids
