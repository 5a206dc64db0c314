"""GaussianBlur: an image out of focus."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from dataflow.errors import PlanError
from dataflow.graph.registry import register
from dataflow.ops.images.canvas import Image, Planned, Stage
from dataflow.ops.images.check import check_chance, check_range, check_size
from dataflow.ops.images.step import OneImageStep
from dataflow.ops.images.uniform import between, chance

__all__ = ["GaussianBlur"]


@register("gaussian_blur")
@dataclass(frozen=True, kw_only=True, eq=False)
class GaussianBlur(OneImageStep):
    """Blur with probability `p` under a Gaussian whose deviation is even in `sigma`, in pixels; alpha stays.

    `kernel_size` is (height, width) of the pixels that it averages, odd numbers; they are mirrored at the edges, as
    often as a small image needs it.
    After torchvision.transforms.v2.GaussianBlur.
    """

    kernel_size: tuple[int, int]
    sigma: tuple[float, float] = (0.1, 2.0)
    p: float = 1.0
    stage: ClassVar[Stage] = "pixels"
    words: ClassVar[int] = 2

    def __post_init__(self) -> None:
        super().__post_init__()
        check_size(self.kind, self.kernel_size, name="kernel_size")
        if not all(side % 2 for side in self.kernel_size):
            raise PlanError(
                f"gaussian_blur: kernel_size={self.kernel_size!r} has no middle.", hint="give odd numbers"
            )
        check_range(self.kind, "sigma", self.sigma, low=0.0)
        check_chance(self.kind, "p", self.p)

    def plan(self, sizes: npt.NDArray[np.int64], words: npt.NDArray[np.uint32]) -> Planned:
        blurred = chance(words[:, 0], self.p).tolist()
        sigmas = between(words[:, 1], *self.sigma).tolist()
        return Planned([sigma if yes else None for yes, sigma in zip(blurred, sigmas, strict=True)], sizes)

    def change(self, image: Image, param: Any) -> None:
        from dataflow.ops.images.pixels.blur import gaussian_blur

        if param is not None:
            image.show(gaussian_blur(image.pixels(), self.kernel_size, param))
