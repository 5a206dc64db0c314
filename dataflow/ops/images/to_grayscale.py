"""ToGrayscale: images without colour."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from dataflow.errors import PlanError
from dataflow.graph.registry import register
from dataflow.ops.images.canvas import Image, Stage
from dataflow.ops.images.form import Form
from dataflow.ops.images.step import OneImageStep

__all__ = ["ToGrayscale"]


@register("to_grayscale")
@dataclass(frozen=True, kw_only=True, eq=False)
class ToGrayscale(OneImageStep):
    """Make colours grey: one channel, or three equal ones, without alpha.

    After torchvision.transforms.v2.Grayscale, within one level: see random_grayscale.
    """

    channels: int = 1
    stage: ClassVar[Stage] = "pixels"

    def __post_init__(self) -> None:
        super().__post_init__()
        if type(self.channels) is not int or self.channels not in (1, 3):
            raise PlanError(f"to_grayscale: channels={self.channels!r}.", hint="use 1 or 3")

    def form_after(self, form: Form) -> Form:
        return replace(form, channels=self.channels)

    def change(self, image: Image, param: Any) -> None:
        from dataflow.ops.images.pixels.colour import grey

        image.show(np.repeat(np.asarray(grey(image.pixels()))[..., None], self.channels, axis=2))
