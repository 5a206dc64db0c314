"""RandomRotate: images turned by a random angle."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import isfinite
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from dataflow.errors import PlanError
from dataflow.given import check_flags, is_pair
from dataflow.graph.registry import register
from dataflow.ops.images.canvas import Canvas, Fill, Planned, Stage
from dataflow.ops.images.check import check_levels
from dataflow.ops.images.filters import WarpFilter, check_warp_filter
from dataflow.ops.images.form import Form
from dataflow.ops.images.step import OneImageStep
from dataflow.ops.images.uniform import between

__all__ = ["RandomRotate", "turned"]

Int64s = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


@register("random_rotate")
@dataclass(frozen=True, kw_only=True, eq=False)
class RandomRotate(OneImageStep):
    """Turn by an angle that is even in `degrees` (low, high), counter-clockwise.

    After torchvision.transforms.v2.RandomRotation; but at the edges of a turned image "bilinear" mixes its pixels with
    `fill` alone, and not with black too.

    Fields:
        expand: the image becomes as large as the whole turned image needs; else it keeps its size.
        center: the point (x, y) that stays, in pixels from the upper left corner; None: the middle.
        around: what stands where there was no image, one value or one for each channel.
    """

    degrees: tuple[float, float]
    filter: WarpFilter = "nearest"
    expand: bool = False
    center: tuple[float, float] | None = None
    around: Fill = field(default=0, metadata={"key": "fill"})
    stage: ClassVar[Stage] = "pixels"
    words: ClassVar[int] = 1
    moves: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if not _is_finite_pair(self.degrees) or not self.degrees[0] <= self.degrees[1]:
            raise PlanError(
                f"random_rotate: degrees={self.degrees!r}.", hint="give a number from 0 on, or (low, high)"
            )
        check_warp_filter(self.kind, self.filter)
        check_flags(self.kind, expand=self.expand)
        if self.center is not None and (self.expand or not _is_finite_pair(self.center)):
            raise PlanError(
                f"random_rotate: center={self.center!r}, expand={self.expand}.",
                hint="give (x, y) in pixels, without expand, which has the middle stay in the middle",
            )
        check_levels(self.kind, "fill", self.around)

    def form_after(self, form: Form) -> Form:
        check_levels(self.kind, "fill", self.around, form)
        return replace(form, size=None) if self.expand else form

    def plan(self, sizes: Int64s, words: npt.NDArray[np.uint32]) -> Planned:
        angles = between(words[:, 0], *self.degrees)
        matrices, after = turned(sizes, angles, self.center, expand=self.expand)
        return Planned(list(zip(matrices, after.tolist(), strict=True)), after)

    def change(self, image: Canvas, param: Any) -> None:
        matrix, (height, width) = param
        image.warp(matrix, height, width, self.filter, self.around)


def turned(
    sizes: Int64s, degrees: Floats, center: tuple[float, float] | None, *, expand: bool
) -> tuple[Floats, Int64s]:
    """Where a turn leads, (images, 2, 3) as `Matrix`, and the sizes (height, width) behind it, (images, 2)."""
    angles = np.deg2rad(degrees)
    cos, sin = np.cos(angles), np.sin(angles)
    # y points down.
    turn = np.stack([np.stack([cos, sin], axis=1), np.stack([-sin, cos], axis=1)], axis=1)
    middle = sizes[:, ::-1] / 2
    after = _spanned(sizes, turn, degrees % 90 == 0) if expand else sizes
    stays = middle if center is None else np.broadcast_to(np.array(center, np.float64), middle.shape)
    goes = after[:, ::-1] / 2 if expand else stays
    shift = goes - np.einsum("nij,nj->ni", turn, stays)
    return np.concatenate([turn, shift[:, :, None]], axis=2), after


def _spanned(sizes: Int64s, turn: Floats, whole: npt.NDArray[np.bool_]) -> Int64s:
    """Heights and widths of turned images: of all pixels that they touch by more than 1/20,000.

    `whole`: by quarters, so that pixels lie on pixels though the middle of an odd side lies within one.
    """
    half = sizes[:, ::-1] / 2
    reach = np.einsum("nij,nj->ni", np.abs(turn), half)
    touched = np.ceil(np.round(half + reach, 4)) - np.floor(np.round(half - reach, 4))
    spans = np.where(whole[:, None], np.rint(2 * reach), touched)
    return np.asarray(spans[:, ::-1], np.int64)


def _is_finite_pair(value: object) -> bool:
    return is_pair(value) and all(map(isfinite, value))
