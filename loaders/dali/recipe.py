"""Recipe: the steps of a chain that DALI does, as parts of a graph."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from dataflow.ops.images.augment_policy import AugmentPolicy
from dataflow.ops.images.center_crop import CenterCrop
from dataflow.ops.images.decode_image import DecodeImage
from dataflow.ops.images.gaussian_blur import GaussianBlur
from dataflow.ops.images.normalize import Normalize
from dataflow.ops.images.random_crop import RandomCrop
from dataflow.ops.images.random_erasing import RandomErasing
from dataflow.ops.images.random_flip import RandomFlip
from dataflow.ops.images.random_grayscale import RandomGrayscale
from dataflow.ops.images.random_resized_crop import RandomResizedCrop
from dataflow.ops.images.resize import Resize
from dataflow.ops.images.step import OneImageStep
from dataflow.ops.images.to_dtype import ToDtype
from loaders.dali.course import Unfit
from loaders.dali.parts import INTERPOLATION, Blur, Cut, Erase, Grey, Input, Part, Write

__all__ = ["Recipe", "recipe_of"]

_CHANNELS: Final = {"RGB": 3, "L": 1}


@dataclass(frozen=True)
class Recipe:
    """`cut` does the first `moved` steps behind decoding, each of `effects` one of those that follow."""

    cut: Cut
    effects: tuple[Part, ...]

    @property
    def done(self) -> int:
        """How many steps that are, decoding included."""
        return 1 + len(self.cut.steps) + len(self.effects)

    @property
    def inputs(self) -> list[Input]:
        """What is wanted of each image."""
        return [wanted for part in (self.cut, *self.effects) for wanted in part.inputs]

    @property
    def rounds(self) -> bool:
        """Whether what comes out is to be rounded to bfloat16."""
        return any(isinstance(part, Write) and part.dtype == "bfloat16" for part in self.effects)

    def fits(self, size: tuple[int, int], params: Sequence[Any]) -> bool:
        """Whether an image of `size`, for which its steps decided on `params`, can be made in this way."""
        try:
            course = self.cut.course(size, params[1 : 1 + len(self.cut.steps)])
        except Unfit:
            return False
        kernels = [part.kernel_size for part in self.effects if isinstance(part, Blur)]
        return all(side > most // 2 for k in kernels for side, most in zip(course.size, k, strict=True))

    def values(self, size: tuple[int, int], params: Sequence[Any]) -> Iterator[npt.NDArray[np.generic]]:
        """The numbers of `inputs` for one image."""
        moved = 1 + len(self.cut.steps)
        yield from self.cut.values(size, params[1:moved])
        for part, param in zip(self.effects, params[moved:], strict=True):
            yield from part.values(size, [param])


@lru_cache(maxsize=32)
def recipe_of(steps: tuple[OneImageStep, ...], *, mixed: bool = False) -> Recipe | None:
    """The recipe of as many of these steps as there is one for, from the first on; None: not even of decoding.

    `mixed`: files are decoded on a GPU.
    """
    decode = steps[0]
    channels = _CHANNELS.get(decode.mode) if isinstance(decode, DecodeImage) else None
    if channels is None:
        return None
    cut = _cut_of(steps[1:], channels, mixed=mixed)
    effects: list[Part] = []
    for step in steps[1 + len(cut.steps) :]:
        effect = _effect_of(step, channels)
        if effect is None:
            break
        effects.append(effect)
    return Recipe(cut, tuple(effects))


def _cut_of(steps: Sequence[OneImageStep], channels: int, *, mixed: bool) -> Cut:
    """As many steps as can be one crop, one resize, one crop and flips."""
    moving: list[OneImageStep] = []
    filter, fill, flips, cuts = None, None, False, False
    # Some of their operations make sixteen levels of one, by which resized pixels may differ.
    exact = any(isinstance(step, AugmentPolicy) for step in steps)
    for step in steps:
        if isinstance(step, Resize | RandomResizedCrop):
            if exact or filter is not None or step.filter not in INTERPOLATION:
                break
            filter = step.filter
        elif isinstance(step, CenterCrop | RandomCrop):
            around = step.around if isinstance(step, RandomCrop) else 0
            if fill not in (None, around):
                break
            fill, cuts = around, True
        elif isinstance(step, RandomFlip):
            flips = True
        else:
            break
        moving.append(step)
    return Cut(
        steps=tuple(moving),
        channels=channels,
        filter=filter,
        cuts=cuts,
        fill=fill or 0,
        flips=flips,
        mixed=mixed,
    )


def _effect_of(step: OneImageStep, channels: int) -> Part | None:
    """A step that moves no pixels; None: DALI does not do it as it is defined."""
    if isinstance(step, RandomGrayscale) and channels == 3:
        return Grey()
    if isinstance(step, GaussianBlur):
        return Blur(kernel_size=step.kernel_size)
    if isinstance(step, RandomErasing) and not isinstance(step.value, str):
        return Erase(value=step.value)
    if isinstance(step, Normalize):
        mean, std = (tuple(255 * number for number in numbers) for numbers in (step.mean, step.std))
        return Write(mean=mean, std=std, dtype=step.dtype, layout=step.layout)
    if isinstance(step, ToDtype):
        most = 255.0 if step.scale and step.dtype != "uint8" else 1.0
        return Write(mean=(0.0,) * channels, std=(most,) * channels, dtype=step.dtype, layout=step.layout)
    return None
