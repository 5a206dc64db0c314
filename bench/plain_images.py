"""How images are decoded and copied without the engine: by the decoder alone, and by a DataLoader."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from bench.pillow_transforms import augmented, normalized
from bench.plain import WORKERS

if TYPE_CHECKING:
    import torch
    from torch.utils.data import DataLoader

__all__ = ["copy_rows", "decode_all", "image_dataloader"]


def decode_all(jpegs: Sequence[bytes], *, threads: int, passes: int, piece: int) -> int:
    """Decode every JPEG to RGB on some threads, `piece` of them a task, and drop it; returns the images."""
    import simplejpeg

    def decode(start: int) -> int:
        return sum(1 for jpeg in jpegs[start : start + piece] if simplejpeg.decode_jpeg(jpeg, "RGB").size)

    with ThreadPoolExecutor(threads) as pool:
        return sum(sum(pool.map(decode, range(0, len(jpegs), piece))) for _ in range(passes))


def copy_rows(parts: Sequence[npt.NDArray[np.uint8]], *, threads: int, passes: int) -> int:
    """Copy arrays of one shape on some threads into memory that is used again; returns the rows."""
    held = threading.local()

    def copy(part: npt.NDArray[np.uint8]) -> int:
        if not hasattr(held, "memory"):
            held.memory = np.empty_like(part)
        np.copyto(held.memory[: len(part)], part)
        return len(part)

    with ThreadPoolExecutor(threads) as pool:
        return sum(sum(pool.map(copy, parts)) for _ in range(passes))


def image_dataloader(
    files: Sequence[tuple[Path, int]], *, side: int, batch: int
) -> DataLoader[dict[str, torch.Tensor]]:
    """Shuffled batches of a data set of files, written as most people write it, on workers that live on."""
    from torch.utils.data import DataLoader

    return DataLoader(
        # Any object with these two methods will do; deriving it from torch's class would import torch here.
        _Files(files, side),  # type: ignore[arg-type]
        batch_size=batch,
        shuffle=True,
        num_workers=WORKERS,
        persistent_workers=True,
        drop_last=True,
    )


class _Files:
    """A map-style dataset of image files: decoded by Pillow, augmented and normalized."""

    def __init__(self, files: Sequence[tuple[Path, int]], side: int) -> None:
        self._files, self._side = files, side

    def __len__(self) -> int:
        return len(self._files)

    def __getitem__(self, row: int) -> dict[str, Any]:
        from PIL import Image

        path, label = self._files[row]
        with path.open("rb") as file:
            image = Image.open(file).convert("RGB")
        return {"image": normalized(augmented(image, self._side)), "label": label}
