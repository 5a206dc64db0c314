"""trivial_augment and rand_augment draw the operations of torchvision's definition, at its magnitudes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from photographs import photograph

import dataflow as flow
from dataflow.errors import PlanError
from dataflow.ops.images.augment_policy import OPERATIONS
from dataflow.ops.images.pixels.augment import augment
from dataflow.ops.images.rand_augment import RandAugment
from dataflow.ops.images.trivial_augment import TrivialAugment

words = st.lists(st.integers(0, 2**32 - 1), min_size=32, max_size=32)
sides = st.integers(1, 2000)
UNSIGNED = ("Identity", "Posterize", "Solarize", "AutoContrast", "Equalize")
Magnitudes = Callable[[int, int, int], Any]


def linear(limit: float) -> Magnitudes:
    return lambda bins, height, width: torch.linspace(0.0, limit, bins, dtype=torch.float64)


def posterized(bits: int) -> Magnitudes:
    return lambda bins, height, width: (8 - (torch.arange(bins) / ((bins - 1) / bits))).round().int()


def solarized(bins: int, height: int, width: int) -> Any:
    return torch.linspace(1.0, 0.0, bins)


def none(bins: int, height: int, width: int) -> Any:
    return torch.zeros(bins)


# The _AUGMENTATION_SPACE of torchvision.transforms.v2.TrivialAugmentWide and RandAugment.
WIDE: dict[str, Magnitudes] = {
    "Identity": none, "ShearX": linear(0.99), "ShearY": linear(0.99), "TranslateX": linear(32.0),
    "TranslateY": linear(32.0), "Rotate": linear(135.0), "Brightness": linear(0.99), "Color": linear(0.99),
    "Contrast": linear(0.99), "Sharpness": linear(0.99), "Posterize": posterized(6), "Solarize": solarized,
    "AutoContrast": none, "Equalize": none,
}  # fmt: skip
RAND: dict[str, Magnitudes] = {
    **{name: linear(0.9) for name in ("Brightness", "Color", "Contrast", "Sharpness")},
    "Identity": none, "ShearX": linear(0.3), "ShearY": linear(0.3), "Rotate": linear(30.0),
    "TranslateX": lambda bins, height, width: linear(150.0 / 331.0 * width)(bins, height, width),
    "TranslateY": lambda bins, height, width: linear(150.0 / 331.0 * height)(bins, height, width),
    "Posterize": posterized(4), "Solarize": solarized, "AutoContrast": none, "Equalize": none,
}  # fmt: skip


def defined(
    space: dict[str, Magnitudes], number: int, level: int, bins: int, sign: int, size: tuple[int, int]
) -> tuple[str, float]:
    name = OPERATIONS[number]
    magnitude = float(space[name](bins, *size)[level])
    if name.startswith("Translate"):
        magnitude = int(magnitude)
    return name, -magnitude if sign < 2**31 and name not in UNSIGNED else magnitude


@given(words, sides, sides, st.integers(2, 40))
def test_trivial_augment_draws_one_operation_of_the_wide_space(
    row: list[int], height: int, width: int, levels: int
) -> None:
    step = TrivialAugment(column="image", levels=levels)
    sizes, drawn = np.array([[height, width]]), np.array([row[:3]], np.uint32)
    ((made,),) = step.plan(sizes, drawn).params
    wanted = defined(WIDE, 14 * row[0] >> 32, levels * row[1] >> 32, levels, row[2], (height, width))
    assert made[0] == wanted[0]
    assert made[1] == pytest.approx(wanted[1], abs=1e-5)


@given(words, sides, sides, st.integers(0, 16), st.integers(0, 30))
def test_rand_augment_draws_operations_of_one_magnitude(
    row: list[int], height: int, width: int, num_ops: int, magnitude: int
) -> None:
    step = RandAugment(column="image", num_ops=num_ops, magnitude=magnitude)
    (made,) = step.plan(np.array([[height, width]]), np.array([row], np.uint32)).params
    assert len(made) == num_ops
    for place, (name, strength) in enumerate(made):
        number, sign = row[2 * place : 2 * place + 2]
        wanted = defined(RAND, 14 * number >> 32, magnitude, 31, sign, (height, width))
        assert name == wanted[0]
        assert strength == pytest.approx(wanted[1], abs=1e-4)


def test_every_operation_is_drawn_equally_often_with_both_signs() -> None:
    rows = np.random.default_rng(0).integers(0, 2**32, (28_000, 3), np.uint32)
    params = TrivialAugment(column="image").plan(np.full((28_000, 2), 64), rows).params
    found = Counter(name for ((name, _),) in params)
    assert set(found) == set(OPERATIONS)
    assert min(found.values()) > 1800
    negative = Counter(name for ((name, magnitude),) in params if magnitude < 0)
    assert set(negative) == set(OPERATIONS) - set(UNSIGNED)
    assert all(900 < count < 1100 for count in negative.values())


@pytest.mark.parametrize("name", OPERATIONS)
@pytest.mark.parametrize("size", [(1, 1), (1, 8), (33, 21)])
@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
def test_every_operation_takes_images_of_any_form(name: str, size: tuple[int, int], dtype: Any) -> None:
    for channels in (1, 2, 3, 4):
        pixels = np.random.default_rng(3).integers(0, 256, (*size, channels)).astype(dtype)
        pixels.flags.writeable = False
        for magnitude in (0.4, 1.0):
            made = augment(pixels, name, magnitude, "bilinear", 0)
            assert made.shape == pixels.shape
            assert made.dtype == dtype


def test_the_weakest_operations_change_nothing() -> None:
    pixels = photograph(1)
    for name in OPERATIONS[:10]:
        assert np.array_equal(augment(pixels, name, 0.0, "nearest", 0), pixels), name
    assert np.array_equal(augment(pixels, "Posterize", 8, "nearest", 0), pixels)


@pytest.mark.parametrize("num_ops", [0, 3])
def test_rand_augment_does_its_operations_one_after_the_other(num_ops: int) -> None:
    pixels = np.stack([photograph(row, 40, 50) for row in range(6)])
    pipe = flow.from_columns({"image": pixels}).rand_augment(
        "image", num_ops, fill=(1, 2, 3), filter="bilinear"
    )
    made = pipe[2]["image"]
    assert np.array_equal(made, pixels[2]) == (num_ops == 0)


@pytest.mark.parametrize(
    ("verb", "arguments", "what"),
    [
        ("trivial_augment", {"levels": 1}, "levels"),
        ("trivial_augment", {"levels": 3.5}, "levels"),
        ("trivial_augment", {"filter": "bicubic"}, "bilinear"),
        ("trivial_augment", {"filter": np.arange(3)}, "bilinear"),
        ("trivial_augment", {"fill": (1, 2)}, "channels"),
        ("trivial_augment", {"fill": 300}, "255"),
        ("trivial_augment", {"fill": "black"}, "one number"),
        ("rand_augment", {"num_ops": -1}, "num_ops"),
        ("rand_augment", {"num_ops": 17}, "to 16"),
        ("rand_augment", {"magnitude": 31}, "to 30"),
        ("rand_augment", {"magnitude": True}, "magnitude"),
    ],
)
def test_arguments_of_no_policy_are_an_error(verb: str, arguments: dict[str, Any], what: str) -> None:
    pipe = flow.from_columns({"image": [b""]}).decode_image("image")
    with pytest.raises(PlanError) as caught:
        getattr(pipe, verb)("image", **arguments)
    assert what in f"{caught.value.message} {caught.value.hint}"
    assert caught.value.hint


def test_a_policy_behind_an_annotate_names_what_it_would_leave_behind() -> None:
    pixels = np.zeros((2, 8, 8, 3), np.uint8)
    rows = flow.from_columns({"image": pixels, "boxes": [[[0.0, 0, 4, 4]]] * 2, "corner": [[1.0, 2]] * 2})
    pipe = rows.annotate("image", boxes="boxes", keypoints="corner").random_flip("image")
    for verb in ("trivial_augment", "rand_augment"):
        with pytest.raises(PlanError, match=f"{verb} moves .* 'boxes', 'corner'") as caught:
            getattr(pipe, verb)("image")
        assert "random_rotate" in caught.value.hint
    assert len(pipe.drop("boxes", "corner").rand_augment("image")[1]["image"]) == 8
