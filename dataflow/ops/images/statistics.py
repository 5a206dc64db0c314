"""Means and standard deviations of data sets that models were trained on, for pixels from 0 to 1."""

from __future__ import annotations

from typing import Final

__all__ = ["CLIP_MEAN", "CLIP_STD", "IMAGENET_MEAN", "IMAGENET_STD"]

# Of the RGB channels of ImageNet's training images, as all published weights take them.
IMAGENET_MEAN: Final = (0.485, 0.456, 0.406)
IMAGENET_STD: Final = (0.229, 0.224, 0.225)

# Of the images that OpenAI's CLIP was trained on, as OpenCLIP takes them.
CLIP_MEAN: Final = (0.48145466, 0.4578275, 0.40821073)
CLIP_STD: Final = (0.26862954, 0.26130258, 0.27577711)
