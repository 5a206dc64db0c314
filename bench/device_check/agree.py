"""Whether DALI on a device makes what the CPU kernel makes."""

from __future__ import annotations

import math
from typing import Any, Final

import torch

import dataflow as flow
from bench.device_check.pictures import LEVELS_A_PIXEL, Dtype, Layout, maps, photographs
from bench.device_check.size import Size

__all__ = [
    "MOST_DB",
    "Unlike",
    "both",
    "crop_shift_px",
    "like",
    "made_alike",
    "psnr_db",
    "resized_shift_px",
    "shift_px",
    "worst_psnr_db",
]

# What images come to that do not differ: JSON has no infinity.
MOST_DB: Final = 100.0
# Height and width of crops of maps, which leave room for many boxes.
_CROP: Final = 32

Batch = dict[str, Any]


class Unlike(Exception):
    """Batches of two backends that cannot be compared, or differ in more than the numbers of their images."""


def crop_shift_px(device: torch.device, size: Size) -> float:
    """The shift of crops and flips without a resize: see `shift_px`."""
    return _shift_px(maps(size).random_crop("image", _CROP).random_flip("image", 0.5, 0.5), device, size)


def resized_shift_px(device: torch.device, size: Size) -> float:
    """The shift of crops that are resized, and of flips: see `shift_px`."""
    return _shift_px(maps(size).random_resized_crop("image", _CROP).random_flip("image"), device, size)


def worst_psnr_db(device: torch.device, size: Size, dtype: Dtype, layout: Layout) -> float:
    """The least PSNR of a photograph by DALI against the same one by the CPU kernel, cropped, flipped and written."""
    pipe = _varied(size)
    if dtype == "uint8":  # has no numbers around zero
        return psnr_db(*both(pipe.to_dtype("image", dtype, layout=layout), device, size), 255)
    pipe = pipe.normalize("image", flow.IMAGENET_MEAN, flow.IMAGENET_STD, dtype=dtype, layout=layout)
    return psnr_db(*both(pipe, device, size), 1 / min(flow.IMAGENET_STD))


def made_alike(device: torch.device, size: Size) -> float:
    """How many photographs differ in no pixel, by which one knows those that the CPU kernel made in DALI's stead."""
    kernel, dali = both(_varied(size).to_dtype("image", "uint8"), device, size)
    return float((kernel == dali).flatten(1).all(dim=1).sum())


def shift_px(one: torch.Tensor, other: torch.Tensor) -> float:
    """The most by which the mean place of the pixels in a quarter of a map (maps, 3, side, side) is another one.

    A box with one side a pixel off shifts a quarter by at least half a pixel, and a flip by many; the rounding of
    decoders and of a resize hardly shifts it.
    """
    off = (one.double() - other.double())[:, :2]
    return float(torch.nn.functional.avg_pool2d(off, off.shape[-1] // 2).abs().max()) / LEVELS_A_PIXEL


def psnr_db(one: torch.Tensor, other: torch.Tensor, levels: float) -> float:
    """The least over images (images, ...) of which `levels` numbers are the whole range; at most `MOST_DB`."""
    worst = float((one.double() - other.double()).square().flatten(1).mean(dim=1).max())
    return MOST_DB if worst == 0 else min(MOST_DB, 10 * math.log10(levels**2 / worst))


def _varied(size: Size) -> flow.Pipeline:
    return photographs(size).random_resized_crop("image", size.side).random_flip("image")


def _shift_px(pipe: flow.Pipeline, device: torch.device, size: Size) -> float:
    return shift_px(*both(pipe.to_dtype("image", "uint8"), device, size))


def both(pipe: flow.Pipeline, device: torch.device, size: Size) -> tuple[torch.Tensor, torch.Tensor]:
    """All images of an epoch in host memory: the CPU kernel's, and DALI's on that device.

    Raises:
        Unlike: DALI does not do all steps, or they are not the same samples, or lie otherwise in memory.
    """
    batched = pipe.batch(size.batch, remainder="keep")
    said = batched.outline(backend="dali", device=device).images
    if said[1:] != ("  image: all steps by DALI",):
        raise Unlike("; ".join(said))
    with (
        batched.loader(backend="cpu", ids=True) as kernel,
        batched.loader(backend="dali", device=device, ids=True) as dali,
    ):
        pairs = [(one, like(one, other, device)) for one, other in zip(kernel, dali, strict=True)]
    ones, others = zip(*pairs, strict=True)
    return torch.cat([one["image"] for one in ones]), torch.cat([other.cpu() for other in others])


def like(one: Batch, other: Batch, device: torch.device) -> torch.Tensor:
    """The images of `other`, seen to be of the same samples and of the same form as those of `one`."""
    images: torch.Tensor = other["image"]
    if images.device.type != device.type:
        raise Unlike(f"images lie on {images.device}, not on {device}.")
    if not torch.equal(one["__id__"], other["__id__"].cpu()):
        raise Unlike(f"ids are {other['__id__'].tolist()}, not {one['__id__'].tolist()}.")
    for what in ("dtype", "shape"):
        if getattr(images, what) != getattr(one["image"], what):
            raise Unlike(f"{what} is {getattr(images, what)}, not {getattr(one['image'], what)}.")
    if images.stride() != one["image"].stride():
        raise Unlike(f"strides are {images.stride()}, not {one['image'].stride()}.")
    return images
