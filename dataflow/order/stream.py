"""What a pipeline of row-keeping operators delivers, before any order: pieces of fragments, in file order.

A *piece* is a run of source rows within one fragment of one leaf. A *position* counts kept rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np
import numpy.typing as npt

from dataflow.errors import PlanError
from dataflow.order.selection import Bits

__all__ = ["Leaf", "Stream", "concat", "read", "repeat", "select", "shuffle", "skip", "take", "zip_streams"]

Bools = npt.NDArray[np.bool_]
Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]
UInt64s = npt.NDArray[np.uint64]
UInt8s = npt.NDArray[np.uint8]

_ID_BITS = 40
# Rows that a composed selection works through at a time: a few arrays of eight megabytes.
_SELECT_ROWS = 1 << 20


@dataclass(frozen=True, eq=False)
class Leaf:
    """One source: `number` is its place in sample ids, `starts` (int64, fragments + 1) its cumulative rows.

    `row_ranges` and `single_rows` are the connector's traits of those names.
    """

    number: int
    starts: Int64s
    row_ranges: bool
    single_rows: bool


@dataclass(frozen=True, eq=False, kw_only=True)
class Stream:
    """Pieces in file order as parallel arrays, a shuffle window and a number of passes.

    Piece i is source rows `lo[i]` to `hi[i]` of `leaves[leaf[i]]`. Source row r of it is kept if bit
    `bit[i] + r - lo[i]` of `bits` is set, or if `bit[i]` is -1; every piece keeps at least one row. `others`
    are the further inputs of a zip: the row at position k is paired with the row at position k of each.
    `window` is in source rows, or "full", or None (file order).
    """

    leaves: tuple[Leaf, ...]
    leaf: Int32s
    lo: Int64s
    hi: Int64s
    bits: Bits | None = None
    bit: Int64s | None = None
    others: tuple[Stream, ...] = ()
    window: int | Literal["full"] | None = None
    passes: int = 1

    @cached_property
    def starts(self) -> Int64s:
        """The position of the first kept row of each piece, and behind the last the number of kept rows."""
        out = np.zeros(len(self.lo) + 1, np.int64)
        np.cumsum(self.hi - self.lo if self.bits is None else self.kept(None, self.lo, self.hi), out=out[1:])
        return out

    @property
    def n(self) -> int:
        """Rows of one pass."""
        return int(self.starts[-1])

    @property
    def total(self) -> int:
        """Rows of all passes."""
        return self.n * self.passes

    @cached_property
    def numbers(self) -> Int64s:
        """The first sample id of each leaf."""
        return np.array([leaf.number << _ID_BITS for leaf in self.leaves], np.int64)

    @property
    def inputs(self) -> tuple[Stream, ...]:
        """The stream itself and those zipped to it."""
        return (self, *self.others)

    def ids_of(self, piece: Int64s, rows: Int64s) -> Int64s:
        """The sample ids of source rows `rows`, each of its piece."""
        return rows + self.numbers[self.leaf[piece]]

    def kept(self, piece: Int32s | Int64s | None, lo: Int64s, hi: Int64s) -> Int64s:
        """How many of source rows lo..hi each piece keeps (`piece` None: all pieces, one for one)."""
        if self.bits is None or self.bit is None:
            return hi - lo
        bit, base = (self.bit, self.lo) if piece is None else (self.bit[piece], self.lo[piece])
        out = hi - lo
        some = np.flatnonzero(bit >= 0)
        shift = (bit - base)[some]
        out[some] = self.bits.rank(shift + hi[some]) - self.bits.rank(shift + lo[some])
        return out

    def row_at(self, piece: Int64s, lo: Int64s, number: Int64s) -> Int64s:
        """The source row of kept row `number` (0: the first) of each piece, from source row `lo` on."""
        out = lo + number
        if self.bits is not None and self.bit is not None:
            bit = self.bit[piece]
            some = np.flatnonzero(bit >= 0)
            shift = (bit - self.lo[piece])[some]
            out[some] = self.bits.nth(self.bits.rank(shift + lo[some]) + number[some]) - shift
        return out

    def rows_at(self, positions: Int64s) -> tuple[Int64s, Int64s]:
        """The piece and the source row at each position."""
        piece = np.searchsorted(self.starts, positions, "right") - 1
        return piece, self.row_at(piece, self.lo[piece], positions - self.starts[piece])

    def kept_rows(self, piece: int, lo: int, hi: int) -> Int64s | None:
        """The kept rows among source rows lo..hi of one piece; None where all of them are."""
        if self.bits is None or self.bit is None or self.bit[piece] < 0:
            return None
        start = int(self.bit[piece]) - int(self.lo[piece]) + lo
        rows = self.bits.set_between(start, start + hi - lo)
        return None if len(rows) == hi - lo else rows + lo


def read(leaf: Leaf) -> Stream:
    """All rows of one source; fragments without rows are left out."""
    lo, hi = leaf.starts[:-1], leaf.starts[1:]
    some = hi > lo
    if not some.all():
        lo, hi = lo[some], hi[some]
    return Stream(leaves=(leaf,), leaf=np.zeros(len(lo), np.int32), lo=lo, hi=hi)


def concat(*streams: Stream) -> Stream:
    """One stream behind the other.

    Raises:
        PlanError: a part is shuffled or repeated, or only some parts are zipped.
    """
    for stream in streams:
        _plain(stream, "concat", "shuffle behind it: concat(...).shuffle()")
    if len({len(s.others) for s in streams}) != 1:
        raise PlanError(
            f"concat of streams with {[len(s.inputs) for s in streams]} zipped inputs.",
            hint="zip behind it: zip(concat(...), concat(...))",
        )
    # Each part keeps leaves of its own, also where two parts read one source: operators may differ.
    before = np.cumsum([0, *(len(s.leaves) for s in streams)])
    numbers = [s.leaf + np.int32(first) for s, first in zip(streams, before, strict=False)]
    bits, bit = _joined(streams)
    return Stream(
        leaves=tuple(leaf for stream in streams for leaf in stream.leaves),
        leaf=np.concatenate(numbers),
        lo=np.concatenate([s.lo for s in streams]),
        hi=np.concatenate([s.hi for s in streams]),
        bits=bits,
        bit=bit,
        others=tuple(concat(*column) for column in zip(*(s.others for s in streams), strict=True)),
    )


def take(stream: Stream, n: int) -> Stream:
    """The first `n` rows in file order.

    Raises:
        PlanError: the input is shuffled or repeated, or `n` is negative.
    """
    _plain(stream, "take", f"shuffle behind it: take({n}).shuffle()")
    return _cut(stream, 0, min(_count("take", n), stream.n))


def skip(stream: Stream, n: int) -> Stream:
    """All but the first `n` rows in file order.

    Raises:
        PlanError: the input is shuffled or repeated, or `n` is negative.
    """
    _plain(stream, "skip", f"shuffle behind it: skip({n}).shuffle()")
    return _cut(stream, min(_count("skip", n), stream.n), stream.n)


def zip_streams(*streams: Stream) -> Stream:
    """Rows side by side, in the fragments of the first.

    Raises:
        PlanError: an input is shuffled or repeated, or lengths differ.
    """
    for stream in streams:
        _plain(stream, "zip", "shuffle behind it, which permutes the pairs: zip(...).shuffle()")
    rows = [s.n for s in streams]
    if len(set(rows)) != 1:
        raise PlanError(
            f"zip of {rows} rows: lengths must be equal.", hint=f"take({min(rows)}) of the longer inputs"
        )
    flat = [replace(part, others=()) for s in streams for part in s.inputs]
    return replace(flat[0], others=tuple(flat[1:]))


def select(stream: Stream, keep: Bools | UInt8s) -> Stream:
    """The rows whose position is kept; a shuffle or repeat of the stream stays.

    Args:
        keep: bool of shape (n,), or the same packed by `np.packbits(..., bitorder="little")`.

    Raises:
        PlanError: `keep` has another length.
    """
    packed = np.packbits(keep, bitorder="little") if keep.dtype == np.bool_ else keep.view(np.uint8)
    length = len(keep) if keep.dtype == np.bool_ else 8 * len(packed)
    if not (length == stream.n or (keep.dtype != np.bool_ and 0 <= length - stream.n < 8)):
        raise PlanError(
            f"select with {length} bits on {stream.n} rows.",
            hint="give one bit for each row that the stream has",
        )
    if stream.n % 8 and packed[-1] >> (stream.n % 8):
        packed = packed.copy()
        packed[-1] &= (1 << (stream.n % 8)) - 1
    chosen = Bits.unpacked(packed)
    return stream if chosen.count == stream.n else _selected(stream, chosen)


def shuffle(stream: Stream, window: int | Literal["full"]) -> Stream:
    """Permute fragments, and rows inside windows of `window` source rows; "full" permutes single rows.

    Raises:
        PlanError: the input is shuffled or repeated already, `window` is below 1, or "full" is asked of a
            source that cannot read single rows.
    """
    _plain(stream, "shuffle", "keep one shuffle, in front of repeat")
    if isinstance(window, int) and window < 1:
        raise PlanError(f"shuffle(window={window}) is below one row.", hint="use a window of 1 or more rows")
    if window == "full" and not all(leaf.single_rows for s in stream.inputs for leaf in s.leaves):
        raise PlanError(
            'shuffle("full") of a source that cannot read single rows cheaply: its format has none, or its record '
            "batches are compressed.",
            hint='use a window, such as shuffle(window="256MB")',
        )
    return replace(stream, window=window)


def repeat(stream: Stream, n: int) -> Stream:
    """The stream `n` times, each pass in an order of its own.

    Raises:
        PlanError: `n` is below 1.
    """
    if n < 1:
        raise PlanError(f"repeat({n}) is below 1.", hint="use 1 or more passes")
    return replace(stream, passes=stream.passes * n)


def _plain(stream: Stream, what: str, hint: str) -> None:
    if stream.window is not None or stream.passes > 1:
        state = "shuffled" if stream.window is not None else "repeated"
        raise PlanError(f"{what} of an input that is {state} on its own.", hint=hint)


def _count(what: str, n: int) -> int:
    if n < 0:
        raise PlanError(f"{what}({n}) is negative.", hint="use 0 or more rows")
    return n


def _cut(stream: Stream, start: int, stop: int) -> Stream:
    """Positions start..stop; a piece at a border is split in front of the first kept row behind it."""
    starts = stream.starts
    if start >= stop:
        first, last = 0, 0
    else:
        first = int(np.searchsorted(starts, start, "right")) - 1
        last = int(np.searchsorted(starts, stop, "left"))
    lo, hi = stream.lo[first:last], stream.hi[first:last]
    bit = None if stream.bit is None else stream.bit[first:last]
    if last > first and stop < starts[last]:
        hi = hi.copy()
        hi[-1] = stream.rows_at(np.array([stop]))[1][0]
    if last > first and start > starts[first]:
        lo = lo.copy()
        lo[0] = stream.rows_at(np.array([start]))[1][0]
        if bit is not None and bit[0] >= 0:
            bit = bit.copy()
            bit[0] += lo[0] - stream.lo[first]
    return replace(
        stream,
        leaf=stream.leaf[first:last],
        lo=lo,
        hi=hi,
        bit=bit,
        others=tuple(_cut(other, start, stop) for other in stream.others),
    )


def _joined(streams: Sequence[Stream]) -> tuple[Bits | None, Int64s | None]:
    """The bits of several streams in one row of words, each set of bits once."""
    offset: dict[int, int] = {}
    words: list[UInt64s] = []
    for stream in streams:
        if stream.bits is not None and id(stream.bits) not in offset:
            offset[id(stream.bits)] = 64 * sum(len(w) for w in words)
            words.append(stream.bits.words)
    if not words:
        return None, None
    bit = []
    for stream in streams:
        if stream.bits is None or stream.bit is None:
            bit.append(np.full(len(stream.lo), -1, np.int64))
        else:
            bit.append(np.where(stream.bit < 0, -1, stream.bit + offset[id(stream.bits)]))
    return Bits(np.concatenate(words)), np.concatenate(bit)


def _selected(stream: Stream, chosen: Bits) -> Stream:
    """The stream with the positions of `chosen` only, pieces that keep nothing left out."""
    before = chosen.rank(stream.starts)
    some = np.flatnonzero(np.diff(before))
    if stream.bits is None:
        bits, bit = chosen, stream.starts[:-1][some]
    else:
        bits, bit = _composed(stream, chosen)
        bit = bit[some]
    return replace(
        stream,
        leaf=stream.leaf[some],
        lo=stream.lo[some],
        hi=stream.hi[some],
        bits=bits,
        bit=bit,
        others=tuple(_selected(other, chosen) for other in stream.others),
    )


def _composed(stream: Stream, chosen: Bits) -> tuple[Bits, Int64s]:
    """Bits over all source rows of all pieces, from bits over the kept ones; and each piece's first bit."""
    first = np.zeros(len(stream.lo) + 1, np.int64)
    np.cumsum(stream.hi - stream.lo, out=first[1:])
    out = np.zeros(-(-int(first[-1]) // 8), np.uint8)
    block = np.zeros(min(int(first[-1]), _SELECT_ROWS), np.bool_)
    for start in range(0, int(first[-1]), _SELECT_ROWS):
        stop = min(start + _SELECT_ROWS, int(first[-1]))
        low, high = (_position(stream, first, at) for at in (start, stop))
        piece, rows = stream.rows_at(low + chosen.set_between(low, high))
        block[:] = False
        block[first[piece] + rows - stream.lo[piece] - start] = True
        out[start // 8 : -(-stop // 8)] = np.packbits(block[: stop - start], bitorder="little")
    return Bits.unpacked(out), first[:-1]


def _position(stream: Stream, first: Int64s, at: int) -> int:
    """The position of the first kept row at or behind source row number `at` of all pieces together."""
    if at == first[-1]:
        return stream.n
    piece = np.searchsorted(first, np.array([at]), "right") - 1
    row = stream.lo[piece] + at - first[piece]
    return int((stream.starts[piece] + stream.kept(piece, stream.lo[piece], row))[0])
