"""Checks on the arguments of image operators."""

from __future__ import annotations

from collections.abc import Sequence
from typing import get_args

import numpy as np

from dataflow.errors import DataError, PlanError, near
from dataflow.given import is_number, is_pair
from dataflow.ops.images.form import Dtype, Form, Layout

__all__ = [
    "check_chance",
    "check_channels",
    "check_count",
    "check_dtype",
    "check_layout",
    "check_levels",
    "check_one_shape",
    "check_range",
    "check_size",
    "each_channel",
]


def check_size(step: str, size: object, *, name: str = "size") -> None:
    """`size` is (height, width), whole numbers over 0.

    Raises:
        PlanError: it is not.
    """
    fits = isinstance(size, tuple | list) and len(size) == 2
    if not fits or not all(type(side) is int and side > 0 for side in size):  # type: ignore[attr-defined]
        raise PlanError(f"{step}: {name}={size!r}.", hint="give one number, or (height, width), over 0")


def check_chance(step: str, name: str, value: object) -> None:
    """`value` is a probability.

    Raises:
        PlanError: it is not.
    """
    if not is_number(value) or not 0 <= value <= 1:
        raise PlanError(f"{step}: {name}={value!r} is no probability.", hint="give a number from 0 to 1")


def check_range(step: str, name: str, value: object, *, low: float, high: float = float("inf")) -> None:
    """`value` is a pair of numbers, the first not above the second, over `low` and at most `high`.

    Raises:
        PlanError: it is not.
    """
    if not is_pair(value) or not low < value[0] <= value[1] <= high:
        raise PlanError(
            f"{step}: {name}={value!r}.", hint=f"give (low, high), numbers over {low:g}" + (
                "" if high == float("inf") else f" and at most {high:g}")
        )  # fmt: skip


def check_layout(step: str, layout: object) -> None:
    """`layout` is one of a batch.

    Raises:
        PlanError: it is not.
    """
    known = [name for name in get_args(Layout) if name != "HWC"]
    if not isinstance(layout, str) or layout not in known:
        raise PlanError(
            f"{step}: layout {layout!r} is unknown.", hint=near(str(layout), known, what="layout")
        )


def check_dtype(step: str, dtype: object) -> None:
    """`dtype` is one that images may be written in.

    Raises:
        PlanError: it is not.
    """
    known = get_args(Dtype)
    if not isinstance(dtype, str) or dtype not in known:
        raise PlanError(f"{step}: dtype {dtype!r} is unknown.", hint=near(str(dtype), known, what="dtype"))


def check_one_shape(step: str, column: str, form: Form) -> None:
    """All images have one size and one number of channels, so that they are a tensor.

    Raises:
        PlanError: they may differ.
    """
    if form.channels is None:
        raise PlanError(
            f"{step}: how many channels the images of {column!r} have is not known.",
            hint='decode them with mode="RGB", "L" or "RGBA"',
        )
    if form.size is None:
        raise PlanError(
            f"{step}: the images of {column!r} have no one size.",
            hint="resize or crop them first, as .random_resized_crop(...)",
        )


def check_channels(step: str, mean: Sequence[float], std: Sequence[float]) -> None:
    """As many means as deviations, numbers, the latter over 0.

    Raises:
        PlanError: it is not so.
    """
    numbers = all(map(is_number, (*mean, *std)))
    if not mean or len(mean) != len(std) or not numbers or min(std) <= 0:
        raise PlanError(
            f"{step}: mean={mean!r}, std={std!r}.",
            hint="give a number for each channel in both, those of std over 0, as flow.IMAGENET_MEAN",
        )


def check_count(step: str, name: str, value: object, *, least: int, most: int | None = None) -> None:
    """`value` is a whole number from `least` to `most`.

    Raises:
        PlanError: it is not.
    """
    if type(value) is not int or value < least or (most is not None and value > most):
        upto = "on" if most is None else f"to {most}"
        raise PlanError(f"{step}: {name}={value!r}.", hint=f"give a whole number from {least} {upto}")


def check_levels(step: str, name: str, value: object, form: Form | None = None) -> None:
    """`value` is a number, or several: one for each channel of images of this form, as far as it is known.

    Pixels have whole numbers.

    Raises:
        PlanError: it is not.
    """
    values = value if isinstance(value, tuple | list) else (value,)
    if not values or not all(map(is_number, values)):
        raise PlanError(
            f"{step}: {name}={value!r}.", hint="give one number, or a tuple of one for each channel"
        )
    if form is None:
        return
    if isinstance(value, tuple | list) and form.channels not in (None, len(value)):
        raise PlanError(
            f"{step}: {name}={value!r} for images of {form.channels} channels.",
            hint="give one number, or one for each channel",
        )
    top = np.iinfo(form.dtype).max if form.dtype.startswith("uint") else None
    if top is not None and not all(float(v).is_integer() and 0 <= v <= top for v in values):
        raise PlanError(
            f"{step}: {name}={value!r} for pixels of {form.dtype}.",
            hint=f"give whole numbers from 0 to {top}",
        )


def each_channel(name: str, value: float | Sequence[float], channels: int) -> tuple[float, ...]:
    """What argument `name` has for each channel of an image.

    Raises:
        DataError: it has another number of channels.
    """
    values = tuple(value) if isinstance(value, Sequence) else (value,) * channels
    if len(values) != channels:
        raise DataError(
            f"{name}={value!r} for an image of {channels} channels.",
            hint="give one number, or one for each channel",
        )
    return values
