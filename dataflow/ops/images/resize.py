"""Resize: images at another size."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from dataflow.errors import PlanError
from dataflow.graph.registry import register
from dataflow.ops.images.canvas import Canvas, Planned, Stage
from dataflow.ops.images.check import check_size
from dataflow.ops.images.filters import Filter, check_filter
from dataflow.ops.images.form import Form
from dataflow.ops.images.step import OneImageStep

__all__ = ["Resize"]

Int64s = npt.NDArray[np.int64]


@register("resize")
@dataclass(frozen=True, kw_only=True, eq=False)
class Resize(OneImageStep):
    """Resize to `size` (height, width), or so that the shorter or the longer side has so many pixels.

    With `shorter` or `longer` the other side keeps the aspect ratio, cut to a whole number; where `shorter` would make
    it longer than `max_size`, it has these, and the shorter side less. `filter` averages over
    what becomes smaller ("bilinear", "bicubic", "area"), or takes single pixels ("nearest").
    After torchvision.transforms.v2.Resize with antialias=True.
    """

    size: tuple[int, int] | None = None
    shorter: int | None = None
    longer: int | None = None
    max_size: int | None = None
    filter: Filter = "bilinear"
    stage: ClassVar[Stage] = "pixels"
    moves: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        given = [value for value in (self.size, self.shorter, self.longer) if value is not None]
        if len(given) != 1:
            raise PlanError(
                f"resize: size={self.size!r}, shorter={self.shorter!r}, longer={self.longer!r}.",
                hint="give one of them",
            )
        side = self.shorter if self.shorter is not None else self.longer
        check_size(self.kind, self.size if self.size is not None else (side, side))
        if self.max_size is not None:
            self._check_most(self.max_size)
        check_filter(self.kind, self.filter)

    def _check_most(self, most: int) -> None:
        if self.shorter is None or type(most) is not int or most <= self.shorter:
            raise PlanError(
                f"resize: max_size={most!r}, shorter={self.shorter!r}.",
                hint="give it beside shorter=, a larger number, as shorter=800, max_size=1333",
            )

    def form_after(self, form: Form) -> Form:
        if self.size is not None:
            return replace(form, size=self.size)
        if form.size is None:
            return form
        height, width = self._sizes(np.array([form.size], np.int64))[0].tolist()
        return replace(form, size=(height, width))

    def plan(self, sizes: Int64s, words: npt.NDArray[np.uint32]) -> Planned:
        after = self._sizes(sizes)
        return Planned(after.tolist(), after)

    def _sizes(self, sizes: Int64s) -> Int64s:
        if self.size is not None:
            return np.broadcast_to(np.array(self.size, np.int64), sizes.shape)
        if self.shorter is not None:
            side, basis = self.shorter, sizes.min(axis=1)
        else:
            side, basis = self.longer or 0, sizes.max(axis=1)
        after = sizes * side // basis[:, None]
        if self.max_size is not None:
            long = after.max(axis=1, keepdims=True)
            after = np.where(long > self.max_size, after * self.max_size // long, after)
        return np.asarray(np.maximum(1, after), np.int64)

    def change(self, image: Canvas, param: Any) -> None:
        height, width = param
        image.resize(height, width, self.filter)
