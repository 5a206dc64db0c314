"""Images in pipelines: the same sample has the same pixels in any batch, on any rank, after any resume."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, cast

import numpy as np
import pytest
import torch
from images_by_id import by_id
from photographs import encoded, photograph

import dataflow as flow
from dataflow.errors import DataError, PlanError

ROWS = 24
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


def files(rows: int = ROWS) -> dict[str, Any]:
    return {
        "image": [encoded(photograph(row, 90 + row, 160 - row)) for row in range(rows)],
        "label": range(rows),
    }


@pytest.fixture(scope="module")
def source() -> flow.Pipeline:
    made = files()
    return flow.from_columns({"image": made["image"], "label": list(made["label"])})


def augmented(pipe: flow.Pipeline, *, reduced: bool = True) -> flow.Pipeline:
    return (
        pipe.shuffle(10).seed(3).decode_image("image", reduced=reduced).random_resized_crop("image", (48, 56))
        .random_flip("image").normalize("image", MEAN, STD)
    )  # fmt: skip


def test_a_batch_is_a_tensor_of_its_declared_shape(source: flow.Pipeline) -> None:
    pipe = augmented(source)
    assert "shape=[3,48,56]" in str(pipe.schema)
    with pipe.batch(8).loader() as loader:
        for batch in loader:
            assert batch["image"].shape == (8, 3, 48, 56)
            assert batch["image"].dtype == torch.float32
            batch["image"].zero_()  # ours


def test_a_sample_has_the_same_pixels_whatever_batches_lanes_ranks_and_threads(source: flow.Pipeline) -> None:
    pipe = augmented(source)
    one = by_id([pipe.batch(6).loader(ids=True, threads=1)], epochs=2)
    assert len(one) == 2 * ROWS
    assert one != {(1 - epoch, sample): image for (epoch, sample), image in one.items()}, "epochs draw anew"
    lanes = by_id([pipe.batch(global_size=8, lanes=4).loader(ids=True, threads=3)], epochs=2)
    ranks = by_id(
        [pipe.batch(global_size=12, lanes=2).loader(ids=True, rank=rank, world_size=2) for rank in range(2)],
        epochs=2,
    )
    assert one == lanes == ranks


def test_what_follows_a_resume_is_what_would_have_come(source: flow.Pipeline) -> None:
    pipe = augmented(source).batch(5)
    with pipe.loader(ids=True) as loader:
        whole = list(loader)
    for stop in range(1, len(whole)):
        with pipe.loader(ids=True) as loader:
            batches = iter(loader)
            for _ in range(stop):
                next(batches)
            state = json.loads(json.dumps(loader.state_dict()))
        with pipe.loader(ids=True) as loader:
            loader.load_state_dict(state)
            rest = list(loader)
        assert len(rest) == len(whole) - stop
        for made, wanted in zip(rest, whole[stop:], strict=True):
            assert torch.equal(made["image"], wanted["image"])
            assert torch.equal(made["__id__"], wanted["__id__"])


def _same(row: dict[str, Any]) -> dict[str, Any]:
    return row


def test_steps_that_are_one_give_what_they_give_one_by_one(source: flow.Pipeline) -> None:
    fused = augmented(source, reduced=False).batch(8).loader(ids=True)
    decoded = source.shuffle(10).seed(3).decode_image("image")

    def between(pipe: flow.Pipeline) -> flow.Pipeline:
        """A function between steps keeps them apart."""
        return pipe.map(_same, schema=pipe.schema)

    apart = between(decoded).random_resized_crop("image", (48, 56))
    apart = between(apart).random_flip("image")
    apart = between(apart).normalize("image", MEAN, STD)
    assert by_id([fused]) == by_id([apart.batch(8).loader(ids=True)])


def test_normalized_numbers_are_those_of_the_definition(source: flow.Pipeline) -> None:
    pixels = source.decode_image("image").resize("image", (40, 50))
    plain = pixels.batch(ROWS).loader(output="numpy")
    with plain, pixels.normalize("image", MEAN, STD).batch(ROWS).loader() as numbers:
        images = torch.from_numpy(next(iter(plain))["image"]).permute(0, 3, 1, 2)
        mean, std = (torch.tensor(values)[:, None, None] for values in (MEAN, STD))
        assert torch.equal(next(iter(numbers))["image"], (images.float() * (1 / 255) - mean) / std)


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
def test_every_layout_and_dtype_has_the_same_numbers(source: flow.Pipeline, dtype: Any, layout: Any) -> None:
    pixels = source.decode_image("image").resize("image", (40, 50))
    wanted = next(iter(pixels.normalize("image", MEAN, STD).batch(ROWS).loader()))["image"]
    made = next(iter(pixels.normalize("image", MEAN, STD, dtype=dtype, layout=layout).batch(ROWS).loader()))[
        "image"
    ]
    assert made.dtype == getattr(torch, dtype)
    made = made.permute(0, 3, 1, 2) if layout == "NHWC" else made
    assert torch.equal(made, wanted.to(made.dtype))


def test_images_of_many_sizes_are_a_list(source: flow.Pipeline) -> None:
    with source.decode_image("image").batch(4).loader() as loader:
        images = next(iter(loader))["image"]
    assert [tuple(image.shape) for image in images] == [(90 + row, 160 - row, 3) for row in range(4)]
    assert torch.equal(images[1], torch.from_numpy(np.asarray(source.decode_image("image")[1]["image"])))


def test_raw_pixels_need_no_decoding() -> None:
    pixels = np.stack([photograph(row, 64, 64) for row in range(8)])
    pipe = flow.from_columns({"image": pixels}).random_resized_crop("image", 32).random_flip("image")
    with pipe.batch(4).loader(output="numpy") as loader:
        assert [batch["image"].shape for batch in loader] == [(4, 32, 32, 3)] * 2
    assert np.array_equal(pixels[0], photograph(0, 64, 64)), "the source is as it was"


def test_a_pipeline_with_images_is_a_spec_and_back(source: flow.Pipeline, tmp_path: Any) -> None:
    folder = tmp_path / "cats"
    folder.mkdir()
    for row in range(6):
        (folder / f"{row}.jpg").write_bytes(encoded(photograph(row, 60, 60)))
    pipe = augmented(flow.read(str(tmp_path)).rename({"bytes": "image"})).batch(3)
    spec = tmp_path / "train.json"
    spec.write_text(json.dumps(pipe.to_spec()))
    again = flow.load_spec(spec)
    assert again.to_spec() == pipe.to_spec()
    assert by_id([again.loader(ids=True)]) == by_id([pipe.loader(ids=True)])


@pytest.mark.parametrize(
    "bad", [b"", b"no image", encoded(photograph(0))[:5000], b"\xff\xd8\xff" + bytes(100)]
)
def test_a_broken_image_costs_its_row(bad: bytes) -> None:
    rows = files(8)["image"]
    rows[3] = bad
    pipe = flow.from_columns({"image": rows}).decode_image("image").resize("image", 32)
    with pytest.raises(DataError, match="row 3"), pipe.batch(4).loader() as loader:
        list(loader)
    with pipe.batch(4, remainder="keep").loader(on_error="skip", ids=True) as loader:
        assert [sample for batch in loader for sample in batch["__id__"].tolist()] == [0, 1, 2, 4, 5, 6, 7]
    with pipe.batch(4).loader(on_error="replace", ids=True) as loader:
        assert [sample for batch in loader for sample in batch["__id__"].tolist()] == list(range(8))


def resized(pipe: flow.Pipeline) -> flow.Pipeline:
    return pipe.decode_image("image").resize("image", 8)


WRONG: dict[str, tuple[Callable[[flow.Pipeline], object], str]] = {
    "no such column": (lambda p: p.decode_image("imag"), "image"),
    "no files": (lambda p: p.decode_image("label"), "binary"),
    "not decoded": (lambda p: p.resize("image", 8), "decode_image"),
    "decoded twice": (lambda p: p.decode_image("image").decode_image("image"), "binary"),
    "mode": (lambda p: p.decode_image("image", cast(Any, "RBG")), "RGB"),
    "no one size": (lambda p: p.decode_image("image").normalize("image", MEAN, STD), "resize"),
    "channels": (lambda p: resized(p).normalize("image", (0.5,), (0.5,)), "each channel"),
    "deviation 0": (lambda p: resized(p).normalize("image", MEAN, (1, 0, 1)), "over 0"),
    "two sizes": (lambda p: p.decode_image("image").resize("image", 8, shorter=8), "one of them"),
    "normalized": (
        lambda p: resized(p).normalize("image", MEAN, STD).random_flip("image"), "in front",
    ),
    "chance": (lambda p: p.decode_image("image").random_flip("image", 1.5), "0 to 1"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_what_cannot_work_is_an_error_where_it_is_written(source: flow.Pipeline, name: str) -> None:
    make, hint = WRONG[name]
    with pytest.raises(PlanError) as caught:
        make(source)
    assert hint in f"{caught.value} {caught.value.hint}"
