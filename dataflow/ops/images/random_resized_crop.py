"""RandomResizedCrop: a random part of the image, stretched to one size."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from dataflow.graph.registry import register
from dataflow.ops.images.canvas import Canvas, Planned, Stage
from dataflow.ops.images.check import check_range, check_size
from dataflow.ops.images.filters import Filter, check_filter
from dataflow.ops.images.form import Form
from dataflow.ops.images.step import OneImageStep
from dataflow.ops.images.uniform import below, between

__all__ = ["RandomResizedCrop", "crop_boxes"]

Int64s = npt.NDArray[np.int64]
UInt32s = npt.NDArray[np.uint32]
_TRIES = 10


@register("random_resized_crop")
@dataclass(frozen=True, kw_only=True, eq=False)
class RandomResizedCrop(OneImageStep):
    """Crop a part of random area and aspect ratio, and resize it to `size` (height, width).

    The area is a share of the image's, even in `scale`; the ratio of width to height is even in the logarithm of
    `ratio`; the place is even. Ten tries that do not fit give the largest part in the middle whose ratio does.
    After torchvision.transforms.v2.RandomResizedCrop.
    """

    size: tuple[int, int]
    scale: tuple[float, float] = (0.08, 1.0)
    ratio: tuple[float, float] = (3 / 4, 4 / 3)
    filter: Filter = "bilinear"
    stage: ClassVar[Stage] = "pixels"
    words: ClassVar[int] = 4 * _TRIES
    moves: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        check_size(self.kind, self.size)
        check_range(self.kind, "scale", self.scale, low=0.0, high=1.0)
        check_range(self.kind, "ratio", self.ratio, low=0.0)
        check_filter(self.kind, self.filter)

    def form_after(self, form: Form) -> Form:
        return replace(form, size=self.size)

    def plan(self, sizes: Int64s, words: UInt32s) -> Planned:
        boxes = crop_boxes(sizes, words, self.scale, self.ratio)
        return Planned(boxes.tolist(), np.broadcast_to(np.array(self.size), sizes.shape))

    def change(self, image: Canvas, param: Any) -> None:
        image.crop(*param)
        image.resize(*self.size, self.filter)


def crop_boxes(
    sizes: Int64s, words: UInt32s, scale: tuple[float, float], ratio: tuple[float, float]
) -> Int64s:
    """Boxes (top, left, height, width), int64 (images, 4), from sizes (images, 2) and words (images, 40)."""
    tries = words.reshape(len(sizes), _TRIES, 4)
    high, wide = sizes[:, :1], sizes[:, 1:]
    area = between(tries[..., 0], *scale) * (high * wide)
    aspect = np.exp(between(tries[..., 1], np.log(ratio[0]), np.log(ratio[1])))
    width = np.rint(np.sqrt(area * aspect)).astype(np.int64)
    height = np.rint(np.sqrt(area / aspect)).astype(np.int64)
    fits = (width > 0) & (width <= wide) & (height > 0) & (height <= high)
    chosen = fits.argmax(axis=1)
    rows = np.arange(len(sizes))
    height, width = height[rows, chosen], width[rows, chosen]
    none = ~fits[rows, chosen]
    if none.any():
        height[none], width[none] = _middle(sizes[none], ratio)
    free = sizes - np.column_stack([height, width])
    top = below(tries[rows, chosen, 2], free[:, 0] + 1)
    left = below(tries[rows, chosen, 3], free[:, 1] + 1)
    top[none], left[none] = free[none, 0] // 2, free[none, 1] // 2
    return np.column_stack([top, left, height, width])


def _middle(sizes: Int64s, ratio: tuple[float, float]) -> tuple[Int64s, Int64s]:
    """Height and width of the largest parts whose ratio of width to height is allowed."""
    high, wide = sizes[:, 0], sizes[:, 1]
    height = np.where(wide < ratio[0] * high, np.rint(wide / ratio[0]).astype(np.int64), high)
    width = np.where(wide > ratio[1] * high, np.rint(high * ratio[1]).astype(np.int64), wide)
    return np.minimum(height, high), np.minimum(width, wide)
