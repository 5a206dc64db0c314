"""How much of everything a check takes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

__all__ = ["FULL", "Size"]


@dataclass(frozen=True, kw_only=True)
class Size:
    """Numbers of images, of steps, and of pixels.

    Fields:
        compared: images whose pixels are compared.
        photographs: images of 500 x 400 that rates and traces run over, again and again; a multiple of `batch`.
        batch: images of a batch.
        side: what they are cropped to, in pixels.
        warm: batches before a clock or a profiler starts.
        traced: batches under the profiler.
        timed: batches between two readings of the clock.
        rounds: how often rates are taken, in turn.
        width: of the square matrices that keep a device busy.
    """

    compared: int
    photographs: int
    batch: int
    side: int
    warm: int
    traced: int
    timed: int
    rounds: int
    width: int


# A minute or two on a GPU and sixteen cores.
FULL: Final = Size(
    compared=96, photographs=1024, batch=64, side=224, warm=16, traced=16, timed=48, rounds=3, width=4096
)
