"""`Decoded`: what rows of Parquet row groups decode to where dictionaries hide it.

A dictionary holds each text once, and a row is a number of it: the footer then says next to nothing of how large the
rows are.
"""

from __future__ import annotations

from typing import TypeAlias

from connectors.parquet_footer import Projection

__all__ = ["Decoded"]

# Wanted leaves, and the powers of two in which encoded bytes lie: of a row, and of all that a group may become.
_Likeness: TypeAlias = tuple[tuple[str, ...], int, int]

_MOST_KINDS = 256


class Decoded:
    """Bytes of a row in the columns of no fixed size, kept for row groups whose footers are alike; thread-safe."""

    def __init__(self) -> None:
        self._row_bytes: dict[_Likeness, float] = {}

    def row_bytes(self, wanted: Projection) -> float | None:
        """What was noted last of a row group like this one; None where none was read."""
        return self._row_bytes.get(_likeness(wanted))

    def note(self, wanted: Projection, row_bytes: float) -> None:
        """Keep what the rows of a row group decoded to."""
        if len(self._row_bytes) >= _MOST_KINDS:
            self._row_bytes.clear()
        self._row_bytes[_likeness(wanted)] = row_bytes


def _likeness(wanted: Projection) -> _Likeness:
    return tuple(wanted.leaves), int(wanted.loose_bytes).bit_length(), wanted.most_bytes.bit_length()
