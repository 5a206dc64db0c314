"""Ready pipelines for what many people train: short functions, to call or to copy.

imagenet.py  images with labels: imagenet_train, imagenet_eval
clip.py      images with texts: clip_pairs
columns.py   which columns of a source these take
"""

from __future__ import annotations

from dataflow.recipes.clip import clip_pairs
from dataflow.recipes.imagenet import imagenet_eval, imagenet_train

__all__ = ["clip_pairs", "imagenet_eval", "imagenet_train"]
