"""The images that loaders delivered, by epoch and sample."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

__all__ = ["by_id"]


def by_id(loaders: Sequence[Any], epochs: int = 1) -> dict[tuple[int, int], bytes]:
    found = {}
    for loader in loaders:
        with loader:
            for epoch in range(epochs):
                for batch in loader:
                    for sample, image in zip(batch["__id__"].tolist(), batch["image"], strict=True):
                        found[epoch, sample] = np.asarray(image).tobytes()
    return found
