"""Normalize: pixels become numbers around zero, channel by channel, as a model wants them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy.typing as npt

from dataflow.errors import PlanError
from dataflow.given import check_choice
from dataflow.graph.image_column import Pixels
from dataflow.graph.registry import register
from dataflow.ops.images.canvas import Stage
from dataflow.ops.images.check import check_channels, check_layout
from dataflow.ops.images.form import Form, Layout
from dataflow.ops.images.step import OneImageStep

__all__ = ["Normalize"]


@register("normalize")
@dataclass(frozen=True, kw_only=True, eq=False)
class Normalize(OneImageStep):
    """(pixel / 255 - mean) / std, computed in float32, as `dtype` in `layout`.

    After torchvision.transforms.v2.ToDtype(float32, scale=True) and Normalize; the numbers are the same, bit for bit.
    """

    mean: tuple[float, ...]
    std: tuple[float, ...]
    dtype: str = "float32"
    layout: Layout = "NCHW"
    stage: ClassVar[Stage] = "write"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice(self.kind, "dtype", self.dtype, ("float32", "float16"))
        check_layout(self.kind, self.layout)
        check_channels(self.kind, self.mean, self.std)

    def form_after(self, form: Form) -> Form:
        if form.size is None or form.channels is None:
            raise PlanError(
                f"normalize: the images of {self.column!r} have no one size.",
                hint="resize or crop them first, as .random_resized_crop(...)",
            )
        if form.channels != len(self.mean):
            raise PlanError(
                f"normalize: images of {form.channels} channels, and mean= has {len(self.mean)} numbers.",
                hint="give one for each channel",
            )
        return replace(form, dtype=self.dtype, layout=self.layout)

    def write(self, pixels: Pixels, out: npt.NDArray[Any]) -> None:
        from dataflow.ops.images.pixels.tensor import write_normalized

        write_normalized(pixels, self.mean, self.std, self.layout, out)
