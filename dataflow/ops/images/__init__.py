"""Operators on images, one file each, and the kernels that they share.

step.py     what all have in common; several of them as one
form.py     what is known of a column's images beforehand
canvas.py   what steps do to an image without asking where its pixels are
frame.py    an image without its pixels
backend.py, defer.py  images that another backend than the CPU kernel makes, behind `batch`
follow.py, points.py  which columns follow the images of another one, and those of them that are coordinates
filters.py, check.py, extra.py, uniform.py  arguments, libraries, and random words as numbers
verify.py   files read to their end, so that which rows are bad depends on them alone
alpha.py    which channels are colours
augment_policy.py  what trivial_augment and rand_augment have in common

The operators: decode_image.py, annotate.py, resize.py, center_crop.py, random_crop.py, random_resized_crop.py,
random_flip.py, random_rotate.py, color_jitter.py, random_grayscale.py, to_grayscale.py, gaussian_blur.py,
trivial_augment.py, rand_augment.py, random_erasing.py, normalize.py, to_dtype.py.

statistics.py means and deviations of known data sets
pixels/     what is done to pixels; needs the extra `image`
"""

from dataflow.ops.images import (
    annotate,
    center_crop,
    color_jitter,
    decode_image,
    gaussian_blur,
    normalize,
    rand_augment,
    random_crop,
    random_erasing,
    random_flip,
    random_grayscale,
    random_resized_crop,
    random_rotate,
    resize,
    to_dtype,
    to_grayscale,
    trivial_augment,
)

__all__ = [
    "annotate",
    "center_crop",
    "color_jitter",
    "decode_image",
    "gaussian_blur",
    "normalize",
    "rand_augment",
    "random_crop",
    "random_erasing",
    "random_flip",
    "random_grayscale",
    "random_resized_crop",
    "random_rotate",
    "resize",
    "to_dtype",
    "to_grayscale",
    "trivial_augment",
]
