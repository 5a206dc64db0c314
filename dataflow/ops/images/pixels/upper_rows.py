"""The upper rows of a JPEG, decoded without those below.

No wheel offers libjpeg-turbo's own cropped decode, see docs/decisions/cropped-decode.md. But a file says how many rows
it has in one place (ITU-T T.81, B.2.2: the number of lines in the frame header), and where that says fewer, the decoder
stops behind them: these rows are the same as those of the whole, but for the last one or two, whose colours are mixed
with those below. What it warns of first then tells whether they were whole.
"""

from __future__ import annotations

import re
from typing import Final

import simplejpeg

from dataflow.graph.image_column import Pixels
from dataflow.ops.images.pixels.segments import segments

__all__ = ["MARGIN", "upper_rows"]

# Rows of pixels below those that are wanted: colours may have one row for two of pixels, and are mixed with the next.
MARGIN: Final = 2
_PLAIN_FRAMES: Final = (0xC0, 0xC1)  # one pass over the rows, Huffman-coded
_FRAMES: Final = frozenset({*range(0xC0, 0xD0)} - {0xC4, 0xC8, 0xCC})
_RESTARTS: Final = 0xDD
# All that the decoder may have to say: behind the rows, it has looked for the end of the image. TurboJPEG reports the
# first warning, so that in the rows themselves nothing was amiss.
_LEFT_OVER: Final = re.compile(r"\d+ extraneous bytes before marker 0xd9")


def upper_rows(file: memoryview, rows: int, space: str, made: Pixels) -> bool:
    """Decode the first `rows` rows of a JPEG into `made` (height, width, channels), whose size is the scale.

    False: it is no plain JPEG, or something is amiss with it; `made` holds anything then.
    """
    cut = _cut(file, rows)
    if cut is None:
        return False
    height, width = made.shape[:2]
    try:
        simplejpeg.decode_jpeg(
            cut, space, min_height=height, min_width=width, min_factor=1, buffer=made, strict=True
        )
    except ValueError as error:
        return _LEFT_OVER.search(str(error)) is not None
    return True


def _cut(file: memoryview, rows: int) -> bytearray | None:
    """The file, saying that it has so many rows; None: its rows do not come one after the other without marks."""
    found = list(segments(file))
    frames = [segment for segment in found if segment.code in _FRAMES]
    marked = any(segment.code == _RESTARTS for segment in found)
    if len(frames) != 1 or frames[0].code not in _PLAIN_FRAMES or marked:
        return None
    cut = bytearray(file)
    lines = frames[0].start + 1  # behind the precision
    cut[lines : lines + 2] = rows.to_bytes(2, "big")
    return cut
