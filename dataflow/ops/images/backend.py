"""What makes images in the place of the CPU kernel, as the steps see it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from dataflow.ops.images.step import OneImageStep

__all__ = ["ImageBackend"]


class ImageBackend(Protocol):
    """Makes the images of whole batches, of files and of what the steps have decided for each of them."""

    def does(self, steps: Sequence[OneImageStep]) -> int:
        """How many of these steps it does as they are defined, from the first one on; the others are the kernel's."""

    def fits(self, steps: Sequence[OneImageStep], size: tuple[int, int], params: Sequence[Any]) -> bool:
        """Whether it can make an image of `size` (height, width) for which its steps have decided on `params`."""
