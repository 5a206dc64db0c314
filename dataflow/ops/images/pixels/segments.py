"""The segments of a JPEG in front of its pixels.

Source: ITU-T T.81, B.1.1: a marker is 0xff and a code; behind it stand the length in two bytes, and what it has.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

__all__ = ["Segment", "segments"]

_PADDING, _SCAN, _END = 0xFF, 0xDA, 0xD9


class Segment(NamedTuple):
    """Bytes `start` to `stop` of a file, behind a marker and the length; `stop` may lie behind the file's end."""

    code: int
    start: int
    stop: int


def segments(file: memoryview) -> Iterator[Segment]:
    """All of them, as far as they can be read."""
    at = 2
    while at + 4 <= len(file) and file[at] == 0xFF:
        code = file[at + 1]
        if code == _PADDING:
            at += 1
            continue
        if code in (_SCAN, _END):
            return
        stop = at + 2 + max(2, file[at + 2] << 8 | file[at + 3])
        yield Segment(code, at + 4, stop)
        at = stop
