"""What DALI has made, as memory of a batch: NumPy arrays on the host, torch tensors on a GPU; nothing is copied."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch.utils.dlpack import from_dlpack

from connectors.bfloat16 import is_bfloat16, rounded
from connectors.tensors import empty_rows, shape_of
from dataflow.graph.block import Column
from dataflow.graph.image_column import ImageType, image_column

__all__ = ["HandOver", "ToGpu", "ToHost"]

Values = npt.NDArray[Any]
# What DALI gives: a TensorList, which has no type.
Images = Any


class HandOver(Protocol):
    """Where images go."""

    @property
    def waits(self) -> bool:
        """Whether the host waits for images, so that a thread of its own should."""

    @property
    def stream(self) -> object:
        """The stream of CUDA on which they are wanted; None on the host."""

    def taken(self, images: Images, kind: Any, *, rounds: bool, written: bool) -> Column:
        """Images (rows, *shape) of a run, of type `kind`, over DALI's memory.

        `rounds`: to bfloat16. `written`: they are tensors; else pixels, which may be of many sizes.
        """

    def empty(self, rows: int, kind: Any) -> Column:
        """Memory for images of type `kind`."""

    def put(self, out: Column, rows: Sequence[int], images: Column) -> None:
        """Copy images to their rows of `out`."""


class ToHost:
    """NumPy arrays that may be written to."""

    waits = True
    stream: object = None

    def taken(self, images: Images, kind: Any, *, rounds: bool, written: bool) -> Column:
        if not images.is_dense_tensor():
            pixels = [np.asarray(images[row]) for row in range(len(images))]
            return image_column(pixels, ImageType(channels=pixels[0].shape[2]))
        values = np.asarray(images.as_tensor())
        if rounds:
            values = rounded(values)
        return values.transpose(_to_shape(kind)) if written else values

    def empty(self, rows: int, kind: Any) -> Column:
        return empty_rows(rows, kind)

    def put(self, out: Column, rows: Sequence[int], images: Column) -> None:
        out[list(rows)] = images


class ToGpu:
    """Torch tensors on a GPU, handed over without waiting for it."""

    waits = False

    def __init__(self, gpu: int) -> None:
        self._device = torch.device("cuda", gpu)

    @property
    def stream(self) -> object:
        return torch.cuda.current_stream(self._device)

    def taken(self, images: Images, kind: Any, *, rounds: bool, written: bool) -> Column:
        # DLPack has DALI's stream and torch's wait for each other, not the host for either.
        values = from_dlpack(images.as_tensor())
        if rounds:
            values = values.to(torch.bfloat16)
        return values.permute(_to_shape(kind)) if written else values

    def empty(self, rows: int, kind: Any) -> Column:
        memory = torch.empty((rows, *kind.shape), dtype=_torch_dtype(kind), device=self._device)
        return memory.permute(_to_shape(kind))

    def put(self, out: Column, rows: Sequence[int], images: Column) -> None:
        source = self._sent(images) if isinstance(images, np.ndarray) else images
        for row, image in zip(rows, source, strict=True):
            out[row].copy_(image.view(out.dtype) if image.dtype != out.dtype else image, non_blocking=True)

    def _sent(self, images: Values) -> torch.Tensor:
        signed = images.view(np.int16) if images.dtype == np.uint16 else images
        return torch.from_numpy(np.ascontiguousarray(signed)).pin_memory().to(self._device, non_blocking=True)


def _to_shape(kind: Any) -> list[int]:
    """From images as they lie in memory to those of a type: how axes are to be permuted."""
    permutation = kind.permutation or range(len(kind.shape))
    return [0, *(1 + axis for axis in permutation)]


def _torch_dtype(kind: Any) -> torch.dtype:
    if is_bfloat16(kind):
        return torch.bfloat16
    dense = shape_of(kind)
    assert dense is not None
    return torch.from_numpy(np.empty(0, dense[0])).dtype
