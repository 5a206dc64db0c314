"""The images of the benchmark, and what is done to them without the engine."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
from PIL import Image

import dataflow as flow
from bench.image_files import RAW_SIDE, jpegs_in, photographs_on_disk, raw_images_on_disk
from bench.photographs import PHOTOGRAPHS, write_class_folders
from bench.pillow_transforms import augmented, normalized
from bench.plain_images import copy_rows, decode_all, image_dataloader


@pytest.fixture(autouse=True)
def own_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("DATAFLOW_BENCH", str(tmp_path / "bench"))


def test_photographs_are_the_same_in_every_format() -> None:
    folder = photographs_on_disk(16)
    tables = [pq.read_table(file) for file in sorted((folder / "parquet").iterdir())]
    images = [row for table in tables for row in table.to_pylist()]
    assert len(images) == 16
    sizes = [len(image["image"]) for image in images]
    assert 40_000 < np.mean(sizes) < 60_000
    assert {Image.open(io.BytesIO(image["image"])).size for image in images} == {(500, 400)}
    in_tar = flow.read(f"{folder}/tar")
    assert [in_tar[row]["jpg"] for row in range(16)] == [image["image"] for image in images]
    assert [int(in_tar[row]["cls"]) for row in range(16)] == [image["label"] for image in images]
    files = sorted(jpegs_in(folder), key=lambda found: found[0].name)
    assert [(file.read_bytes(), label) for file, label in files] == [
        (image["image"], image["label"]) for image in images
    ]
    assert flow.read(folder / "files").classes == PHOTOGRAPHS


def test_raw_images_are_tensors_in_every_row() -> None:
    pipe = flow.read(raw_images_on_disk(8))
    assert pipe.count() == 8
    image = pipe[7]["image"]
    assert image.shape == (RAW_SIDE, RAW_SIDE, 3)
    assert image.dtype == np.uint8
    assert image.std() > 50


def test_class_folders_bear_the_names_of_the_photographs(tmp_path: Path) -> None:
    write_class_folders(tmp_path / "data", images=12, threads=1)
    pipe = flow.read(tmp_path / "data")
    assert pipe.count() == 12
    assert pipe.classes == PHOTOGRAPHS


def test_an_image_is_normalized_as_torchvision_does_it() -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (5, 4, 3), np.uint8)
    made = normalized(Image.fromarray(pixels))
    assert (made.shape, made.dtype) == ((3, 5, 4), torch.float32)
    mean, std = np.array(flow.IMAGENET_MEAN), np.array(flow.IMAGENET_STD)
    wanted = ((pixels / 255 - mean) / std).transpose(2, 0, 1)
    assert np.allclose(made.numpy(), wanted, atol=1e-6)


@pytest.mark.parametrize("size", [(50, 40), (40, 50), (400, 4), (1, 1)])
def test_a_random_part_lies_within_the_image(size: tuple[int, int]) -> None:
    image = Image.new("RGB", size, (9, 9, 9))
    for _ in range(20):
        made = augmented(image, 8)
        assert made.size == (8, 8)
        # Outside of it there would be black.
        assert (np.asarray(made) == 9).all()


def test_every_image_is_decoded_or_copied_once_a_pass() -> None:
    jpegs = [file.read_bytes() for file, _ in jpegs_in(photographs_on_disk(8))]
    assert decode_all(jpegs, threads=2, passes=3, piece=3) == 24
    parts = [np.zeros((4, 2), np.uint8), np.zeros((3, 2), np.uint8)]
    assert copy_rows(parts, threads=2, passes=2) == 14


def test_the_dataloader_gives_batches_of_tensors() -> None:
    loader = image_dataloader(jpegs_in(photographs_on_disk(8)), side=16, batch=4)
    batch = loader.dataset[0]
    assert batch["image"].shape == (3, 16, 16)
    assert len(loader) == 2
