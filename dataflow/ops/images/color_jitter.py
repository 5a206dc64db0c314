"""ColorJitter: brightness, contrast, saturation and hue changed at random."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import permutations
from sys import float_info
from typing import Any, ClassVar, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from dataflow.errors import PlanError
from dataflow.given import is_number
from dataflow.graph.registry import register
from dataflow.ops.images.canvas import Image, Planned, Stage
from dataflow.ops.images.step import OneImageStep
from dataflow.ops.images.uniform import below, between

__all__ = ["ColorJitter", "Strength", "factors"]

# How much: a number, or the range (low, high) of the factor.
Strength: TypeAlias = float | tuple[float, float]
_NAMES: Final = ("brightness", "contrast", "saturation", "hue")
_ORDERS: Final = tuple(permutations(_NAMES))


@register("color_jitter")
@dataclass(frozen=True, kw_only=True, eq=False)
class ColorJitter(OneImageStep):
    """Multiply brightness, contrast and saturation by random factors and shift the hue, in random order.

    A number x stands for factors from max(0, 1 - x) to 1 + x, and for shifts from -x to x, in turns round the circle
    of hues, at most 0.5; 0 leaves the image as it is. A pair is the range itself. Grey images have no saturation and
    no hue; alpha stays.
    After torchvision.transforms.v2.ColorJitter, pixels within one level for factors up to 2: grey is rounded here, as
    Pillow's, and cut off there.
    """

    brightness: Strength = 0.0
    contrast: Strength = 0.0
    saturation: Strength = 0.0
    hue: Strength = 0.0
    stage: ClassVar[Stage] = "pixels"
    words: ClassVar[int] = 5

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in _NAMES:
            factors(name, getattr(self, name))

    def plan(self, sizes: npt.NDArray[np.int64], words: npt.NDArray[np.uint32]) -> Planned:
        drawn: dict[str, list[float]] = {}
        for place, name in enumerate(_NAMES):
            limits = factors(name, getattr(self, name))
            if limits is not None:
                drawn[name] = between(words[:, place], *limits).tolist()
        orders = below(words[:, 4], np.full(len(words), len(_ORDERS))).tolist()
        return Planned(
            [
                [(name, drawn[name][image]) for name in _ORDERS[order] if name in drawn]
                for image, order in enumerate(orders)
            ],
            sizes,
        )

    def change(self, image: Image, param: Any) -> None:
        from dataflow.ops.images.pixels.colour import adjust

        if param:
            image.show(adjust(image.pixels(), param))


def factors(name: str, strength: object) -> tuple[float, float] | None:
    """The range of factors, or of shifts, that an argument stands for; None where nothing changes.

    Raises:
        PlanError: it stands for none.
    """
    same, least, most = (0.0, -0.5, 0.5) if name == "hue" else (1.0, 0.0, float_info.max)
    pair = strength if isinstance(strength, tuple | list) else (strength, strength)
    if len(pair) == 2 and all(map(is_number, pair)):
        low, high = pair if pair is strength else (max(least, same - pair[0]), same + pair[0])
        if least <= low <= high <= most:
            return None if low == high == same else (float(low), float(high))
    bounds = "from -0.5 to 0.5" if name == "hue" else "from 0 on"
    raise PlanError(
        f"color_jitter: {name}={strength!r}.", hint=f"give one number from 0 on, or (low, high), {bounds}"
    )
