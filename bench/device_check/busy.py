"""Busy: work that keeps a device busy for as long as is wanted."""

from __future__ import annotations

import time
from typing import Final

import torch

__all__ = ["Busy", "finish"]

# Products whose time is taken together.
_SAMPLE: Final = 10


def finish(device: torch.device) -> None:
    """Wait until a device has done all that it was given."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


class Busy:
    """Multiplies square matrices of `width` for about `seconds` each time that it is called, without waiting."""

    def __init__(self, device: torch.device, width: int, seconds: float) -> None:
        self._left = torch.rand((width, width), device=device)
        self._out = torch.empty_like(self._left)
        self._products = 1
        self()  # the first one pays for loading kernels
        self._products = max(1, round(seconds / self._product_s(device)))

    def __call__(self) -> None:
        for _ in range(self._products):
            torch.mm(self._left, self._left, out=self._out)

    def _product_s(self, device: torch.device) -> float:
        finish(device)
        start = time.perf_counter()
        for _ in range(_SAMPLE):
            self()
        finish(device)
        return (time.perf_counter() - start) / _SAMPLE
