"""Cutmix: part of each image of a batch replaced by that of the one before it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from connectors.tensors import shape_of
from dataflow.errors import PlanError
from dataflow.graph.registry import register
from dataflow.ops.images.check import check_layout
from dataflow.ops.images.form import Layout
from dataflow.ops.mixing.rows import blend, part_of, paste
from dataflow.ops.mixing.step import Floats, Int64s, MixStep, Values, check_alpha

__all__ = ["Cutmix", "check_images", "cut_and_mix"]

_MOST_CHANNELS = 4


def check_images(step: str, column: str, kind: pa.DataType, layout: Layout) -> None:
    """A column of that type has images of one size in this layout.

    Raises:
        PlanError: it has not.
    """
    dense = shape_of(kind)
    channels = None if dense is None or len(dense[1]) != 3 else dense[1][-1 if layout == "NHWC" else 0]
    if channels is None or channels > _MOST_CHANNELS:
        raise PlanError(
            f"{step}: column {column!r} is {kind}, no images in the layout {layout}.",
            hint="resize them to one size in front of batch, and give the layout= that they have, as layout='NHWC'",
        )


def cut_and_mix(
    values: Values, labels: Floats, rows: Int64s, rng: np.random.Generator, alpha: float, layout: Layout
) -> None:
    """Paste a part of a drawn size and place, the same in all images, and mix the labels by its area."""
    first = layout != "NHWC"
    height, width = values.shape[2:] if first else values.shape[1:3]
    share = rng.beta(alpha, alpha)
    column, line = int(rng.integers(width)), int(rng.integers(height))
    part, share = part_of(height, width, share, (line, column))
    paste(values, rows, part, channels_first=first)
    blend(labels, rows, share)


@register("cutmix")
@dataclass(frozen=True, kw_only=True, eq=False)
class Cutmix(MixStep):
    """A part of each image comes from the row before, and of its label the same share.

    The share that stays is drawn from Beta(alpha, alpha), the middle of the part evenly; what lies outside is cut off.
    After torchvision.transforms.v2.CutMix (S. Yun et al., "CutMix", ICCV 2019).
    """

    alpha: float = 1.0
    layout: Layout = "NCHW"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_alpha(self.kind, "alpha", self.alpha)
        check_layout(self.kind, self.layout)

    def check_column(self, kind: pa.DataType) -> None:
        check_images(self.kind, self.column, kind, self.layout)

    def mix(self, values: Values, labels: Floats, rows: Int64s, rng: np.random.Generator) -> None:
        cut_and_mix(values, labels, rows, rng, self.alpha, self.layout)
