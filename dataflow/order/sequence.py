"""The row sequence of one pass, and where each lane's windows begin in it.

Three kinds: file order, fragments permuted around a window, single rows permuted. Each answers the same
questions, by kept-row numbers of the sequence.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from dataflow.order.borders import Borders, Grid, Starts
from dataflow.order.permute import FEISTEL_ABOVE, feistel, permutation
from dataflow.order.philox import Key, Turn, key_of
from dataflow.order.slices import Units, group_ids, units_of
from dataflow.order.stream import Stream
from dataflow.order.windows import Window, file_window, permuted_window, scattered_window, spans_of

__all__ = ["FileOrder", "FullOrder", "PassOrder", "Runs", "WindowOrder", "pass_orders"]

Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]

_FRAGMENTS = "shuffle.fragments"
_ROWS = "shuffle.rows"
# Units whose window ends are looked up at once: few enough that Python numbers for them are small change.
_CHASE = 1 << 16


class Runs(NamedTuple):
    """Runs of source rows lo..hi, each within one piece, in sequence order."""

    piece: Int64s
    lo: Int64s
    hi: Int64s


class PassOrder(Protocol):
    """The order of one pass. `start` and `stop` are kept-row numbers of its sequence."""

    def borders(self, start: int, stop: int, lane: int, lanes: int) -> Borders:
        """The windows of lane `lane`, whose run is rows start..stop."""

    def window(self, first: int, start: int, stop: int) -> Window:
        """The window that is rows start..stop, `first` rows behind the lane's start."""


class _Sequence:
    """Units in an order, addressed by kept-row numbers."""

    def __init__(self, stream: Stream, units: Units, order: Int32s | Int64s | None) -> None:
        self._stream, self._units, self._order = stream, units, order
        if order is None and units.piece is None:
            self.rows = stream.starts
        else:
            self.rows = self._summed(stream.kept(units.piece, units.lo, units.hi))

    def _summed(self, length: Int64s) -> Int64s:
        out = np.zeros(len(length) + 1, np.int64)
        np.cumsum(length if self._order is None else length[self._order], out=out[1:])
        return out

    @cached_property
    def source(self) -> Int64s:
        """Source rows in front of each unit of the sequence."""
        return self.rows if self._stream.bits is None else self._summed(self._units.hi - self._units.lo)

    def _unit(self, start: int, stop: int) -> Int64s:
        """The units start..stop of the sequence."""
        return np.arange(start, stop) if self._order is None else self._order[start:stop].astype(np.int64)

    def _piece(self, unit: Int64s) -> Int64s:
        return unit if self._units.piece is None else self._units.piece[unit].astype(np.int64)

    def cut(self, row: int) -> tuple[int, int]:
        """The unit that holds a kept row, and how many of its source rows lie in front of that row."""
        at = int(np.searchsorted(self.rows, row, "right")) - 1
        inside = row - int(self.rows[at])
        if not inside:
            return at, 0
        unit = self._unit(at, at + 1)
        lo = self._units.lo[unit]
        return at, int(self._stream.row_at(self._piece(unit), lo, np.array([inside]))[0] - lo[0])

    def runs(self, start: int, stop: int) -> Runs:
        """The runs of kept rows start..stop."""
        first, head = self.cut(start)
        last, tail = self.cut(stop)
        unit = self._unit(first, last + (tail > 0))
        piece = self._piece(unit)
        lo, hi = self._units.lo[unit], self._units.hi[unit]
        if tail:
            hi[-1] = lo[-1] + tail
        if head:
            lo[0] += head
        return Runs(piece, lo, hi)


class FileOrder:
    """No shuffle: file order, in windows of a fixed number of rows."""

    def __init__(self, stream: Stream, chunk_rows: int) -> None:
        self._stream, self._chunk_rows = stream, chunk_rows
        self._sequence = _Sequence(stream, Units(None, stream.lo, stream.hi, None), None)

    def borders(self, start: int, stop: int, lane: int, lanes: int) -> Borders:
        """Every `chunk_rows` rows from the lane's start."""
        return Grid(stop - start, self._chunk_rows)

    def window(self, first: int, start: int, stop: int) -> Window:
        """Rows as they lie, of contiguous parts of fragments."""
        spans = spans_of(self._stream, *self._sequence.runs(start, stop))
        return file_window(self._stream, first, spans, start, stop)


class WindowOrder:
    """Fragments permuted; windows of whole fragments, and their rows permuted."""

    def __init__(self, stream: Stream, window: int, units: Units, fragments: Key, rows: Key) -> None:
        self._stream, self._window, self._key = stream, window, rows
        order = permutation(fragments, group_ids(stream, units))
        if units.groups is not None:
            first = units.groups[order]
            size = units.groups[order + 1] - first
            behind = np.cumsum(size)
            order = np.repeat(first - behind + size, size) + np.arange(behind[-1])
        # Half the memory for the one array that is read at random.
        small = order.astype(np.int32) if len(order) < 1 << 31 else order
        self._sequence = _Sequence(stream, units, small)

    def borders(self, start: int, stop: int, lane: int, lanes: int) -> Borders:
        """As many whole fragments as fit in the window, at least one; the first has (lane + 1) / lanes."""
        if start == stop:
            return Starts(np.zeros(1, np.int64))
        first, head = self._sequence.cut(start)
        last, tail = self._sequence.cut(stop)
        end = last + (tail > 0)
        source = self._sequence.source
        begin = int(source[first]) + head
        bound = int(source[last]) + tail
        room = begin + self._window * (lane + 1) // lanes
        opens = [np.array([first])]
        at = _fitting(source, first, end, bound, room)
        while at < end:
            block = min(at + _CHASE, end)
            begin, found = at, []
            after = _all_fitting(source, begin, block, end, bound, self._window).tolist()
            while at < block:
                found.append(at)
                at = after[at - begin]
            opens.append(np.array(found))
        rows = self._sequence.rows[np.concatenate([*opens, np.array([end])])] - start
        rows[0], rows[-1] = 0, stop - start
        return Starts(rows)

    def window(self, first: int, start: int, stop: int) -> Window:
        """Rows permuted by their sample ids, of whole fragments and slices cut where the lane begins and ends."""
        return permuted_window(self._stream, first, self._sequence.runs(start, stop), self._key)


class FullOrder:
    """Single rows permuted over the whole pass, in windows of a fixed number of rows."""

    def __init__(self, stream: Stream, chunk_rows: int, key: Key) -> None:
        self._stream, self._chunk_rows, self._key = stream, chunk_rows, key
        self._order: Int64s | None = None
        if stream.n <= FEISTEL_ABOVE:
            self._order = permutation(key, stream.ids_of(*stream.rows_at(np.arange(stream.n))))

    def borders(self, start: int, stop: int, lane: int, lanes: int) -> Borders:
        """Every `chunk_rows` rows from the lane's start."""
        return Grid(stop - start, self._chunk_rows)

    def window(self, first: int, start: int, stop: int) -> Window:
        """Rows sorted by where they lie, and the order that undoes it."""
        positions = (
            feistel(self._key, self._stream.n, np.arange(start, stop))
            if self._order is None
            else self._order[start:stop]
        )
        return scattered_window(self._stream, first, positions)


def pass_orders(
    stream: Stream, seed: int, turn: Callable[[int], Turn], chunk_rows: int
) -> Callable[[int], PassOrder]:
    """What makes the order of a pass from its number; what all passes share is worked out once."""
    if stream.window is None:
        plain = FileOrder(stream, chunk_rows)
        return lambda number: plain
    if stream.window == "full":
        return lambda number: FullOrder(stream, chunk_rows, key_of(seed, turn(number), _FRAGMENTS))
    window = stream.window
    units = units_of(stream, window)

    def windowed(number: int) -> PassOrder:
        keys = (key_of(seed, turn(number), what) for what in (_FRAGMENTS, _ROWS))
        return WindowOrder(stream, window, units, *keys)

    return windowed


def _fitting(source: Int64s, at: int, end: int, bound: int, room: int) -> int:
    """The unit behind the window that begins with unit `at` and may reach source row `room`."""
    if room >= bound:
        return end
    return min(max(at + 1, int(np.searchsorted(source, room, "right")) - 1), end)


def _all_fitting(source: Int64s, start: int, stop: int, end: int, bound: int, window: int) -> Int64s:
    """For windows that begin with each of the units start..stop, the unit behind."""
    room = source[start:stop] + window
    after = np.searchsorted(source[start : end + 1], room, "right") - 1 + start
    after = np.minimum(np.maximum(after, np.arange(start + 1, stop + 1)), end)
    after[room >= bound] = end
    return after
