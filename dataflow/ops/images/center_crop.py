"""CenterCrop: the middle of an image."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from dataflow.graph.registry import register
from dataflow.ops.images.canvas import Canvas, Planned, Stage
from dataflow.ops.images.check import check_size
from dataflow.ops.images.form import Form
from dataflow.ops.images.step import OneImageStep

__all__ = ["CenterCrop"]


@register("center_crop")
@dataclass(frozen=True, kw_only=True, eq=False)
class CenterCrop(OneImageStep):
    """Cut out the middle, `size` (height, width); what the image lacks is black around it.

    After torchvision.transforms.v2.CenterCrop.
    """

    size: tuple[int, int]
    stage: ClassVar[Stage] = "pixels"
    moves: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        check_size(self.kind, self.size)

    def form_after(self, form: Form) -> Form:
        return replace(form, size=self.size)

    def plan(self, sizes: npt.NDArray[np.int64], words: npt.NDArray[np.uint32]) -> Planned:
        lacking = np.maximum(0, np.array(self.size) - sizes)
        before = lacking // 2
        first = np.rint((np.maximum(sizes, self.size) - self.size) / 2).astype(np.int64)
        params = np.column_stack([before, lacking - before, first])
        return Planned(params.tolist(), np.broadcast_to(np.array(self.size), sizes.shape))

    def change(self, image: Canvas, param: Any) -> None:
        above, left, below, right, top, side = param
        if above or left or below or right:
            image.pad(above, left, below, right)
        image.crop(top, side, *self.size)
