"""Every operator on images: of many sizes and of one, as tensors, and with what follows them."""

from __future__ import annotations

from pathlib import Path

from operator_case import OperatorCase, pictures

import dataflow as flow
from dataflow.ops.images.form import Layout

HALVES = (0.5, 0.5, 0.5)


def decoded(folder: Path) -> flow.Pipeline:
    """Images of many sizes."""
    return pictures(folder).select("file", "label").decode_image("file")


def annotated(folder: Path) -> flow.Pipeline:
    followed = pictures(folder).drop("image", "label").decode_image("file")
    return followed.annotate("file", boxes="boxes", keypoints="point", masks="mask")


def dense(folder: Path) -> flow.Pipeline:
    """Images of one size."""
    return pictures(folder).select("image", "label")


def tensors(folder: Path, layout: Layout) -> flow.Pipeline:
    return dense(folder).to_dtype("image", "bfloat16", layout=layout)


CASES = [
    OperatorCase(operator="decode_image", about="sizes", build=decoded),
    OperatorCase(operator="decode_image", about="grey", build=lambda f: pictures(f).decode_image("file", "L")),
    OperatorCase(operator="annotate", about="all kinds", build=annotated),
    OperatorCase(operator="resize", about="size", build=lambda f: decoded(f).resize("file", (6, 7))),
    OperatorCase(operator="resize", about="followed", build=lambda f: annotated(f).resize("file", shorter=6)),
    OperatorCase(operator="center_crop", about="followed", build=lambda f: annotated(f).center_crop("file", 7)),
    OperatorCase(operator="random_crop", about="sizes", build=lambda f: decoded(f).random_crop("file", 7)),
    OperatorCase(
        operator="random_crop", about="followed",
        build=lambda f: annotated(f).random_crop("file", (9, 8), padding=2, key="crop"),
    ),
    OperatorCase(
        operator="random_resized_crop", about="followed", build=lambda f: annotated(f).random_resized_crop("file", 6),
    ),
    OperatorCase(operator="random_flip", about="followed", build=lambda f: annotated(f).random_flip("file", 0.5, 0.5)),
    OperatorCase(operator="random_flip", about="one size", build=lambda f: dense(f).random_flip("image")),
    OperatorCase(
        operator="random_rotate", about="followed", build=lambda f: annotated(f).random_rotate("file", 30, expand=True),
    ),
    OperatorCase(
        operator="color_jitter", about="sizes",
        build=lambda f: decoded(f).color_jitter("file", brightness=0.4, contrast=0.4, saturation=0.4, hue=0.1),
    ),
    OperatorCase(operator="random_grayscale", about="sizes", build=lambda f: decoded(f).random_grayscale("file", 0.5)),
    OperatorCase(operator="to_grayscale", about="one size", build=lambda f: dense(f).to_grayscale("image", 3)),
    OperatorCase(operator="gaussian_blur", about="one size", build=lambda f: dense(f).gaussian_blur("image", 3)),
    OperatorCase(operator="random_erasing", about="sizes", build=lambda f: decoded(f).random_erasing("file", 0.8)),
    OperatorCase(
        operator="random_erasing", about="tensors", build=lambda f: dense(f).normalize("image", HALVES, HALVES)
        .random_erasing("image", value="random"),
    ),
    OperatorCase(
        operator="random_erasing", about="bfloat16",
        build=lambda f: tensors(f, "channels_last").random_erasing("image", value=(1.0, 0.5, 0.25)),
    ),
    OperatorCase(operator="trivial_augment", about="sizes", build=lambda f: decoded(f).trivial_augment("file")),
    OperatorCase(operator="rand_augment", about="one size", build=lambda f: dense(f).rand_augment("image")),
    OperatorCase(operator="normalize", about="NCHW", build=lambda f: dense(f).normalize("image", HALVES, HALVES)),
    OperatorCase(
        operator="normalize", about="float16",
        build=lambda f: dense(f).normalize("image", HALVES, HALVES, dtype="float16", layout="NHWC"),
    ),
    OperatorCase(operator="to_dtype", about="NCHW", build=lambda f: tensors(f, "NCHW")),
    OperatorCase(operator="to_dtype", about="channels last", build=lambda f: tensors(f, "channels_last")),
]  # fmt: skip
