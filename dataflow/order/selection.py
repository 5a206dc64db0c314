"""The rows that a filter keeps, one bit a row, with the two questions that the order asks.

Rank (how many kept before a row) and select (which row is the k-th kept) in constant time a row, after
G. Jacobson, "Space-efficient static trees and graphs", FOCS 1989; one count for every 64 bits.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
import numpy.typing as npt

__all__ = ["Bits"]

Int64s = npt.NDArray[np.int64]
UInt8s = npt.NDArray[np.uint8]
UInt64s = npt.NDArray[np.uint64]


class Bits:
    """An immutable row of bits; bit i is bit i mod 64 of word i div 64."""

    def __init__(self, words: UInt64s) -> None:
        self.words = words

    @classmethod
    def unpacked(cls, packed: UInt8s) -> Bits:
        """From bytes of `np.packbits(..., bitorder="little")`; bits behind the last row must be zero."""
        padded = np.zeros(-(-len(packed) // 8) * 8, np.uint8)
        padded[: len(packed)] = packed
        return cls(padded.view("<u8").astype(np.uint64, copy=False))

    @cached_property
    def _counts(self) -> Int64s:
        counts = np.zeros(len(self.words) + 1, np.int64)
        np.cumsum(np.bitwise_count(self.words), out=counts[1:])
        return counts

    @property
    def count(self) -> int:
        """How many bits are set."""
        return int(self._counts[-1])

    def rank(self, at: Int64s) -> Int64s:
        """How many bits are set before each bit number of `at`."""
        word, bit = at >> 6, (at & 63).astype(np.uint64)
        inside = np.zeros(len(at), np.int64)
        some = np.flatnonzero(bit)
        mask = (np.uint64(1) << bit[some]) - np.uint64(1)
        inside[some] = np.bitwise_count(self.words[word[some]] & mask)
        inside += self._counts[word]
        return inside

    def nth(self, number: Int64s) -> Int64s:
        """The bit number of the set bit number `number` (0: the first), for each."""
        word = np.searchsorted(self._counts, number, "right") - 1
        rest, bits = number - self._counts[word], self.words[word]
        at = np.zeros(len(number), np.uint64)
        for width in (32, 16, 8, 4, 2, 1):
            lower = (bits >> at) & np.uint64((1 << width) - 1)
            count = np.bitwise_count(lower).astype(np.int64)
            above = rest >= count
            rest = np.where(above, rest - count, rest)
            at += np.where(above, np.uint64(width), np.uint64(0))
        return (word << 6) + at.astype(np.int64)

    def set_between(self, start: int, stop: int) -> Int64s:
        """The set bits of start..stop, counted from `start`."""
        first = start >> 6
        part = self.words[first : -(-stop // 64)].astype("<u8", copy=False).view(np.uint8)
        offset = start - (first << 6)
        keep = np.unpackbits(part, bitorder="little")[offset : offset + stop - start]
        return np.flatnonzero(keep)
