"""The verbs of `flow.Pipeline` that are about images."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self, cast

from dataflow.given import as_names, as_tuple
from dataflow.graph.pipeline import PipelineBase
from dataflow.ops.images.annotate import Annotate
from dataflow.ops.images.canvas import Fill, Padding
from dataflow.ops.images.center_crop import CenterCrop
from dataflow.ops.images.color_jitter import ColorJitter, Strength
from dataflow.ops.images.decode_image import DecodeImage, Mode
from dataflow.ops.images.filters import Filter, WarpFilter
from dataflow.ops.images.form import Dtype, Layout
from dataflow.ops.images.gaussian_blur import GaussianBlur
from dataflow.ops.images.normalize import Normalize
from dataflow.ops.images.rand_augment import RandAugment
from dataflow.ops.images.random_crop import RandomCrop, Sides
from dataflow.ops.images.random_erasing import RandomErasing
from dataflow.ops.images.random_flip import RandomFlip
from dataflow.ops.images.random_grayscale import RandomGrayscale
from dataflow.ops.images.random_resized_crop import RandomResizedCrop
from dataflow.ops.images.random_rotate import RandomRotate
from dataflow.ops.images.resize import Resize
from dataflow.ops.images.to_dtype import ToDtype
from dataflow.ops.images.to_grayscale import ToGrayscale
from dataflow.ops.images.trivial_augment import TrivialAugment
from dataflow.ops.mixing.cutmix import Cutmix
from dataflow.ops.mixing.mixup import Mixup
from dataflow.ops.mixing.mixup_or_cutmix import MixupOrCutmix

__all__ = ["ImageVerbs"]

Size = int | tuple[int, int]


def _sides(size: Size) -> tuple[int, int]:
    return (size, size) if isinstance(size, int) else size


def _names(argument: str, given: str | Sequence[str]) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else as_names("annotate", argument, given)


def _channels(fill: int | Sequence[int]) -> Fill:
    return tuple(fill) if isinstance(fill, list) else cast(Fill, fill)


def _around(padding: int | Sequence[int] | None) -> Sides | None:
    """Padding of the left, above, right and below."""
    if padding is None:
        return None
    if not isinstance(padding, Sequence):
        return (padding,) * 4
    return tuple(padding) * 2 if len(padding) == 2 else tuple(padding)


class ImageVerbs(PipelineBase):
    """Decoding and augmenting. Sizes are in pixels: one number for both sides, or (height, width).

    Random steps draw for each sample and epoch; `key` names the draws, so that they stay where steps are added.
    """

    def decode_image(
        self, column: str, mode: Mode = "RGB", *, max_pixels: int = 178_956_970, reduced: bool = True,
        verify: bool = False,
    ) -> Self:  # fmt: skip
        """Decode files (JPEG, PNG, WebP, GIF, BMP, TIFF) to uint8 images (height, width, channels).

        An image of more than `max_pixels` is a bad row. `reduced`: a JPEG that later steps make smaller is decoded at
        a smaller scale. `verify`: damage of a JPEG below the part that later steps want is found too, as it always is
        with `on_error="skip"` and `"replace"`.
        """
        return self.then(
            DecodeImage(column=column, mode=mode, max_pixels=max_pixels, reduced=reduced, verify=verify)
        )

    def annotate(
        self, column: str, *, boxes: str | Sequence[str] = (), keypoints: str | Sequence[str] = (),
        masks: str | Sequence[str] = (), mask_fill: int = 0,
    ) -> Self:  # fmt: skip
        """Let boxes (x1, y1, x2, y2), keypoints (x, y) and masks (class numbers, as PNG) go where the pixels go.

        They are columns beside the images of `column`, in pixels of the image as it is here.
        """
        return self.then(
            Annotate(
                column=column,
                boxes=_names("boxes", boxes),
                keypoints=_names("keypoints", keypoints),
                masks=_names("masks", masks),
                mask_fill=mask_fill,
            )
        )

    def resize(
        self, column: str, size: Size | None = None, *, shorter: int | None = None, longer: int | None = None,
        max_size: int | None = None, filter: Filter = "bilinear",
    ) -> Self:  # fmt: skip
        """Resize to `size`, or so that the `shorter` or `longer` side has so many pixels.

        `max_size`, beside `shorter`: the longer side has no more.
        """
        sides = None if size is None else _sides(size)
        return self.then(
            Resize(
                column=column, size=sides, shorter=shorter, longer=longer, max_size=max_size, filter=filter
            )
        )

    def center_crop(self, column: str, size: Size) -> Self:
        """Cut out the middle."""
        return self.then(CenterCrop(column=column, size=_sides(size)))

    def random_crop(
        self, column: str, size: Size, *, padding: int | Sequence[int] | None = None,
        pad_if_needed: bool = False, fill: int | Sequence[int] = 0, padding_mode: Padding = "constant",
        key: str | None = None,
    ) -> Self:  # fmt: skip
        """Cut out a part of this size, at a random place of the image with `padding` around it.

        Args:
            padding: rows and columns on each side: one number, (left and right, above and below), or (left, above,
                right, below).
            pad_if_needed: add what the image lacks; else one that is too small is a bad row.
            fill, padding_mode: what is added: `fill`, one value or one for each channel ("constant"), the outermost
                pixels ("edge"), or the image mirrored, without or with these ("reflect", "symmetric").
        """
        return self.then(
            RandomCrop(
                column=column, size=_sides(size), padding=_around(padding), pad_if_needed=pad_if_needed,
                around=_channels(fill), padding_mode=padding_mode, draws=key,
            )
        )  # fmt: skip

    def random_resized_crop(
        self, column: str, size: Size, *, scale: tuple[float, float] = (0.08, 1.0),
        ratio: tuple[float, float] = (3 / 4, 4 / 3), filter: Filter = "bilinear", key: str | None = None,
    ) -> Self:  # fmt: skip
        """Crop a part of random area (a share of the whole) and ratio of width to height, and resize it."""
        return self.then(
            RandomResizedCrop(
                column=column, size=_sides(size), scale=scale, ratio=ratio, filter=filter, draws=key
            )
        )

    def random_flip(
        self, column: str, horizontal: float = 0.5, vertical: float = 0.0, *, key: str | None = None
    ) -> Self:
        """Mirror left and right, and up and down, with these probabilities."""
        return self.then(RandomFlip(column=column, horizontal=horizontal, vertical=vertical, draws=key))

    def random_rotate(
        self, column: str, degrees: float | tuple[float, float], *, filter: WarpFilter = "nearest",
        expand: bool = False, center: tuple[float, float] | None = None, fill: int | Sequence[int] = 0,
        key: str | None = None,
    ) -> Self:  # fmt: skip
        """Turn by a random angle, counter-clockwise: from (low, high) `degrees`, or up to so many either way.

        Args:
            expand: the image becomes as large as the whole turned image needs.
            center: the point (x, y) that stays, in pixels; None: the middle.
            fill: what stands where there was no image, one value or one for each channel.
        """
        span = (-degrees, degrees) if isinstance(degrees, int | float) else degrees
        return self.then(
            RandomRotate(
                column=column,
                degrees=span,
                filter=filter,
                expand=expand,
                center=center,
                around=_channels(fill),
                draws=key,
            )
        )

    def color_jitter(
        self, column: str, *, brightness: Strength = 0.0, contrast: Strength = 0.0, saturation: Strength = 0.0,
        hue: Strength = 0.0, key: str | None = None,
    ) -> Self:  # fmt: skip
        """Change brightness, contrast, saturation and hue, in random order.

        A number x is a factor from 1 - x to 1 + x (of `hue`, at most 0.5, a shift from -x to x turns round the circle
        of hues); a pair is the lowest and the highest.
        """
        return self.then(
            ColorJitter(
                column=column,
                brightness=brightness,
                contrast=contrast,
                saturation=saturation,
                hue=hue,
                draws=key,
            )
        )

    def random_grayscale(self, column: str, p: float = 0.1, *, key: str | None = None) -> Self:
        """Make colours grey with probability `p`; the image keeps its channels."""
        return self.then(RandomGrayscale(column=column, p=p, draws=key))

    def to_grayscale(self, column: str, channels: int = 1) -> Self:
        """Make colours grey: one channel, or three equal ones."""
        return self.then(ToGrayscale(column=column, channels=channels))

    def gaussian_blur(
        self, column: str, kernel_size: Size, sigma: float | tuple[float, float] = (0.1, 2.0), *, p: float = 1.0,
        key: str | None = None,
    ) -> Self:  # fmt: skip
        """Blur with probability `p`: a Gaussian of `sigma` pixels (a number, or a range) over an odd `kernel_size`."""
        sigmas = (sigma, sigma) if isinstance(sigma, int | float) else sigma
        return self.then(
            GaussianBlur(column=column, kernel_size=_sides(kernel_size), sigma=sigmas, p=p, draws=key)
        )

    def random_erasing(
        self, column: str, p: float = 0.5, *, scale: tuple[float, float] = (0.02, 0.33),
        ratio: tuple[float, float] = (0.3, 3.3), value: float | tuple[float, ...] | str = 0, key: str | None = None,
    ) -> Self:  # fmt: skip
        """Paint a random box over with probability `p`, in pixels or behind normalize.

        Args:
            scale: the range of its area, as a share of the image's.
            ratio: the range of its height by its width.
            value: a number, one for each channel, or "random" for noise.
        """
        return self.then(RandomErasing(column=column, p=p, scale=scale, ratio=ratio, value=value, draws=key))

    def trivial_augment(
        self, column: str, *, levels: int = 31, filter: WarpFilter = "nearest", fill: int | Sequence[int] = 0,
        key: str | None = None,
    ) -> Self:  # fmt: skip
        """Do one of 14 operations at one of so many `levels`, all drawn evenly (TrivialAugment, wide).

        `fill`: what lies outside where an image is moved, a number or one for each channel. Columns that `annotate`
        names cannot follow: where some do, this is an error.
        """
        return self.then(
            TrivialAugment(column=column, levels=levels, filter=filter, around=_channels(fill), draws=key)
        )

    def rand_augment(
        self, column: str, num_ops: int = 2, magnitude: int = 9, *, levels: int = 31, filter: WarpFilter = "nearest",
        fill: int | Sequence[int] = 0, key: str | None = None,
    ) -> Self:  # fmt: skip
        """Do `num_ops` of 14 operations, drawn evenly, at a `magnitude` from 0 to `levels` - 1 (RandAugment).

        `fill`, and what `annotate` names: see `trivial_augment`.
        """
        return self.then(
            RandAugment(
                column=column, num_ops=num_ops, magnitude=magnitude, levels=levels, filter=filter,
                around=_channels(fill), draws=key,
            )
        )  # fmt: skip

    def normalize(
        self, column: str, mean: Sequence[float], std: Sequence[float], *, dtype: Dtype = "float32",
        layout: Layout = "NCHW",
    ) -> Self:  # fmt: skip
        """(pixel / 255 - mean) / std, a `mean` and a `std` for each channel.

        Args:
            dtype: "float32", "float16" or "bfloat16".
            layout: of a batch: "NCHW", "NHWC", or "channels_last" (NCHW over memory that has channels last).
        """
        return self.then(
            Normalize(
                column=column,
                mean=as_tuple("normalize", "mean", mean),
                std=as_tuple("normalize", "std", std),
                dtype=dtype,
                layout=layout,
            )
        )

    def to_dtype(
        self, column: str, dtype: Dtype = "float32", *, scale: bool = True, layout: Layout = "NCHW"
    ) -> Self:
        """Pixels as numbers; as floats from 0 to 1, or with `scale=False` up to 255.

        Args:
            dtype: "uint8", "float32", "float16" or "bfloat16".
            layout: as that of `normalize`.
        """
        return self.then(ToDtype(column=column, dtype=dtype, scale=scale, layout=layout))

    def mixup(
        self, column: str, label: str, alpha: float = 0.2, *, num_classes: int, key: str | None = None
    ) -> Self:
        """Behind `batch`: blend each row with the one before, and the labels, which become float32 (num_classes,).

        The share is drawn for each batch of a rank from Beta(alpha, alpha), keyed by its rows.
        """
        return self.then(
            Mixup(column=column, label_column=label, alpha=alpha, num_classes=num_classes, draws=key)
        )

    def cutmix(
        self, column: str, label: str, alpha: float = 1.0, *, num_classes: int, layout: Layout = "NCHW",
        key: str | None = None,
    ) -> Self:  # fmt: skip
        """Behind `batch`: a part of each image is that of the one before; labels become float32 (num_classes,).

        `layout` is the one that the images have.
        """
        return self.then(
            Cutmix(
                column=column,
                label_column=label,
                alpha=alpha,
                num_classes=num_classes,
                layout=layout,
                draws=key,
            )
        )

    def mixup_or_cutmix(
        self, column: str, label: str, *, num_classes: int, mixup: float = 0.2, cutmix: float = 1.0,
        switch: float = 0.5, layout: Layout = "NCHW", key: str | None = None,
    ) -> Self:  # fmt: skip
        """Behind `batch`: for each batch `cutmix` with probability `switch`, else `mixup`, with these alphas."""
        return self.then(
            MixupOrCutmix(
                column=column, label_column=label, num_classes=num_classes, mixup=mixup, cutmix=cutmix, switch=switch,
                layout=layout, draws=key,
            )
        )  # fmt: skip
