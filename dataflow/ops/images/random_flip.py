"""RandomFlip: mirror an image, or not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from dataflow.graph.registry import register
from dataflow.ops.images.canvas import Canvas, Planned, Stage
from dataflow.ops.images.check import check_chance
from dataflow.ops.images.step import OneImageStep
from dataflow.ops.images.uniform import chance

__all__ = ["RandomFlip"]


@register("random_flip")
@dataclass(frozen=True, kw_only=True, eq=False)
class RandomFlip(OneImageStep):
    """Mirror left and right with probability `horizontal`, up and down with probability `vertical`.

    After torchvision.transforms.v2.RandomHorizontalFlip and RandomVerticalFlip.
    """

    horizontal: float = 0.5
    vertical: float = 0.0
    stage: ClassVar[Stage] = "pixels"
    words: ClassVar[int] = 2
    moves: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        check_chance(self.kind, "horizontal", self.horizontal)
        check_chance(self.kind, "vertical", self.vertical)

    def plan(self, sizes: npt.NDArray[np.int64], words: npt.NDArray[np.uint32]) -> Planned:
        sides = chance(words[:, 0], self.horizontal).tolist()
        ends = chance(words[:, 1], self.vertical).tolist()
        return Planned(list(zip(sides, ends, strict=True)), sizes)

    def change(self, image: Canvas, param: Any) -> None:
        image.flip(horizontal=param[0], vertical=param[1])
