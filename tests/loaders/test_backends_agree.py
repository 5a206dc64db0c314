"""The backends agree: the same samples, boxes and types, and pixels within 35 dB, for every operator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from dali_case import MEAN, STD, delivered, images_of, needs_dali, psnr_db, source

import dataflow as flow
from dataflow.graph.registry import node_kinds
from dataflow.ops.images.step import ImageStep

pytestmark = needs_dali

LEAST_DB = 35.0
Make = Callable[[flow.Pipeline], flow.Pipeline]


def _square(pipe: flow.Pipeline) -> flow.Pipeline:
    return pipe.resize("image", (72, 64))


# Of each operator: steps that show it, and those that DALI makes of a chain of decoding, these and `to_dtype`.
OPERATORS: dict[str, tuple[Make, str]] = {
    "decode_image": (_square, "all"),
    "annotate": (lambda p: _square(p.annotate("image", keypoints="points")).random_flip("image"), "none"),
    "resize": (lambda p: p.resize("image", (80, 50), filter="bicubic"), "all"),
    "resize shorter": (lambda p: p.resize("image", shorter=72).center_crop("image", 64), "all"),
    "resize area": (lambda p: p.resize("image", 64, filter="area"), "decode_image"),
    "resize nearest": (lambda p: p.resize("image", 64, filter="nearest"), "decode_image"),
    "resize twice": (lambda p: _square(p.resize("image", shorter=120)), "decode_image, resize"),
    "center_crop": (lambda p: p.center_crop("image", (100, 90)), "all"),
    "center_crop padded": (lambda p: p.center_crop("image", 240), "all"),
    "center_crop resized": (lambda p: _square(p.center_crop("image", 240)), "all"),
    "random_crop": (lambda p: p.random_crop("image", 100, padding=20, fill=(9, 80, 200)), "all"),
    "random_crop edge": (
        lambda p: p.random_crop("image", 300, pad_if_needed=True, padding_mode="reflect"), "all",
    ),
    "random_resized_crop": (lambda p: p.random_resized_crop("image", 64, filter="bicubic"), "all"),
    "random_flip": (lambda p: _square(p.random_flip("image", 0.5, 0.5)), "all"),
    "random_flip cropped": (
        lambda p: p.random_flip("image", 0.5, 0.5).random_crop("image", 100, padding=(1, 2, 30, 40)), "all",
    ),
    "random_rotate": (lambda p: _square(p).random_rotate("image", 30), "decode_image, resize"),
    "color_jitter": (lambda p: _square(p).color_jitter("image", brightness=0.4, hue=0.1), "decode_image, resize"),
    "random_grayscale": (lambda p: _square(p).random_grayscale("image", 0.5), "all"),
    "to_grayscale": (lambda p: _square(p).to_grayscale("image"), "decode_image, resize"),
    "gaussian_blur": (lambda p: _square(p).gaussian_blur("image", (5, 9), p=0.7), "all"),
    "trivial_augment": (lambda p: _square(p).trivial_augment("image"), "decode_image"),
    "rand_augment": (lambda p: _square(p).rand_augment("image"), "decode_image"),
    "random_erasing": (lambda p: _square(p).random_erasing("image", 0.7, value=(1, 128, 255)), "all"),
    "random_erasing noise": (
        lambda p: _square(p).random_erasing("image", 0.7, value="random"), "decode_image, resize",
    ),
    "normalize": (lambda p: _square(p).normalize("image", MEAN, STD), "all"),
    "to_dtype": (lambda p: _square(p).to_dtype("image", "uint8"), "all"),
}  # fmt: skip


def rows() -> flow.Pipeline:
    points = flow.from_columns({"points": [[[5.0 * row, 40.0]] for row in range(12)]})
    return flow.zip(source(), points).shuffle(8).seed(1)


def test_the_matrix_has_a_row_for_every_operator_on_images() -> None:
    named = {name for name, kind in node_kinds().items() if issubclass(kind, ImageStep)}
    assert named - {"annotate"} <= {name.split()[0] for name in OPERATORS}


@pytest.mark.parametrize("name", OPERATORS)
def test_both_backends_make_the_same_of_every_operator(name: str) -> None:
    make, by_dali = OPERATORS[name]
    pipe = make(rows().decode_image("image", reduced=False)).batch(6)
    (said,) = [line for line in pipe.outline(backend="dali").images if line.startswith("  image:")]
    if by_dali != "none":
        assert said.startswith(
            "  image: all steps" if by_dali == "all" else f"  image: {by_dali} by DALI, then"
        )
    kernel, dali = delivered(pipe, "cpu"), delivered(pipe, "dali")
    for one, other in zip(kernel, dali, strict=True):
        assert one.keys() == other.keys()
        assert one["__id__"].tolist() == other["__id__"].tolist()
        assert one["label"].tolist() == other["label"].tolist()
        assert np.array_equal(np.stack(one["points"]), np.stack(other["points"])), (
            "points follow the same boxes"
        )
        assert one["image"].dtype == other["image"].dtype
        assert one["image"].strides == other["image"].strides
        assert other["image"].flags.writeable
    levels = 1 / min(STD) if name == "normalize" else 255
    assert psnr_db(images_of(kernel), images_of(dali), levels) >= LEAST_DB


@pytest.mark.parametrize("layout", ["NCHW", "NHWC", "channels_last"])
@pytest.mark.parametrize("dtype", ["uint8", "float16", "bfloat16", "float32"])
@pytest.mark.parametrize("step", ["to_dtype", "normalize", "erased", "grey", "unscaled"])
def test_both_backends_write_every_dtype_in_every_layout(step: str, dtype: Any, layout: Any) -> None:
    if step == "normalize" and dtype == "uint8":
        pytest.skip("uint8 has no numbers around zero")
    pipe = rows().decode_image("image", "L" if step == "grey" else "RGB", reduced=False)
    pipe = pipe.random_resized_crop("image", (40, 48)).random_flip("image")
    levels = 255.0 if dtype == "uint8" or step == "unscaled" else 1.0
    if step == "normalize":
        pipe, levels = pipe.normalize("image", MEAN, STD, dtype=dtype, layout=layout), 1 / min(STD)
    else:
        pipe = pipe.to_dtype("image", dtype, scale=step != "unscaled", layout=layout)
    if step == "erased":
        # The noise is the kernel's, over what DALI wrote.
        pipe = pipe.random_erasing("image", 0.5, value=1).random_erasing("image", 0.5, value="random")
    kernel, dali = delivered(pipe.batch(6), "cpu"), delivered(pipe.batch(6), "dali")
    for one, other in zip(kernel, dali, strict=True):
        assert one["image"].dtype == other["image"].dtype
        assert one["image"].shape == other["image"].shape
        assert one["image"].strides == other["image"].strides
    assert psnr_db(images_of(kernel), images_of(dali), levels) >= LEAST_DB


def test_at_reduced_scales_the_backends_still_agree() -> None:
    pipe = rows().decode_image("image").random_resized_crop("image", 48).batch(6)
    assert psnr_db(images_of(delivered(pipe, "cpu")), images_of(delivered(pipe, "dali")), 255) >= LEAST_DB


def test_torch_and_arrow_batches_come_from_both_backends() -> None:
    pipe = rows().decode_image("image").resize("image", 32).to_dtype("image", layout="channels_last").batch(6)
    with pipe.loader(backend="dali") as loader:
        batch = next(iter(loader))
    assert batch["image"].shape == (6, 3, 32, 32)
    assert batch["image"].stride() == (3072, 1, 96, 3)
    batch["image"].zero_()
    with pipe.loader(output="arrow", backend="dali") as dali, pipe.loader(output="arrow") as kernel:
        assert next(iter(dali)).schema == next(iter(kernel)).schema
