"""Windows: which rows of which fragments are in memory together, and in which order they are delivered."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dataflow.order.permute import permutation
from dataflow.order.philox import Key
from dataflow.order.stream import Stream

__all__ = [
    "Located",
    "Span",
    "Window",
    "file_window",
    "ids",
    "locate",
    "permuted_window",
    "scattered_window",
    "span_ids",
    "spans_of",
]

Int64s = npt.NDArray[np.int64]


class Span(NamedTuple):
    """Source rows `lo` to `hi` of one fragment of `stream.leaves[leaf]`, both counted in the whole source.

    `rows` are the source rows wanted of them, ascending; None where all are.
    """

    leaf: int
    fragment: int
    lo: int
    hi: int
    rows: Int64s | None

    @property
    def wanted(self) -> int:
        """How many rows are wanted."""
        return self.hi - self.lo if self.rows is None else len(self.rows)


class Window(NamedTuple):
    """Rows of one lane and pass that are permuted together.

    The wanted rows of the spans one behind the other are the *concatenation*; indexed by `order` (int64,
    (rows,); None: as it is) it is what is delivered. `first` is the row of the lane's pass at which it
    begins. `positions` (int64, (rows,), in concatenation order; only of a zip) say where the other inputs'
    rows are. `own` are the `span_ids` of the spans where the order took them to be worked out.
    """

    first: int
    rows: int
    spans: tuple[Span, ...]
    order: Int64s | None
    positions: Int64s | None
    own: Int64s | None = None


class Located(NamedTuple):
    """Where rows lie: the concatenation of the spans' rows, indexed by `order` (None: as it is)."""

    spans: tuple[Span, ...]
    order: Int64s | None


def locate(stream: Stream, positions: Int64s) -> Located:
    """Where the rows at `positions` (int64, in file order, each below n) lie, one span a piece of a fragment.

    For a zip's further inputs: `locate(stream.others[i], window.positions)` has its rows in the order of the
    window's concatenation.
    """
    rising = len(positions) < 2 or bool((positions[1:] > positions[:-1]).all())
    if rising:
        return Located(_grouped(stream, positions), None)
    unique, order = np.unique(positions, return_inverse=True)
    return Located(_grouped(stream, unique), order)


def _grouped(stream: Stream, positions: Int64s) -> tuple[Span, ...]:
    """Rising positions as one span a piece."""
    if not len(positions):
        return ()
    piece, rows = stream.rows_at(positions)
    opens = np.flatnonzero(np.append(True, piece[1:] != piece[:-1]))
    stops = np.append(opens[1:], len(rows))
    lo, hi = rows[opens], rows[stops - 1] + 1
    return tuple(
        Span(*place, None if b - a == place[3] - place[2] else rows[a:b])
        for place, a, b in zip(
            _places(stream, piece[opens], lo, hi), opens.tolist(), stops.tolist(), strict=True
        )
    )


def spans_of(stream: Stream, piece: Int64s, lo: Int64s, hi: Int64s) -> tuple[Span, ...]:
    """The kept rows of runs of source rows, one span a run, its ends cut back to kept rows."""
    places = _places(stream, piece, lo, hi)
    if stream.bits is None:
        return tuple(Span(*place, None) for place in places)
    spans = []
    for number, (leaf, fragment, start, stop) in zip(piece.tolist(), places, strict=True):
        rows = stream.kept_rows(number, start, stop)
        if rows is None:
            spans.append(Span(leaf, fragment, start, stop, None))
        else:
            start, stop = int(rows[0]), int(rows[-1]) + 1
            spans.append(Span(leaf, fragment, start, stop, None if len(rows) == stop - start else rows))
    return tuple(spans)


def _places(stream: Stream, piece: Int64s, lo: Int64s, hi: Int64s) -> list[tuple[int, int, int, int]]:
    leaf = stream.leaf[piece]
    fragment = np.zeros(len(lo), np.int64)
    for number in np.unique(leaf).tolist():
        some = leaf == number
        fragment[some] = np.searchsorted(stream.leaves[number].starts, lo[some], "right") - 1
    return list(zip(leaf.tolist(), fragment.tolist(), lo.tolist(), hi.tolist(), strict=True))


def span_ids(stream: Stream, spans: tuple[Span, ...]) -> Int64s:
    """The sample ids (int64, (rows,)) of the spans' wanted rows, in concatenation order."""
    if not spans:
        return np.zeros(0, np.int64)
    number = stream.numbers[[s.leaf for s in spans]]
    if all(s.rows is None for s in spans):
        lo, hi = (np.array([s[i] for s in spans], np.int64) for i in (2, 3))
        return _counted(number + lo, hi - lo)
    rows = [np.arange(s.lo, s.hi) if s.rows is None else s.rows for s in spans]
    return np.concatenate(rows) + np.repeat(number, [s.wanted for s in spans])


def _counted(start: Int64s, count: Int64s) -> Int64s:
    """Runs of whole numbers, one behind the other."""
    some = count > 0
    start, count = start[some], count[some]
    if not len(count):
        return np.zeros(0, np.int64)
    # Steps of one, but for those from run to run: half the time of `np.repeat`.
    out = np.ones(int(count.sum()), np.int64)
    out[0] = start[0]
    out[np.cumsum(count[:-1])] = start[1:] - start[:-1] - count[:-1] + 1
    return np.cumsum(out, out=out)


def ids(stream: Stream, window: Window) -> Int64s:
    """The sample ids of a window in delivery order: int64 (rows,), or (rows, inputs) of a zip."""
    own = span_ids(stream, window.spans) if window.own is None else window.own
    if window.positions is not None:
        columns = [own]
        for other in stream.others:
            columns.append(other.ids_of(*other.rows_at(window.positions)))
        own = np.stack(columns, axis=1)
    return own if window.order is None else own[window.order]


def file_window(stream: Stream, first: int, spans: tuple[Span, ...], start: int, stop: int) -> Window:
    """The window that is positions start..stop, as they lie."""
    positions = np.arange(start, stop) if stream.others else None
    return Window(first, stop - start, spans, None, positions)


def permuted_window(stream: Stream, first: int, runs: tuple[Int64s, Int64s, Int64s], key: Key) -> Window:
    """The window of the kept rows of runs (piece, lo, hi), permuted by their sample ids."""
    piece, lo, hi = runs
    spans = spans_of(stream, piece, lo, hi)
    own = span_ids(stream, spans)
    order = permutation(key, own)
    positions = None
    if stream.others:
        start = stream.starts[piece] + stream.kept(piece, stream.lo[piece], lo)
        positions = _counted(start, stream.kept(piece, lo, hi))
    return Window(first, len(order), spans, order, positions, own)


def scattered_window(stream: Stream, first: int, positions: Int64s) -> Window:
    """The window that delivers the rows at `positions`, in that order, each once."""
    by_place = np.argsort(positions)
    order = np.empty_like(by_place)
    order[by_place] = np.arange(len(by_place))
    sorted_positions = positions[by_place]
    spans = _grouped(stream, sorted_positions)
    return Window(first, len(order), spans, order, sorted_positions if stream.others else None)
