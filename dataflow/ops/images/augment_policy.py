"""What trivial_augment and rand_augment have in common: operations, and how strong they may be."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Final

import pyarrow as pa

from dataflow.errors import PlanError
from dataflow.graph.image_column import Pixels
from dataflow.ops.images.canvas import Fill, Image, Stage
from dataflow.ops.images.check import check_count, check_levels
from dataflow.ops.images.filters import WarpFilter, check_warp_filter
from dataflow.ops.images.form import Form
from dataflow.ops.images.step import OneImageStep

__all__ = ["OPERATIONS", "AugmentPolicy", "Operation", "Space"]

# An operation and its magnitude.
Operation = tuple[str, float]
# In the order of torchvision, by which they are drawn.
OPERATIONS: Final = (
    "Identity", "ShearX", "ShearY", "TranslateX", "TranslateY", "Rotate", "Brightness", "Color", "Contrast",
    "Sharpness", "Posterize", "Solarize", "AutoContrast", "Equalize",
)  # fmt: skip
_SIGNED: Final = frozenset(OPERATIONS[1:10])


@dataclass(frozen=True, kw_only=True)
class Space:
    """The greatest magnitude of each operation.

    Fields:
        shear: pixels by which a row, or column, is moved against the next.
        rotate: degrees, counter-clockwise.
        enhance: what is added to 1 for the factor of brightness, colour, contrast and sharpness.
        dropped_bits: those of 8 that posterize leaves out.
        translate: pixels, or None with `translate_share`: a share of the image's side.
    """

    shear: float
    rotate: float
    enhance: float
    dropped_bits: int
    translate: float | None = None
    translate_share: float = 0.0

    def operation(
        self, number: int, level: int, levels: int, negative: bool, size: tuple[int, int]
    ) -> Operation:
        """Operation `number` at a level from 0 to `levels` - 1, on an image of `size` (height, width)."""
        name = OPERATIONS[number]
        magnitude = self._magnitude(name, level, levels, size)
        return name, -magnitude if negative and name in _SIGNED else magnitude

    def _magnitude(self, name: str, level: int, levels: int, size: tuple[int, int]) -> float:
        most = levels - 1
        match name:
            case "ShearX" | "ShearY":
                return self.shear * level / most
            case "TranslateX" | "TranslateY":
                side = size[1] if name == "TranslateX" else size[0]
                limit = self.translate if self.translate is not None else self.translate_share * side
                return float(int(limit * level / most))
            case "Rotate":
                return self.rotate * level / most
            case "Brightness" | "Color" | "Contrast" | "Sharpness":
                return self.enhance * level / most
            case "Posterize":
                return round(8 - self.dropped_bits * level / most)
            case "Solarize":
                return (most - level) / most
        return 0.0


@dataclass(frozen=True, kw_only=True, eq=False)
class AugmentPolicy(OneImageStep):
    """A step that does operations to an image; `param` has them in order.

    Those on colours leave alpha as it is, and those that move pixels take it along. Boxes, keypoints and masks would
    stay behind: where some follow the images, such a step is an error.

    Fields:
        levels: how many steps there are between no change and the greatest.
        filter: how pixels are found where an operation moves them.
        around: what stands where there was no image then, one value or one for each channel.
    """

    levels: int = 31
    filter: WarpFilter = "nearest"
    around: Fill = field(default=0, metadata={"key": "fill"})
    stage: ClassVar[Stage] = "pixels"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_count(self.kind, "levels", self.levels, least=2)
        check_warp_filter(self.kind, self.filter)
        check_levels(self.kind, "fill", self.around)

    def infer(self, schemas: Sequence[pa.Schema | None]) -> pa.Schema | None:
        left = ", ".join(repr(each.column) for each in self.carried[0])
        if left:
            raise PlanError(
                f"{self.kind} moves the pixels of {self.column!r}, and {left} would not follow.",
                hint="use random_rotate, random_crop and random_flip, which columns follow, and color_jitter",
            )
        return super().infer(schemas)

    def form_after(self, form: Form) -> Form:
        check_levels(self.kind, "fill", self.around, form)
        return form

    def change(self, image: Image, param: list[Operation]) -> None:
        from dataflow.ops.images.pixels.augment import augment

        if not param:
            return
        pixels: Pixels = image.pixels()
        for name, magnitude in param:
            pixels = augment(pixels, name, magnitude, self.filter, self.around)
        image.show(pixels)
