"""Normalize: pixels become numbers around zero, channel by channel, as a model wants them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy.typing as npt

from dataflow.errors import PlanError
from dataflow.graph.image_column import Pixels
from dataflow.graph.registry import register
from dataflow.ops.images.canvas import Stage
from dataflow.ops.images.check import check_channels, check_dtype, check_layout, check_one_shape
from dataflow.ops.images.form import Dtype, Form, Layout
from dataflow.ops.images.step import OneImageStep

__all__ = ["Normalize"]


@register("normalize")
@dataclass(frozen=True, kw_only=True, eq=False)
class Normalize(OneImageStep):
    """(pixel / 255 - mean) / std (of 16 bits: / 65535), computed in float32, as `dtype` in `layout`.

    After torchvision.transforms.v2.ToDtype(float32, scale=True) and Normalize; float32 is the same, bit for bit, and
    float16 and bfloat16 are those numbers rounded.
    """

    mean: tuple[float, ...]
    std: tuple[float, ...]
    dtype: Dtype = "float32"
    layout: Layout = "NCHW"
    stage: ClassVar[Stage] = "write"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_dtype(self.kind, self.dtype)
        if self.dtype == "uint8":
            raise PlanError(
                "normalize: dtype 'uint8' has no numbers around zero.",
                hint="use 'float32', 'float16' or 'bfloat16'; to_dtype gives uint8",
            )
        check_layout(self.kind, self.layout)
        check_channels(self.kind, self.mean, self.std)

    def form_after(self, form: Form) -> Form:
        check_one_shape(self.kind, self.column, form)
        if form.channels != len(self.mean):
            raise PlanError(
                f"normalize: images of {form.channels} channels, and mean= has {len(self.mean)} numbers.",
                hint="give one for each channel",
            )
        return replace(form, dtype=self.dtype, layout=self.layout)

    def write(self, pixels: Pixels, out: npt.NDArray[Any]) -> None:
        from dataflow.ops.images.pixels.tensor import write_normalized

        write_normalized(pixels, self.mean, self.std, self.dtype, self.layout, out)
