"""RandomCrop: a part of one size at a random place."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, get_args

import numpy as np
import numpy.typing as npt

from dataflow.errors import DataError, PlanError
from dataflow.given import check_choice, check_flags
from dataflow.graph.registry import register
from dataflow.ops.images.canvas import Canvas, Fill, Padding, Planned, Stage
from dataflow.ops.images.check import check_levels, check_size
from dataflow.ops.images.form import Form
from dataflow.ops.images.step import OneImageStep
from dataflow.ops.images.uniform import below

__all__ = ["RandomCrop", "Sides"]

Sides = tuple[int, ...]


@register("random_crop")
@dataclass(frozen=True, kw_only=True, eq=False)
class RandomCrop(OneImageStep):
    """Cut out `size` (height, width) at a place that is even over the image with its padding.

    After torchvision.transforms.v2.RandomCrop.

    Fields:
        padding: columns and rows on the left, above, on the right, below.
        pad_if_needed: where the image is still too small, add what it lacks on both sides; else it is a bad row.
        around: what "constant" padding has, one value or one for each channel.
    """

    size: tuple[int, int]
    padding: Sides | None = None
    pad_if_needed: bool = False
    around: Fill = field(default=0, metadata={"key": "fill"})
    padding_mode: Padding = "constant"
    stage: ClassVar[Stage] = "pixels"
    words: ClassVar[int] = 2
    moves: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        check_size(self.kind, self.size)
        check_levels(self.kind, "fill", self.around)
        check_choice(self.kind, "padding_mode", self.padding_mode, get_args(Padding))
        check_flags(self.kind, pad_if_needed=self.pad_if_needed)
        sides = self.padding if self.padding is not None else (0,) * 4
        if len(sides) != 4 or not all(type(side) is int and side >= 0 for side in sides):
            raise PlanError(
                f"random_crop: padding={self.padding!r}.",
                hint="give one number from 0 on, (left and right, above and below), or all four",
            )

    def form_after(self, form: Form) -> Form:
        check_levels(self.kind, "fill", self.around, form)
        if form.size is not None:
            height, width = self._sides(np.array([form.size])).sum(axis=2)[0].tolist()
            self._check_large_enough(PlanError, form.size[0] + height, form.size[1] + width)
        return replace(form, size=self.size)

    def plan(self, sizes: npt.NDArray[np.int64], words: npt.NDArray[np.uint32]) -> Planned:
        sides = self._sides(sizes)
        free = np.maximum(0, sizes + sides.sum(axis=2) - self.size)
        first = np.column_stack([below(words[:, axis], free[:, axis] + 1) for axis in range(2)])
        params = np.column_stack([sides[:, :, 0], sides[:, :, 1], first])
        return Planned(params.tolist(), np.broadcast_to(np.array(self.size), sizes.shape))

    def _sides(self, sizes: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """What is added to each image: (images, rows or columns, before or behind)."""
        left, above, right, under = self.padding or (0,) * 4
        sides = np.broadcast_to(np.array([[above, under], [left, right]]), (len(sizes), 2, 2))
        if not self.pad_if_needed:
            return sides
        lacking = np.maximum(0, self.size - (sizes + sides.sum(axis=2)))
        return np.asarray(sides + lacking[:, :, None], np.int64)

    def change(self, image: Canvas, param: Any) -> None:
        above, left, under, right, top, side = param
        if any((above, left, under, right)):
            image.pad(above, left, under, right, self.around, self.padding_mode)
        self._check_large_enough(DataError, *image.size)
        image.crop(top, side, *self.size)

    def _check_large_enough(self, error: type[PlanError] | type[DataError], height: int, width: int) -> None:
        if height < self.size[0] or width < self.size[1]:
            raise error(
                f"random_crop: {self.size[0]} x {self.size[1]} of an image of {height} x {width}.",
                hint="resize it first, or give pad_if_needed=True",
            )
