"""Trainer: the training step that loaders feed here."""

from __future__ import annotations

from typing import Any, Final

import torch
from torch import nn

from bench.photographs import PHOTOGRAPHS

__all__ = ["Trainer"]

_CHANNELS: Final = 32


class Trainer:
    """A step of a small convolutional network on `image` (n, 3, h, w) and `label` (n), which waits for no device."""

    def __init__(self, device: torch.device) -> None:
        self._model = nn.Sequential(
            nn.Conv2d(3, _CHANNELS, 7, stride=4), nn.ReLU(), nn.Conv2d(_CHANNELS, _CHANNELS, 3, stride=2), nn.ReLU(),
            nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(_CHANNELS, len(PHOTOGRAPHS)),
        ).to(device)  # fmt: skip
        self._optimizer = torch.optim.SGD(self._model.parameters(), lr=0.01)

    def __call__(self, batch: dict[str, Any]) -> None:
        loss: torch.Tensor = nn.functional.cross_entropy(self._model(batch["image"]), batch["label"])
        self._optimizer.zero_grad()
        loss.backward()
        self._optimizer.step()
