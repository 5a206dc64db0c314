"""MixupOrCutmix: one of the two for each batch."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from connectors.bfloat16 import is_bfloat16
from dataflow.graph.registry import register
from dataflow.ops.images.check import check_chance, check_layout
from dataflow.ops.images.form import Layout
from dataflow.ops.mixing.cutmix import check_images, cut_and_mix
from dataflow.ops.mixing.mixup import check_floats
from dataflow.ops.mixing.rows import blend
from dataflow.ops.mixing.step import Floats, Int64s, MixStep, Values, check_alpha

__all__ = ["MixupOrCutmix"]


@register("mixup_or_cutmix")
@dataclass(frozen=True, kw_only=True, eq=False)
class MixupOrCutmix(MixStep):
    """Cutmix with probability `switch`, else mixup; `mixup` and `cutmix` are the alphas of both.

    After torchvision.transforms.v2.RandomChoice of MixUp and CutMix.
    """

    mixup: float = 0.2
    cutmix: float = 1.0
    switch: float = 0.5
    layout: Layout = "NCHW"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_alpha(self.kind, "mixup", self.mixup)
        check_alpha(self.kind, "cutmix", self.cutmix)
        check_chance(self.kind, "switch", self.switch)
        check_layout(self.kind, self.layout)

    def check_column(self, kind: pa.DataType) -> None:
        check_floats(self.kind, self.column, kind)
        check_images(self.kind, self.column, kind, self.layout)

    def mix(self, values: Values, labels: Floats, rows: Int64s, rng: np.random.Generator) -> None:
        if rng.random() < self.switch:
            cut_and_mix(values, labels, rows, rng, self.cutmix, self.layout)
            return
        share = rng.beta(self.mixup, self.mixup)
        blend(values, rows, share, bfloat16=is_bfloat16(self.mixed_type))
        blend(labels, rows, share)
