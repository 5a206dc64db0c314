"""Steps that change colours in pipelines: each belongs to its sample, takes any image, and is a spec and back."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from images_by_id import by_id
from photographs import encoded, photograph
from PIL import Image

import dataflow as flow
from dataflow.errors import PlanError

ROWS = 18
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
Change = Callable[[flow.Pipeline], flow.Pipeline]
STEPS: dict[str, Change] = {
    "color_jitter": lambda p: p.color_jitter(
        "image", brightness=0.4, contrast=(0.5, 1.5), saturation=0.4, hue=0.1
    ),
    "random_grayscale": lambda p: p.random_grayscale("image", 0.5),
    "gaussian_blur": lambda p: p.gaussian_blur("image", (3, 5), p=0.5),
    "random_erasing": lambda p: p.random_erasing("image", value="random"),
    "trivial_augment": lambda p: p.trivial_augment("image", fill=7),
    "rand_augment": lambda p: p.rand_augment("image", 3, 15, levels=21, filter="bilinear", fill=9),
}


@pytest.fixture(scope="module")
def source() -> flow.Pipeline:
    files = [encoded(photograph(row, 60 + row, 90 - row)) for row in range(ROWS)]
    return flow.from_columns({"image": files}).shuffle(8).seed(5).decode_image("image")


def tensors(pipe: flow.Pipeline) -> flow.Pipeline:
    return pipe.resize("image", (32, 40)).normalize("image", MEAN, STD)


@pytest.mark.parametrize("name", STEPS)
def test_a_sample_is_changed_the_same_whatever_batches_lanes_ranks_and_threads(
    name: str, source: flow.Pipeline
) -> None:
    pipe = tensors(STEPS[name](source))
    one = by_id([pipe.batch(6).loader(ids=True, threads=1)], epochs=2)
    assert {one[0, sample] == one[1, sample] for sample in range(ROWS)} != {True}, "epochs draw anew"
    assert one == by_id([pipe.batch(global_size=6, lanes=3).loader(ids=True, threads=3)], epochs=2)
    ranks = [pipe.batch(global_size=6, lanes=2).loader(ids=True, rank=r, world_size=2) for r in range(2)]
    assert one == by_id(ranks, epochs=2)


@pytest.mark.parametrize("name", STEPS)
def test_what_follows_a_resume_is_what_would_have_come(name: str, source: flow.Pipeline) -> None:
    pipe = tensors(STEPS[name](source)).batch(6)
    with pipe.loader() as loader:
        batches = iter(loader)
        next(batches)
        state = json.loads(json.dumps(loader.state_dict()))
        rest = list(batches)
    with pipe.loader() as loader:
        loader.load_state_dict(state)
        for made, wanted in zip(loader, rest, strict=True):
            assert torch.equal(made["image"], wanted["image"])


def _same(row: dict[str, Any]) -> dict[str, Any]:
    return row


@pytest.mark.parametrize("name", STEPS)
def test_a_step_does_the_same_alone_as_among_others(name: str, source: flow.Pipeline) -> None:
    def apart(pipe: flow.Pipeline) -> flow.Pipeline:
        """A function between steps keeps them apart."""
        return pipe.map(_same, schema=pipe.schema)

    pixels = source.resize("image", (32, 40))
    fused = STEPS[name](pixels).normalize("image", MEAN, STD)
    alone = apart(STEPS[name](apart(pixels))).normalize("image", MEAN, STD)
    assert by_id([fused.batch(6).loader(ids=True)]) == by_id([alone.batch(6).loader(ids=True)])


@pytest.mark.parametrize("name", STEPS)
def test_a_step_is_a_spec_and_back(name: str, tmp_path: Any) -> None:
    folder = tmp_path / "cats"
    folder.mkdir()
    for row in range(4):
        (folder / f"{row}.png").write_bytes(encoded(photograph(row, 30, 40), "PNG"))
    decoded = flow.read(str(tmp_path)).rename({"bytes": "image"}).decode_image("image")
    pipe = tensors(STEPS[name](decoded)).batch(2)
    spec = tmp_path / "train.json"
    spec.write_text(json.dumps(pipe.to_spec()))
    again = flow.load_spec(spec)
    assert again.to_spec() == pipe.to_spec()
    assert by_id([again.loader(ids=True)]) == by_id([pipe.loader(ids=True)])


def test_one_value_for_each_channel_is_a_spec_and_back(tmp_path: Any) -> None:
    (tmp_path / "a.png").write_bytes(encoded(photograph(1, 30, 40), "PNG"))
    decoded = flow.read(str(tmp_path / "*.png")).rename({"bytes": "image"}).decode_image("image")
    pipe = decoded.trivial_augment("image", fill=(1, 2, 3)).random_erasing(
        "image", 1.0, value=(4, 5, 6), key="box"
    )
    spec = pipe.to_spec()
    assert '"fill": [1, 2, 3]' in json.dumps(spec)
    again = flow.load_spec(spec)
    assert again.to_spec() == spec
    assert np.array_equal(again[0]["image"], pipe[0]["image"])


@pytest.mark.parametrize("name", STEPS)
@pytest.mark.parametrize("mode", ["L", "LA", "RGB", "RGBA"])
def test_images_of_any_mode_and_of_one_pixel_keep_their_shape(name: str, mode: str) -> None:
    shapes = [(1, 1), (1, 9), (9, 1), (2, 2), (17, 23)] * 3
    made = [Image.fromarray(photograph(row, *shape)).convert(mode) for row, shape in enumerate(shapes)]
    files = [encoded(np.asarray(image), "PNG") for image in made]
    modes: Any = "unchanged" if mode == "LA" else mode
    pipe = STEPS[name](flow.from_columns({"image": files}).decode_image("image", modes))
    with pipe.batch(15).loader(output="numpy") as loader:
        images = next(iter(loader))["image"]
    assert [image.shape for image in images] == [(*shape, len(mode)) for shape in shapes]
    if mode in ("LA", "RGBA") and not name.endswith("augment"):
        assert all((image[..., -1] == 255).all() for image in images)


def test_steps_of_probability_0_change_nothing(source: flow.Pipeline) -> None:
    wanted = by_id([tensors(source).batch(6).loader(ids=True)])
    unchanging: list[Change] = [
        lambda p: p.random_grayscale("image", 0.0),
        lambda p: p.gaussian_blur("image", 5, p=0.0),
        lambda p: p.random_erasing("image", 0.0),
        lambda p: p.color_jitter("image"),
        lambda p: p.rand_augment("image", 0),
    ]
    for change in unchanging:
        assert by_id([tensors(change(source)).batch(6).loader(ids=True)]) == wanted


def test_grey_images_have_the_channels_that_were_asked_for(source: flow.Pipeline) -> None:
    one, three = source.to_grayscale("image"), source.to_grayscale("image", 3)
    assert one.schema is not None
    assert str(one.schema.field("image").type) == "image[uint8, 1 channels]"
    pixels = one[3]["image"]
    assert pixels.shape == (63, 87, 1)
    assert np.array_equal(three[3]["image"], np.repeat(pixels, 3, axis=2))
    wanted = np.asarray(Image.fromarray(np.asarray(source[3]["image"])).convert("L"))
    assert np.abs(pixels[..., 0].astype(int) - wanted).max() <= 1


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (lambda p: p.random_grayscale("image", "often"), "0 to 1"),
        (lambda p: p.to_grayscale("image", 2), "1 or 3"),
        (lambda p: p.to_grayscale("image", True), "1 or 3"),
        (lambda p: p.gaussian_blur("image", 4), "odd"),
        (lambda p: p.gaussian_blur("image", 0), "kernel_size"),
        (lambda p: p.gaussian_blur("image", "wide"), "kernel_size"),
        (lambda p: p.gaussian_blur("image", 3, sigma=0), "sigma"),
        (lambda p: p.gaussian_blur("image", 3, sigma=(2, 1)), "sigma"),
        (lambda p: p.gaussian_blur("image", 3, p=-1), "0 to 1"),
        (lambda p: p.color_jitter("imag", hue=0.1), "image"),
    ],
)
def test_what_cannot_work_is_an_error_where_it_is_written(
    source: flow.Pipeline, change: Change, what: str
) -> None:
    with pytest.raises(PlanError) as caught:
        change(source)
    assert what in f"{caught.value.message} {caught.value.hint}"
    assert caught.value.hint
