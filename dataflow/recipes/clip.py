"""Pairs of an image and a text, as CLIP is trained on them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dataflow.errors import PlanError
from dataflow.fluent import Pipeline
from dataflow.given import as_whole
from dataflow.ops.images.form import Dtype, Layout
from dataflow.ops.images.statistics import CLIP_MEAN, CLIP_STD
from dataflow.recipes.columns import IMAGE, TEXT, Given, taken

__all__ = ["clip_pairs"]


def clip_pairs(
    source: Given, *, image: str | None = None, text: str | None = None, size: int = 224,
    tokenize: Callable[[str], Any] | None = None, length: int = 77, scale: tuple[float, float] = (0.9, 1.0),
    mean: Sequence[float] = CLIP_MEAN, std: Sequence[float] = CLIP_STD, dtype: Dtype = "float32",
    layout: Layout = "NCHW", window: int | str = "64MB", seed: int | None = None, batch_size: int = 64,
    global_size: int | None = None, lanes: int | None = None,
) -> Pipeline:  # fmt: skip
    """Shuffled batches of `image` (rows, 3, size, size), most of it resized ("bicubic"), and of `text`.

    Args:
        image, text: the columns of files and of texts; None: those of usual names.
        tokenize: makes the `length` token numbers of a text, as a list, an array or a tensor, also of shape
            (1, length); then `tokens` int64 (rows, length) stands in the place of `text`.
        source, scale, mean, std, dtype, layout, window, seed, batch_size, global_size, lanes: as those of
            `imagenet_train`.

    Raises:
        PlanError: an argument is wrong, or a column is not found; says which there are.

    Source: the training transform of OpenCLIP, https://github.com/mlfoundations/open_clip.
    """
    pipe = taken("clip_pairs", source, {IMAGE: image, TEXT: text}).shuffle(window)
    pipe = pipe if seed is None else pipe.seed(seed)
    if tokenize is not None:
        if not callable(tokenize):
            raise PlanError(
                f"clip_pairs(tokenize={tokenize!r}) is no function.",
                hint="give one from a text to its tokens",
            )
        said = f"clip_pairs(length={length!r}) is no number of tokens."
        length = as_whole(length, said, hint="give the number that `tokenize` makes, as 77", least=1)
        made = {"tokens": f"int64[{length}]"}
        pipe = pipe.map(_Tokens(tokenize), add=True, schema=made).select("image", "tokens")
    pipe = (
        pipe.decode_image("image")
        .random_resized_crop("image", size, scale=scale, filter="bicubic")
        .normalize("image", mean, std, dtype=dtype, layout=layout)
    )
    return pipe.batch(batch_size if global_size is None else None, global_size=global_size, lanes=lanes)


@dataclass(frozen=True)
class _Tokens:
    """The row function that adds what `tokenize` makes of the text."""

    tokenize: Callable[[str], Any]

    def __call__(self, row: Mapping[str, Any]) -> dict[str, npt.NDArray[np.int64]]:
        return {"tokens": np.asarray(self.tokenize(row["text"]), np.int64).reshape(-1)}
