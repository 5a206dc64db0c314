"""The small model of the demo: which photograph a crop is of, and which byte comes next."""

from __future__ import annotations

import torch
from torch import nn

__all__ = ["SmallModel"]


class SmallModel(nn.Module):
    """Two heads that share nothing, so that one step trains on both formats."""

    def __init__(self) -> None:
        super().__init__()
        self.image = nn.Sequential(
            nn.Conv2d(3, 12, 5, stride=2), nn.ReLU(), nn.Conv2d(12, 24, 3, stride=2), nn.ReLU(),
            nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(96, 2),
        )  # fmt: skip
        self.text = nn.Sequential(nn.Embedding(256, 24), nn.Linear(24, 256))

    def forward(self, image: torch.Tensor, label: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
        """The loss of uint8 images (n, pixels, pixels, 3), int64 labels (n,), uint8 tokens (m, length)."""
        seen = self.image(image.permute(0, 3, 1, 2).float().div_(255))
        # Every eighth byte: an even sample of the text, which leaves the cores to the input.
        words = tokens.long()
        said = self.text(words[:, :-1:8]).flatten(0, 1)
        following = words[:, 1::8].flatten()
        loss: torch.Tensor = nn.functional.cross_entropy(seen, label) + nn.functional.cross_entropy(
            said, following
        )
        return loss
