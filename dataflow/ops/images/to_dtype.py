"""ToDtype: pixels become numbers of a dtype, in the layout of a batch."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy.typing as npt

from dataflow.errors import PlanError
from dataflow.given import check_flags
from dataflow.graph.image_column import Pixels
from dataflow.graph.registry import register
from dataflow.ops.images.canvas import Stage
from dataflow.ops.images.check import check_dtype, check_layout, check_one_shape
from dataflow.ops.images.form import Dtype, Form, Layout
from dataflow.ops.images.step import OneImageStep

__all__ = ["ToDtype"]


@register("to_dtype")
@dataclass(frozen=True, kw_only=True, eq=False)
class ToDtype(OneImageStep):
    """Pixels as numbers of `dtype` in `layout`: floats from 0 to 1 with `scale`, else as they are.

    uint8 pixels stay what they are as uint8; of 16 bits `scale` keeps the upper half. float16 and bfloat16 are the
    float32 numbers rounded. After torchvision.transforms.v2.ToDtype; float32 is the same, bit for bit.
    """

    dtype: Dtype = "float32"
    scale: bool = True
    layout: Layout = "NCHW"
    stage: ClassVar[Stage] = "write"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_dtype(self.kind, self.dtype)
        check_flags(self.kind, scale=self.scale)
        check_layout(self.kind, self.layout)

    def form_after(self, form: Form) -> Form:
        check_one_shape(self.kind, self.column, form)
        if self.dtype == "uint8" and form.dtype != "uint8" and not self.scale:
            raise PlanError(
                f"to_dtype: the images of {self.column!r} are {form.dtype}, which uint8 cannot hold.",
                hint="use scale=True for the upper half of their bits",
            )
        return replace(form, dtype=self.dtype, layout=self.layout)

    def write(self, pixels: Pixels, out: npt.NDArray[Any]) -> None:
        from dataflow.ops.images.pixels.tensor import write_numbers

        write_numbers(pixels, self.dtype, scale=self.scale, layout=self.layout, out=out)
