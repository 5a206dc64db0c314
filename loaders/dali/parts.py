"""How steps are done in DALI: what each wants to know of an image, and its nodes in the graph."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final, NamedTuple, Protocol, cast

import numpy as np
import numpy.typing as npt

from dataflow.errors import InternalError
from dataflow.ops.images.canvas import Image
from dataflow.ops.images.form import Dtype, Layout
from dataflow.ops.images.random_erasing import Erasure
from dataflow.ops.images.step import OneImageStep
from loaders.dali.course import Course

__all__ = ["INTERPOLATION", "Blur", "Cut", "Erase", "Grey", "Input", "Part", "Write"]

# Nodes of a graph of DALI's, and its module: it has no types, and is loaded where a graph is built.
Node = Any
Dali = Any
Values = npt.NDArray[Any]
# As good as no blur: all weight is on the middle.
_SHARP: Final = 1e-3


class Input(NamedTuple):
    """Numbers that a part wants of each image: their dtype and how many axes they have."""

    dtype: type[np.generic]
    ndim: int


class Part(Protocol):
    """One step, or several, in DALI."""

    @property
    def inputs(self) -> Sequence[Input]: ...

    def values(self, size: tuple[int, int], params: Sequence[Any]) -> Sequence[Values]:
        """The numbers for one image that comes with `size`, of what its steps have decided."""

    def build(self, dali: Dali, pixels: Node, inputs: Sequence[Node]) -> Node:
        """What comes out, of pixels (height, width, channels), or for the first part of files."""


# A filter that DALI has as it is defined here: its others differ from ours by a PSNR of 27 to 40 dB.
INTERPOLATION: Final = {"bilinear": "INTERP_LINEAR", "bicubic": "INTERP_CUBIC"}


@dataclass(frozen=True, kw_only=True)
class Cut:
    """Decoding, and the steps that move pixels.

    Fields:
        filter: that of the step that resizes; None where none does.
        cuts: whether some may keep less than all of it then, or reach out, where `fill` stands.
    """

    steps: tuple[OneImageStep, ...]
    channels: int
    filter: str | None
    cuts: bool
    fill: float | tuple[float, ...]
    flips: bool
    mixed: bool

    @property
    def inputs(self) -> Sequence[Input]:
        pair = [Input(np.int32, 1)] * 2
        resize = [] if self.filter is None else [Input(np.float32, 1)]
        return [
            *pair,
            *resize,
            *(pair if self.cuts else []),
            *([Input(np.int32, 0)] * 2 if self.flips else []),
        ]

    def course(self, size: tuple[int, int], params: Sequence[Any]) -> Course:
        """What these steps do to one image.

        Raises:
            Unfit: they do more than is done here.
        """
        course = Course(size)
        for step, param in zip(self.steps, params, strict=True):
            step.change(cast(Image, course), param)
        return course

    def values(self, size: tuple[int, int], params: Sequence[Any]) -> Sequence[Values]:
        course = self.course(size, params)
        numbers: list[object] = [course.start, course.shape]
        if self.filter is not None:
            numbers.append(course.resized)
        if self.cuts:
            numbers += [course.anchor, course.cut]
        if self.flips:
            numbers += [course.mirrored, course.upside_down]
        return [np.array(each, wanted.dtype) for each, wanted in zip(numbers, self.inputs, strict=True)]

    def build(self, dali: Dali, pixels: Node, inputs: Sequence[Node]) -> Node:
        left = iter(inputs)
        pixels = dali.fn.decoders.image_slice(
            pixels, next(left), next(left), axes=[0, 1], device="mixed" if self.mixed else "cpu",
            output_type=dali.types.GRAY if self.channels == 1 else dali.types.RGB,
        )  # fmt: skip
        if self.filter is not None:
            interpolation = getattr(dali.types, INTERPOLATION[self.filter])
            pixels = dali.fn.resize(pixels, size=next(left), interp_type=interpolation, antialias=True)
        if self.cuts:
            fill = self.fill if isinstance(self.fill, tuple) else (self.fill,) * self.channels
            pixels = dali.fn.slice(
                pixels, next(left), next(left), axes=[0, 1], out_of_bounds_policy="pad",
                fill_values=[float(f) for f in fill],
            )  # fmt: skip
        if self.flips:
            pixels = dali.fn.flip(pixels, horizontal=next(left), vertical=next(left))
        return pixels


@dataclass(frozen=True, kw_only=True)
class Grey:
    """Colour is taken out of those images whose step has decided so."""

    inputs: ClassVar[Sequence[Input]] = (Input(np.float32, 0),)

    def values(self, size: tuple[int, int], params: Sequence[Any]) -> Sequence[Values]:
        return (np.array(0.0 if params[0] else 1.0, np.float32),)

    def build(self, dali: Dali, pixels: Node, inputs: Sequence[Node]) -> Node:
        return dali.fn.color_twist(pixels, saturation=inputs[0])


@dataclass(frozen=True, kw_only=True)
class Blur:
    """Blur under a Gaussian of the image's own deviation."""

    kernel_size: tuple[int, int]
    inputs: ClassVar[Sequence[Input]] = (Input(np.float32, 1),)

    def values(self, size: tuple[int, int], params: Sequence[Any]) -> Sequence[Values]:
        return (np.full(2, _SHARP if params[0] is None else params[0], np.float32),)

    def build(self, dali: Dali, pixels: Node, inputs: Sequence[Node]) -> Node:
        return dali.fn.gaussian_blur(pixels, window_size=list(self.kernel_size), sigma=inputs[0])


_DTYPES: Final = {
    "uint8": "UINT8", "float16": "FLOAT16", "bfloat16": "FLOAT", "float32": "FLOAT",
}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Write:
    """Numbers of a tensor: (pixel - mean) / std in levels. bfloat16 comes as float32, to be rounded."""

    mean: tuple[float, ...]
    std: tuple[float, ...]
    dtype: Dtype
    layout: Layout
    inputs: ClassVar[Sequence[Input]] = ()

    def values(self, size: tuple[int, int], params: Sequence[Any]) -> Sequence[Values]:
        return ()

    def build(self, dali: Dali, pixels: Node, inputs: Sequence[Node]) -> Node:
        return dali.fn.crop_mirror_normalize(
            pixels, mean=list(self.mean), std=list(self.std), dtype=getattr(dali.types, _DTYPES[self.dtype]),
            output_layout="CHW" if self.layout == "NCHW" else "HWC",
        )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Erase:
    """A box is painted over."""

    value: float | tuple[float, ...]
    inputs: ClassVar[Sequence[Input]] = (Input(np.float32, 1), Input(np.float32, 1))

    def values(self, size: tuple[int, int], params: Sequence[Any]) -> Sequence[Values]:
        box = params[0]
        if box is None:
            return np.zeros(2, np.float32), np.zeros(2, np.float32)
        if not isinstance(box, Erasure):
            raise InternalError(f"random_erasing has decided on {box!r}.")
        return np.array([box.top, box.left], np.float32), np.array([box.height, box.width], np.float32)

    def build(self, dali: Dali, pixels: Node, inputs: Sequence[Node]) -> Node:
        value = list(self.value) if isinstance(self.value, tuple) else self.value
        return dali.fn.erase(pixels, anchor=inputs[0], shape=inputs[1], axis_names="HW", fill_value=value)
