"""Means and standard deviations of data sets that models were trained on, for pixels from 0 to 1."""

from __future__ import annotations

from typing import Final

__all__ = ["IMAGENET_MEAN", "IMAGENET_STD"]

# Of the RGB channels of ImageNet's training images, as all published weights take them.
IMAGENET_MEAN: Final = (0.485, 0.456, 0.406)
IMAGENET_STD: Final = (0.229, 0.224, 0.225)
