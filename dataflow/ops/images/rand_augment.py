"""RandAugment: several operations at random, at one strength."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np
import numpy.typing as npt

from dataflow.graph.registry import register
from dataflow.ops.images.augment_policy import OPERATIONS, AugmentPolicy, Space
from dataflow.ops.images.canvas import Planned
from dataflow.ops.images.check import check_count
from dataflow.ops.images.uniform import below, chance

__all__ = ["RandAugment"]

_SPACE: Final = Space(shear=0.3, rotate=30.0, enhance=0.9, dropped_bits=4, translate_share=150 / 331)
# A step draws a fixed number of words.
_MOST: Final = 16


@register("rand_augment")
@dataclass(frozen=True, kw_only=True, eq=False)
class RandAugment(AugmentPolicy):
    """Do `num_ops` (up to 16) of 14 operations to each image, drawn evenly, at one `magnitude` below `levels`.

    An operation may come twice; its sign is drawn.
    After E. D. Cubuk et al., "RandAugment: practical automated data augmentation with a reduced search space", NeurIPS
    2020, as torchvision.transforms.v2.RandAugment has it.
    """

    num_ops: int = 2
    magnitude: int = 9
    words: ClassVar[int] = 2 * _MOST

    def __post_init__(self) -> None:
        super().__post_init__()
        check_count(self.kind, "num_ops", self.num_ops, least=0, most=_MOST)
        check_count(self.kind, "magnitude", self.magnitude, least=0, most=self.levels - 1)

    def plan(self, sizes: npt.NDArray[np.int64], words: npt.NDArray[np.uint32]) -> Planned:
        drawn = words[:, : 2 * self.num_ops]
        numbers = below(drawn[:, ::2], np.full((1, 1), len(OPERATIONS))).tolist()
        signs = chance(drawn[:, 1::2], 0.5).tolist()
        return Planned(
            [
                [
                    _SPACE.operation(number, self.magnitude, self.levels, sign, size)
                    for number, sign in zip(operations, negative, strict=True)
                ]
                for operations, negative, size in zip(numbers, signs, sizes.tolist(), strict=True)
            ],
            sizes,
        )
