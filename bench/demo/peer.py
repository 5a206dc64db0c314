"""The demo's batches from torch's DataLoader: same files, same decoding, workers in the place of threads."""

from __future__ import annotations

import os
import tarfile
from pathlib import Path

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset, DistributedSampler

from bench.demo.pipelines import decode
from bench.demo.size import Size
from bench.plain import columns_in_memory

__all__ = ["peer_loaders"]

Batch = dict[str, torch.Tensor]


def peer_loaders(
    data: Path, size: Size, rank: int, world: int, workers: int
) -> tuple[DataLoader[Batch], DataLoader[Batch]]:
    """DataLoaders of images and text for one rank, shuffled over the whole data set."""
    return (
        _loader(_Photos(data, size.pixels), size.image_batch, rank, world, workers),
        _loader(_Text(data), size.text_batch, rank, world, workers),
    )


def _loader(dataset: Dataset[Batch], batch: int, rank: int, world: int, workers: int) -> DataLoader[Batch]:
    sampler: DistributedSampler[Batch] = DistributedSampler(
        dataset, world, rank, shuffle=True, drop_last=True
    )
    return DataLoader(
        dataset, batch // world, sampler=sampler, num_workers=workers, persistent_workers=True, drop_last=True
    )


class _Photos(Dataset[Batch]):
    """A map-style dataset over the members of tar shards, whose places are looked up beforehand."""

    def __init__(self, data: Path, pixels: int) -> None:
        self._pixels = pixels
        self._places: list[tuple[Path, int, int]] = []
        self._labels: list[int] = []
        for shard in sorted((data / "images").glob("*.tar")):
            with tarfile.open(shard) as archive:
                for member in archive:
                    if member.name.endswith(".jpg"):
                        self._places.append((shard, member.offset_data, member.size))
                    elif (label := archive.extractfile(member)) is not None:
                        self._labels.append(int(label.read()))
        self._opened: dict[Path, int] = {}

    def __len__(self) -> int:
        return len(self._places)

    def __getitem__(self, row: int) -> Batch:
        shard, offset, length = self._places[row]
        if shard not in self._opened:
            self._opened[shard] = os.open(shard, os.O_RDONLY)
        jpeg = os.pread(self._opened[shard], length, offset)
        image = decode(jpeg, self._pixels, np.random.default_rng(row)).copy()
        return {"image": torch.from_numpy(image), "label": torch.tensor(self._labels[row])}


class _Text(Dataset[Batch]):
    """A map-style dataset over rows in memory."""

    def __init__(self, data: Path) -> None:
        self._tokens = columns_in_memory(data / "text")["tokens"]

    def __len__(self) -> int:
        return len(self._tokens)

    def __getitem__(self, row: int) -> Batch:
        return {"tokens": self._tokens[row]}
