"""Which channels of an image are colours, and which is not."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dataflow.graph.image_column import Pixels

__all__ = ["colours", "on_colours"]


def colours(channels: int) -> int:
    """How many channels are colours: the last of two or of four is alpha."""
    return channels - 1 if channels in (2, 4) else channels


def on_colours(pixels: Pixels, change: Callable[[Pixels], Pixels]) -> Pixels:
    """Pixels (height, width, channels) with their colours as `change` makes them of these, and their own alpha.

    `change` may leave out the axis of a single channel, as OpenCV does.
    """
    height, width, channels = pixels.shape
    count = colours(channels)
    if count == channels:
        return change(pixels).reshape(pixels.shape)
    made = change(np.ascontiguousarray(pixels[..., :count])).reshape(height, width, count)
    return np.concatenate([made, pixels[..., count:]], axis=2)
