"""What torchvision's transforms do to an image of Pillow, step by step, for a data set that a DataLoader reads.

torchvision comes in a build of its own for each build of torch, so the benchmark cannot ask for it. These are its
`RandomResizedCrop`, `RandomHorizontalFlip`, `ToTensor` and `Normalize`.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import numpy as np

from dataflow.ops.images.statistics import IMAGENET_MEAN, IMAGENET_STD

if TYPE_CHECKING:
    import torch
    from PIL.Image import Image

__all__ = ["augmented", "normalized"]

_SCALE: Final = (0.08, 1.0)
_RATIO: Final = (3 / 4, 4 / 3)
_TRIES: Final = 10


def augmented(image: Image, side: int) -> Image:
    """A random part of random area and ratio as a square of `side` pixels, mirrored every second time."""
    import torch
    from PIL.Image import Resampling, Transpose

    left, top, width, height = _part(*image.size)
    cropped = image.crop((left, top, left + width, top + height))
    made = cropped.resize((side, side), Resampling.BILINEAR)
    return made.transpose(Transpose.FLIP_LEFT_RIGHT) if torch.rand(1) < 0.5 else made


def normalized(image: Image) -> torch.Tensor:
    """The pixels as float32 (3, height, width), by the mean and the deviation of ImageNet."""
    import torch

    pixels = torch.from_numpy(np.array(image, np.uint8, copy=True))
    scaled = pixels.permute(2, 0, 1).contiguous().to(torch.float32).div(255)
    mean, std = (torch.as_tensor(values).view(-1, 1, 1) for values in (IMAGENET_MEAN, IMAGENET_STD))
    return scaled.sub_(mean).div_(std)


def _part(width: int, height: int) -> tuple[int, int, int, int]:
    """Left, top, width and height."""
    import torch

    low, high = (math.log(ratio) for ratio in _RATIO)
    for _ in range(_TRIES):
        area = width * height * torch.empty(1).uniform_(*_SCALE).item()
        ratio = math.exp(torch.empty(1).uniform_(low, high).item())
        wide, tall = round(math.sqrt(area * ratio)), round(math.sqrt(area / ratio))
        if 0 < wide <= width and 0 < tall <= height:
            top = int(torch.randint(0, height - tall + 1, (1,)).item())
            left = int(torch.randint(0, width - wide + 1, (1,)).item())
            return left, top, wide, tall
    side = min(width, height)
    return (width - side) // 2, (height - side) // 2, side, side
