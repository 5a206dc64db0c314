"""RandomGrayscale: colour is taken out of an image, or not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from dataflow.graph.registry import register
from dataflow.ops.images.canvas import Image, Planned, Stage
from dataflow.ops.images.check import check_chance
from dataflow.ops.images.step import OneImageStep
from dataflow.ops.images.uniform import chance

__all__ = ["RandomGrayscale"]


@register("random_grayscale")
@dataclass(frozen=True, kw_only=True, eq=False)
class RandomGrayscale(OneImageStep):
    """Make colours grey with probability `p`; the image has as many channels as before, and its alpha.

    After torchvision.transforms.v2.RandomGrayscale, within one level: 0.299 red + 0.587 green + 0.114 blue is rounded,
    as Pillow does, so that grey stays as it is.
    """

    p: float = 0.1
    stage: ClassVar[Stage] = "pixels"
    words: ClassVar[int] = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        check_chance(self.kind, "p", self.p)

    def plan(self, sizes: npt.NDArray[np.int64], words: npt.NDArray[np.uint32]) -> Planned:
        return Planned(chance(words[:, 0], self.p).tolist(), sizes)

    def change(self, image: Image, param: Any) -> None:
        from dataflow.ops.images.pixels.colour import grey_in_place

        if param:
            image.show(grey_in_place(image.pixels()))
