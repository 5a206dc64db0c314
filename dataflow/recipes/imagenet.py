"""Images with labels, as models for ImageNet are trained and evaluated."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from dataflow.fluent import Pipeline
from dataflow.given import as_whole, check_choice, is_number
from dataflow.ops.images.form import Dtype, Layout
from dataflow.ops.images.statistics import IMAGENET_MEAN, IMAGENET_STD
from dataflow.recipes.columns import IMAGE, LABEL, Given, taken

__all__ = ["imagenet_eval", "imagenet_train"]

# The shorter side before the middle is cut out, as a share of what is cut out: 256 pixels for 224.
_AROUND = 256 / 224


def imagenet_train(
    source: Given, *, image: str | None = None, label: str | None = None, size: int = 224,
    scale: tuple[float, float] = (0.08, 1.0), augment: Literal["none", "trivial", "rand"] = "none",
    erasing: float = 0.0, mean: Sequence[float] = IMAGENET_MEAN, std: Sequence[float] = IMAGENET_STD,
    dtype: Dtype = "float32", layout: Layout = "NCHW", window: int | str = "64MB", seed: int | None = None,
    batch_size: int = 64, global_size: int | None = None, lanes: int | None = None,
) -> Pipeline:  # fmt: skip
    """Shuffled batches of `image` (rows, 3, size, size), a random part, mirrored every second time, and `label`.

    Args:
        source: a URL or several, as those of `flow.read`, or a pipeline (without batches) that gives rows.
        image, label: the columns of files and of class numbers; None: those of usual names.
        scale: the area of a part, as a share of the image.
        augment: "trivial" for `trivial_augment`, "rand" for `rand_augment`.
        erasing: the probability of `random_erasing`.
        window: of the shuffle, in bytes or rows.
        seed: of all that is random; None: that of `source`, else 0.
        batch_size: rows of a rank's batch.
        global_size: in its place, rows of all ranks' batches together.
        mean, std, dtype, layout, lanes: as those of `normalize` and `batch`.

    Raises:
        PlanError: an argument is wrong, or a column is not found; says which there are.

    Source: the recipe of torchvision, https://github.com/pytorch/vision/tree/main/references/classification.
    """
    check_choice("imagenet_train", "augment", augment, ("none", "trivial", "rand"))
    pipe = taken("imagenet_train", source, {IMAGE: image, LABEL: label}).shuffle(window)
    pipe = pipe if seed is None else pipe.seed(seed)
    pipe = pipe.decode_image("image").random_resized_crop("image", size, scale=scale).random_flip("image")
    if augment == "trivial":
        pipe = pipe.trivial_augment("image")
    elif augment == "rand":
        pipe = pipe.rand_augment("image")
    pipe = pipe.normalize("image", mean, std, dtype=dtype, layout=layout)
    # What is no probability is random_erasing's to refuse.
    if not is_number(erasing) or erasing != 0:
        pipe = pipe.random_erasing("image", erasing)
    return pipe.batch(batch_size if global_size is None else None, global_size=global_size, lanes=lanes)


def imagenet_eval(
    source: Given, *, image: str | None = None, label: str | None = None, size: int = 224,
    resize: int | None = None, mean: Sequence[float] = IMAGENET_MEAN, std: Sequence[float] = IMAGENET_STD,
    dtype: Dtype = "float32", layout: Layout = "NCHW", batch_size: int = 64, global_size: int | None = None,
    lanes: int | None = None,
) -> Pipeline:  # fmt: skip
    """Batches of the middle of every `image` (rows, 3, size, size) and of `label`, in file order.

    No row is left out: rows that only fill the last batch are False in `__valid__`.

    Args:
        resize: the shorter side in front of the crop, in pixels; None: 256 for a size of 224, and so on.
        source, image, label, mean, std, dtype, layout, batch_size, global_size, lanes: as those of `imagenet_train`.

    Raises:
        PlanError: an argument is wrong, or a column is not found; says which there are.

    Source: as that of `imagenet_train`.
    """
    said = f"imagenet_eval(size={size!r}) is no number of pixels."
    size = as_whole(size, said, hint="give one number for both sides, as 224", least=1)
    pipe = (
        taken("imagenet_eval", source, {IMAGE: image, LABEL: label})
        .decode_image("image")
        .resize("image", shorter=round(size * _AROUND) if resize is None else resize)
        .center_crop("image", size)
        .normalize("image", mean, std, dtype=dtype, layout=layout)
    )
    own = batch_size if global_size is None else None
    return pipe.batch(own, global_size=global_size, lanes=lanes, remainder="pad")
