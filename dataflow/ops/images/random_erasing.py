"""RandomErasing: a random box of an image is painted over."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from dataflow.errors import PlanError
from dataflow.graph.image_column import Pixels
from dataflow.graph.registry import register
from dataflow.ops.images.alpha import colours
from dataflow.ops.images.canvas import Planned, Stage
from dataflow.ops.images.check import check_chance, check_levels, check_range, each_channel
from dataflow.ops.images.form import Form
from dataflow.ops.images.step import OneImageStep
from dataflow.ops.images.uniform import below, between, chance

__all__ = ["Erasure", "RandomErasing", "erase_boxes"]

Int64s = npt.NDArray[np.int64]
UInt32s = npt.NDArray[np.uint32]
_TRIES = 10


class Erasure(NamedTuple):
    """A box, and the seed of the noise in it."""

    top: int
    left: int
    height: int
    width: int
    seed: int


@register("random_erasing")
@dataclass(frozen=True, kw_only=True, eq=False)
class RandomErasing(OneImageStep):
    """Paint a box of random area and aspect ratio over with `value`, with probability `p`.

    Works on pixels, and on tensors behind normalize. The area is a share of the image's, even in `scale`; the
    ratio of height to width is even in the logarithm of `ratio`; the place is even. An image on which ten tries do not
    fit stays as it is. `value` is one number, a tuple of one for each channel, or "random": normal noise (mean 0,
    deviation 1) in a tensor, evenly any level in pixels. Alpha stays, unless the tuple has a number for it.
    After torchvision.transforms.v2.RandomErasing, which has normal noise in pixels as well.
    """

    p: float = 0.5
    scale: tuple[float, float] = (0.02, 0.33)
    ratio: tuple[float, float] = (0.3, 3.3)
    value: float | tuple[float, ...] | str = 0
    stage: ClassVar[Stage] = "tensor"
    words: ClassVar[int] = 3 + 4 * _TRIES

    def __post_init__(self) -> None:
        super().__post_init__()
        check_chance(self.kind, "p", self.p)
        check_range(self.kind, "scale", self.scale, low=0.0, high=1.0)
        check_range(self.kind, "ratio", self.ratio, low=0.0)
        if not isinstance(self.value, str):
            check_levels(self.kind, "value", self.value)
        elif self.value != "random":
            raise PlanError(
                f"random_erasing: value={self.value!r}.",
                hint='give "random", one number, or a tuple of one for each channel',
            )

    def form_after(self, form: Form) -> Form:
        if not isinstance(self.value, str):
            check_levels(self.kind, "value", self.value, form)
        return form

    def plan(self, sizes: Int64s, words: UInt32s) -> Planned:
        boxes, fits = erase_boxes(sizes, words[:, 3:], self.scale, self.ratio)
        painted = chance(words[:, 0], self.p) & fits
        seeds = words[:, 1].astype(np.uint64) << np.uint64(32) | words[:, 2]
        drawn = zip(painted.tolist(), boxes.tolist(), seeds.tolist(), strict=True)
        return Planned(
            [
                Erasure(top, left, height, width, seed) if yes else None
                for yes, (top, left, height, width), seed in drawn
            ],
            sizes,
        )

    def paint(self, tensor: npt.NDArray[Any], param: Erasure) -> None:
        box = tensor[param.top : param.top + param.height, param.left : param.left + param.width]
        if isinstance(self.value, tuple | list):
            box[...] = each_channel("value", self.value, box.shape[2])
            return
        visible = box[..., : colours(box.shape[2])]
        visible[...] = _noise(visible, param.seed) if self.value == "random" else self.value


def erase_boxes(
    sizes: Int64s, words: UInt32s, scale: tuple[float, float], ratio: tuple[float, float]
) -> tuple[Int64s, npt.NDArray[np.bool_]]:
    """Boxes (top, left, height, width), int64 (images, 4), and which of them fit.

    From sizes (images, 2) and words (images, 40).
    """
    tries = words.reshape(len(sizes), _TRIES, 4)
    high, wide = sizes[:, :1], sizes[:, 1:]
    area = between(tries[..., 0], *scale) * (high * wide)
    aspect = np.exp(between(tries[..., 1], np.log(ratio[0]), np.log(ratio[1])))
    height = np.rint(np.sqrt(area * aspect)).astype(np.int64)
    width = np.rint(np.sqrt(area / aspect)).astype(np.int64)
    fits = (height < high) & (width < wide)
    chosen, rows = fits.argmax(axis=1), np.arange(len(sizes))
    size = np.column_stack([height[rows, chosen], width[rows, chosen]])
    free = np.maximum(0, sizes - size)
    top = below(tries[rows, chosen, 2], free[:, 0] + 1)
    left = below(tries[rows, chosen, 3], free[:, 1] + 1)
    return np.column_stack([top, left, size]), fits[rows, chosen]


def _noise(box: Pixels, seed: int) -> npt.NDArray[Any]:
    """What "random" paints in a box, of its shape."""
    generator = np.random.Generator(np.random.Philox(key=seed))
    if box.dtype.kind == "u":
        return generator.integers(0, np.iinfo(box.dtype).max, box.shape, box.dtype, endpoint=True)
    return generator.standard_normal(box.shape, np.float32)
