"""Counter-based random words: Philox4x32-10, keyed by (seed, turn, what), with the sample id as the counter.

Source: J. K. Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011; the constants and the
published vectors are those of Random123.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

__all__ = ["BLOCK", "Key", "Rounds", "Turn", "draws", "key_of"]

Int64s = npt.NDArray[np.int64]
UInt32s = npt.NDArray[np.uint32]
UInt64s = npt.NDArray[np.uint64]
Turn = int | Sequence[int]

# Six arrays of 16k eight-byte numbers stay in the second-level cache.
BLOCK = 1 << 14
_LOW = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)
_MULTIPLY = (np.uint64(0xD2511F53), np.uint64(0xCD9E8D57))
_WEYL = (0x9E3779B9, 0xBB67AE85)


class Key(NamedTuple):
    """Two 32-bit words that name one stream of random numbers."""

    first: int
    second: int


def key_of(seed: int, turn: Turn, what: str) -> Key:
    """BLAKE2b-64 of the JSON list [seed, turn, what], as two little-endian words.

    `turn` is the epoch; with `repeat(n)` epoch * n + pass; in a mixture the list [epoch, pass].
    """
    names = [seed, turn if isinstance(turn, int) else list(turn), what]
    text = json.dumps(names, separators=(",", ":"))
    digest = hashlib.blake2b(text.encode(), digest_size=8).digest()
    return Key(int.from_bytes(digest[:4], "little"), int.from_bytes(digest[4:], "little"))


class Rounds:
    """Scratch memory for the ten rounds over at most `size` (up to `BLOCK`) counters at a time.

    An object belongs to one thread; the words it returns are overwritten by the next call.
    """

    def __init__(self, size: int) -> None:
        self._scratch = np.empty((6, max(1, min(size, BLOCK))), np.uint64)

    def words(
        self, key: Key, low: UInt64s, high: UInt64s, sub: UInt64s | int = 0, quad: UInt64s | int = 0
    ) -> tuple[UInt64s, UInt64s, UInt64s, UInt64s]:
        """The four words (each below 2**32) at counters (low, high, sub, quad), all 32-bit values."""
        c0, c1, c2, c3, a, b = self._scratch[:, : len(low)]
        c0[:] = low
        c1[:] = high
        c2[:] = sub
        c3[:] = quad
        for k0, k1 in _round_keys(key):
            _round(c0, c1, c2, c3, a, b, k0, k1)
        return c0, c1, c2, c3

    def first_word(self, key: Key, low: UInt64s, high: int, sub: int = 0, quad: int = 0) -> UInt64s:
        """The first word alone, where only `low` varies: the same number with three quarters of the work.

        Two rounds pass before all words vary, and the last two leave out what word 0 does not need.
        """
        c0: UInt64s  # mypy takes a row of an array for Any
        c0, c1, c2, c3, a, b = self._scratch[:, : len(low)]
        keys = _round_keys(key)
        whole, (k0, k1) = sub * int(_MULTIPLY[1]), keys[0]
        one, two = (whole >> 32) ^ high ^ int(k0), whole & 0xFFFFFFFF
        np.multiply(low, _MULTIPLY[0], out=a)
        np.right_shift(a, _HALF, out=c2)
        np.bitwise_xor(c2, k1 ^ np.uint64(quad), out=c2)
        np.bitwise_and(a, _LOW, out=c3)
        whole, (k0, k1) = one * int(_MULTIPLY[0]), keys[1]
        np.multiply(c2, _MULTIPLY[1], out=b)
        np.right_shift(b, _HALF, out=c0)
        np.bitwise_xor(c0, k0 ^ np.uint64(two), out=c0)
        np.bitwise_and(b, _LOW, out=c1)
        np.bitwise_xor(c3, k1 ^ np.uint64(whole >> 32), out=c2)
        c3[:] = whole & 0xFFFFFFFF
        for k0, k1 in keys[2:8]:
            _round(c0, c1, c2, c3, a, b, k0, k1)
        np.multiply(c0, _MULTIPLY[0], out=a)
        np.multiply(c2, _MULTIPLY[1], out=b)
        np.right_shift(a, _HALF, out=c2)
        np.bitwise_xor(c2, c3, out=c2)
        np.bitwise_xor(c2, keys[8][1], out=c2)
        np.bitwise_and(b, _LOW, out=c1)
        np.multiply(c2, _MULTIPLY[1], out=b)
        np.right_shift(b, _HALF, out=c0)
        np.bitwise_xor(c0, c1, out=c0)
        np.bitwise_xor(c0, keys[9][0], out=c0)
        return c0


def _round_keys(key: Key) -> list[tuple[np.uint64, np.uint64]]:
    low = 0xFFFFFFFF
    return [
        (np.uint64((key.first + i * _WEYL[0]) & low), np.uint64((key.second + i * _WEYL[1]) & low))
        for i in range(10)
    ]


def _round(
    c0: UInt64s, c1: UInt64s, c2: UInt64s, c3: UInt64s, a: UInt64s, b: UInt64s, k0: np.uint64, k1: np.uint64
) -> None:
    np.multiply(c0, _MULTIPLY[0], out=a)
    np.multiply(c2, _MULTIPLY[1], out=b)
    np.right_shift(b, _HALF, out=c0)
    np.bitwise_xor(c0, c1, out=c0)
    np.bitwise_xor(c0, k0, out=c0)
    np.bitwise_and(b, _LOW, out=c1)
    np.right_shift(a, _HALF, out=c2)
    np.bitwise_xor(c2, c3, out=c2)
    np.bitwise_xor(c2, k1, out=c2)
    np.bitwise_and(a, _LOW, out=c3)


def draws(key: Key, ids: Int64s, count: int, sub: Int64s | int = 0) -> UInt32s:
    """`count` random words (at most 4 * `BLOCK`) of every sample id: uint32 of shape (len(ids), count).

    Draw d of an id is word d mod 4 at counter (id low, id high, sub, d div 4). `sub` is a sub-number or the
    number of a candidate, one for all ids or one for each.
    """
    out = np.empty((len(ids), count), np.uint32)
    if not count:
        return out
    # All quads of many ids at once: a call of NumPy takes longer than the few numbers that one quad of a range has.
    quads = -(-count // 4)
    few = BLOCK // quads
    rounds = Rounds(min(few, len(ids)) * quads)
    numbers = np.ascontiguousarray(ids, np.int64).view(np.uint64)
    subs = sub if isinstance(sub, int) else np.ascontiguousarray(sub, np.int64).view(np.uint64)
    for start in range(0, len(ids), few):
        block = slice(start, start + few)
        each = np.repeat(numbers[block], quads)
        part = subs if isinstance(subs, int) else np.repeat(subs[block], quads)
        quad = np.tile(np.arange(quads, dtype=np.uint64), len(numbers[block]))
        four = rounds.words(key, each & _LOW, each >> _HALF, part, quad)
        out[block] = np.stack(four, axis=-1).reshape(-1, 4 * quads)[:, :count]
    return out
