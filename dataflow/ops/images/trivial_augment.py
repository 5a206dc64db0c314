"""TrivialAugment: one operation at random, at random strength."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np
import numpy.typing as npt

from dataflow.graph.registry import register
from dataflow.ops.images.augment_policy import OPERATIONS, AugmentPolicy, Space
from dataflow.ops.images.canvas import Planned
from dataflow.ops.images.uniform import below, chance

__all__ = ["TrivialAugment"]

_WIDE: Final = Space(shear=0.99, rotate=135.0, enhance=0.99, dropped_bits=6, translate=32.0)


@register("trivial_augment")
@dataclass(frozen=True, kw_only=True, eq=False)
class TrivialAugment(AugmentPolicy):
    """Do one of 14 operations to each image, at one of `levels` magnitudes, all drawn evenly.

    After S. G. Mueller and F. Hutter, "TrivialAugment: tuning-free yet state-of-the-art data augmentation", ICCV 2021,
    its wide space, as torchvision.transforms.v2.TrivialAugmentWide has it. Magnitudes are exact here, and of 32 bits
    there, where a shift of 16 pixels is 15.
    """

    words: ClassVar[int] = 3

    def plan(self, sizes: npt.NDArray[np.int64], words: npt.NDArray[np.uint32]) -> Planned:
        numbers = below(words[:, 0], np.full(len(words), len(OPERATIONS))).tolist()
        levels = below(words[:, 1], np.full(len(words), self.levels)).tolist()
        signs = chance(words[:, 2], 0.5).tolist()
        drawn = zip(numbers, levels, signs, sizes.tolist(), strict=True)
        return Planned(
            [
                [_WIDE.operation(number, level, self.levels, sign, size)]
                for number, level, sign, size in drawn
            ],
            sizes,
        )
