"""Part of an image at another size."""

from __future__ import annotations

from typing import Any

import cv2
import numpy as np
import torch

from dataflow.graph.image_column import Pixels
from dataflow.ops.images.canvas import Box
from dataflow.ops.images.filters import SMOOTH, Filter
from dataflow.ops.images.pixels.fractional import resample_between

__all__ = ["resample"]


def resample(pixels: Pixels, part: Box, size: tuple[int, int], filter: Filter) -> Pixels:
    """A part of `pixels` (height, width, channels) at `size` (height, width).

    What becomes smaller is averaged ("bilinear" and "bicubic" over the filter's support, as torchvision's and Pillow's
    antialias; "area" over the pixels that each new one covers), but for "nearest". For "bilinear"
    and "bicubic" the edges of the part may lie between pixels.
    """
    if filter in SMOOTH and any(edge != round(edge) for edge in part):
        return resample_between(pixels, part, size, filter)
    top, left, height, width = map(round, part)
    cut = pixels[top : top + height, left : left + width]
    channels = cut.shape[2]
    if filter == "nearest":
        made: Any = cv2.resize(cut, size[::-1], interpolation=cv2.INTER_NEAREST_EXACT)
    elif filter == "area" and size[0] <= height and size[1] <= width:
        made = cv2.resize(cut, size[::-1], interpolation=cv2.INTER_AREA)
    elif size[0] >= height and size[1] >= width and filter != "bicubic":
        # Nothing is averaged: OpenCV takes half of torch's time. Its bicubic kernel is another.
        made = cv2.resize(cut, size[::-1], interpolation=cv2.INTER_LINEAR)
    else:
        made = _averaged(cut, size, "bicubic" if filter == "bicubic" else "bilinear")
    return np.asarray(made).reshape(*size, channels)


def _averaged(pixels: Pixels, size: tuple[int, int], mode: str) -> Pixels:
    # Contiguous rows have a fast kernel; and torch has no read-only tensors.
    whole = np.ascontiguousarray(pixels)
    whole = whole if whole.flags.writeable else whole.copy()
    # Reshaped, not indexed with None: by the stride of an axis of one image torch tells that channels are last, and
    # leaves them there. That takes three quarters of the time, and whatever follows wants them there.
    batch = torch.from_numpy(whole.reshape(1, *whole.shape)).permute(0, 3, 1, 2)
    scaled = torch.nn.functional.interpolate(batch, size, mode=mode, antialias=True, align_corners=False)
    return np.asarray(scaled[0].permute(1, 2, 0).numpy())
