"""Mixup: each row of a batch blended with the one before it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from connectors.bfloat16 import is_bfloat16
from connectors.tensors import shape_of
from dataflow.errors import PlanError
from dataflow.graph.registry import register
from dataflow.ops.mixing.rows import blend
from dataflow.ops.mixing.step import Floats, Int64s, MixStep, Values, check_alpha

__all__ = ["Mixup", "check_floats"]


def check_floats(step: str, column: str, kind: pa.DataType) -> None:
    """A column of that type has floats of one shape.

    Raises:
        PlanError: it has not.
    """
    dense = shape_of(kind)
    if dense is None or (dense[0].kind != "f" and not is_bfloat16(kind)):
        raise PlanError(
            f"{step}: column {column!r} is {kind}, and only floats of one shape can be blended.",
            hint=f"put .to_dtype({column!r}) or normalize in front of batch",
        )


@register("mixup")
@dataclass(frozen=True, kw_only=True, eq=False)
class Mixup(MixStep):
    """A share of each row, and of its label, comes from the row before; the share is drawn from Beta(alpha, alpha).

    After torchvision.transforms.v2.MixUp (H. Zhang et al., "mixup: Beyond Empirical Risk Minimization", 2018).
    Computed in float32; float16 and bfloat16 are rounded once.
    """

    alpha: float = 0.2

    def __post_init__(self) -> None:
        super().__post_init__()
        check_alpha(self.kind, "alpha", self.alpha)

    def check_column(self, kind: pa.DataType) -> None:
        check_floats(self.kind, self.column, kind)

    def mix(self, values: Values, labels: Floats, rows: Int64s, rng: np.random.Generator) -> None:
        share = rng.beta(self.alpha, self.alpha)
        blend(values, rows, share, bfloat16=is_bfloat16(self.mixed_type))
        blend(labels, rows, share)
