"""The boxes of random_erasing are torchvision's; pixels and tensors lose the same box."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from photographs import encoded, photograph

import dataflow as flow
from dataflow.errors import DataError, PlanError
from dataflow.ops.images.random_erasing import Erasure, RandomErasing, erase_boxes

SCALE, RATIO = (0.02, 0.33), (0.3, 3.3)
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
sides = st.integers(1, 3000)
Layouts: Any = ("NCHW", "NHWC", "channels_last")


def _defined(height: int, width: int, words: list[int]) -> tuple[int, int, int, int] | None:
    """torchvision.transforms.v2.RandomErasing.make_params with these words for its draws."""
    for area_word, ratio_word, top_word, left_word in zip(*[iter(words)] * 4, strict=True):
        area = height * width * (SCALE[0] + (SCALE[1] - SCALE[0]) * area_word / 2**32)
        low, high = math.log(RATIO[0]), math.log(RATIO[1])
        ratio = math.exp(low + (high - low) * ratio_word / 2**32)
        h, w = round(math.sqrt(area * ratio)), round(math.sqrt(area / ratio))
        if h < height and w < width:
            return (height - h + 1) * top_word >> 32, (width - w + 1) * left_word >> 32, h, w
    return None


@given(sides, sides, st.lists(st.integers(0, 2**32 - 1), min_size=40, max_size=40))
def test_a_box_is_that_of_the_definition_and_lies_inside(height: int, width: int, words: list[int]) -> None:
    boxes, fits = erase_boxes(np.array([[height, width]]), np.array([words], np.uint32), SCALE, RATIO)
    wanted = _defined(height, width, words)
    assert bool(fits[0]) == (wanted is not None)
    if wanted is not None:
        top, left, h, w = boxes[0].tolist()
        assert (top, left, h, w) == wanted
        assert 0 <= top <= height - h
        assert 0 <= left <= width - w


def test_the_share_of_painted_images_is_p() -> None:
    words = np.random.default_rng(0).integers(0, 2**32, (10_000, RandomErasing.words), np.uint32)
    for p in (0.0, 0.3, 1.0):
        params = RandomErasing(column="image", p=p).plan(np.full((10_000, 2), 64), words).params
        assert sum(param is not None for param in params) == pytest.approx(10_000 * p, abs=150)


def images(channels: int = 3) -> tuple[flow.Pipeline, npt.NDArray[np.uint8]]:
    pixels = np.stack([np.dstack([photograph(row, 40, 30)] * 2)[..., :channels] for row in range(12)])
    return flow.from_columns({"image": pixels}).seed(1), pixels


def batch(pipe: flow.Pipeline) -> Any:
    with pipe.batch(12).loader() as loader:
        return next(iter(loader))["image"]


@pytest.mark.parametrize("layout", Layouts)
def test_a_tensor_loses_the_box_that_its_pixels_would(layout: Any) -> None:
    pipe, pixels = images()
    erased = batch(pipe.random_erasing("image", 0.7, value=3, key="box")).numpy()
    gone = (erased == 3).all(axis=3) & (pixels != 3).any(axis=3)
    whole = batch(pipe.normalize("image", MEAN, STD, layout=layout))
    made = batch(
        pipe.normalize("image", MEAN, STD, layout=layout).random_erasing("image", 0.7, value=-7.5, key="box")
    )
    if layout == "NHWC":
        whole, made = whole.permute(0, 3, 1, 2), made.permute(0, 3, 1, 2)
    lost = (made == -7.5).all(axis=1).numpy()
    assert 0.3 < lost.any(axis=(1, 2)).mean() < 1
    assert np.array_equal(lost & (pixels != 3).any(axis=3), gone)
    assert torch.equal(made.permute(0, 2, 3, 1)[~lost], whole.permute(0, 2, 3, 1)[~lost])


def _same(row: dict[str, Any]) -> dict[str, Any]:
    return row


@pytest.mark.parametrize("layout", Layouts)
def test_a_tensor_of_a_column_is_erased_as_one_that_was_just_made(layout: Any) -> None:
    pipe, _ = images()
    tensors = pipe.normalize("image", MEAN, STD, layout=layout)
    apart = tensors.map(_same, schema=tensors.schema).random_erasing("image", value="random", key="box")
    assert torch.equal(batch(apart), batch(tensors.random_erasing("image", value="random", key="box")))


@pytest.mark.parametrize("layout", Layouts)
def test_bfloat16_is_erased_as_float32_is_and_rounded(layout: Any) -> None:
    pipe, _ = images()
    wide = pipe.normalize("image", MEAN, STD, layout=layout)
    tensors = pipe.normalize("image", MEAN, STD, layout=layout, dtype="bfloat16")
    wanted = batch(wide.random_erasing("image", 0.8, value="random", key="box")).to(torch.bfloat16)
    made = batch(tensors.random_erasing("image", 0.8, value="random", key="box"))
    assert made.dtype == torch.bfloat16
    assert made.stride() == wanted.stride()
    assert torch.equal(made, wanted)
    apart = tensors.filter(_every).random_erasing("image", 0.8, value="random", key="box")
    assert torch.equal(batch(apart), wanted)


@pytest.mark.parametrize("layout", Layouts)
def test_pixels_in_the_layout_of_a_batch_are_erased(layout: Any) -> None:
    pipe, _ = images()
    wanted = batch(pipe.random_erasing("image", 0.8, value=(1, 2, 3), key="box"))
    made = batch(
        pipe.to_dtype("image", "uint8", layout=layout).random_erasing(
            "image", 0.8, value=(1, 2, 3), key="box"
        )
    )
    assert torch.equal(made if layout == "NHWC" else made.permute(0, 2, 3, 1), wanted)


def _every(row: dict[str, Any]) -> bool:
    return True


def test_random_noise_is_even_in_pixels_and_normal_in_tensors() -> None:
    pipe, pixels = images()
    noisy = batch(pipe.random_erasing("image", 1.0, scale=(0.5, 0.9), value="random")).numpy()
    changed = noisy[noisy != pixels].astype(float)
    assert changed.mean() == pytest.approx(127.5, abs=4)
    assert changed.std() == pytest.approx(256 / 12**0.5, abs=4)
    tensors = pipe.normalize("image", MEAN, STD)
    made = batch(tensors.random_erasing("image", 1.0, scale=(0.5, 0.9), value="random"))
    changed = made[made != batch(tensors)]
    assert changed.mean().item() == pytest.approx(0, abs=0.05)
    assert changed.std().item() == pytest.approx(1, abs=0.05)
    assert len(torch.unique(changed)) > 0.99 * len(changed), "no two images have the same noise"


def test_alpha_stays_unless_it_is_named() -> None:
    pipe, pixels = images(4)
    assert np.array_equal(batch(pipe.random_erasing("image", 1.0))[..., 3], pixels[..., 3])
    named = batch(pipe.random_erasing("image", 1.0, value=(1, 2, 3, 4))).numpy()
    assert (named == (1, 2, 3, 4)).all(axis=3).any(axis=(1, 2)).all()


def test_a_box_of_no_rows_paints_nothing() -> None:
    tensor = np.ones((4, 4, 3), np.float32)
    RandomErasing(column="image").paint(tensor, Erasure(2, 1, 0, 3, 5))
    assert (tensor == 1).all()


def test_an_image_of_one_pixel_stays() -> None:
    pixels = np.full((6, 1, 1, 3), 9, np.uint8)
    made = batch(flow.from_columns({"image": np.repeat(pixels, 2, axis=0)}).random_erasing("image", 1.0))
    assert (made == 9).all()


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        ({"p": 2}, "p=2"),
        ({"scale": (0.5, 0.1)}, "scale"),
        ({"ratio": (0, 1)}, "ratio"),
        ({"value": "noise"}, "'noise'"),
        ({"value": (1, 2)}, "3 channels"),
        ({"value": 256}, "uint8"),
        ({"value": 0.5}, "uint8"),
        ({"value": float("nan")}, "uint8"),
        ({"value": None}, "value=None"),
        ({"value": ()}, "value=()"),
    ],
)
def test_arguments_that_paint_no_box_are_an_error(arguments: dict[str, Any], what: str) -> None:
    with pytest.raises(PlanError) as caught:
        images()[0].random_erasing("image", **arguments)
    assert what in caught.value.message
    assert caught.value.hint


def test_values_of_tensors_may_be_any_numbers() -> None:
    pipe, _ = images()
    made = batch(pipe.normalize("image", MEAN, STD).random_erasing("image", 1.0, value=(-1.5, 0, 300)))
    assert (made == torch.tensor([-1.5, 0, 300])[:, None, None]).all(axis=1).any()


def test_a_tensor_of_which_no_axis_tells_the_channels_is_an_error() -> None:
    pipe = flow.from_columns({"image": np.zeros((4, 3, 9, 4), np.float32)})
    with pytest.raises(PlanError, match="first axis or the last"):
        pipe.random_erasing("image")
    with pytest.raises(PlanError, match="no images"):
        flow.from_columns({"image": np.zeros((4, 9, 9, 9), np.float32)}).random_erasing("image")


def test_steps_on_pixels_do_not_come_behind_normalize() -> None:
    pipe, _ = images()
    behind = pipe.normalize("image", MEAN, STD).random_erasing("image")
    with pytest.raises(PlanError) as caught:
        behind.color_jitter("image", brightness=0.1)
    assert "in front of normalize" in caught.value.hint


def test_a_value_for_other_channels_than_an_image_has_makes_it_a_bad_row() -> None:
    colours = photograph(1, 30, 40)
    files = [encoded(pixels, "PNG") for pixels in (colours, colours[..., 0], colours)]
    pipe = flow.from_columns({"image": files}).decode_image("image", "unchanged")
    erased = pipe.random_erasing("image", 1.0, value=(1, 2, 3)).batch(1)
    with erased.loader(on_error="skip", ids=True) as loader:
        assert [found["__id__"].item() for found in loader] == [0, 2]
    with pytest.raises(DataError, match="1 channels"), erased.loader() as loader:
        list(loader)


@pytest.mark.parametrize("layout", Layouts)
def test_boxes_and_masks_follow_through_a_chain_whose_tensor_is_erased(layout: Any) -> None:
    _, pixels = images()
    columns = {"image": pixels, "box": np.full((12, 4), 9, np.float32), "mask": pixels[..., 0]}
    rows = flow.from_columns(columns).seed(1).annotate("image", boxes="box", masks="mask")
    made = rows.random_erasing("image", value=5, key="first").random_crop("image", 24, key="crop")
    made = made.normalize("image", MEAN, STD, layout=layout)
    with made.batch(12).loader() as loader:
        whole = next(iter(loader))
    with made.random_erasing("image", 1.0, value=-7.5, key="box").batch(12).loader() as loader:
        erased = next(iter(loader))
    for name in ("box", "mask"):
        assert torch.equal(erased[name], whole[name])
    lost = erased["image"] == -7.5
    assert 0 < lost.float().mean() < 0.5
    assert torch.equal(erased["image"][~lost], whole["image"][~lost])
    assert (whole["box"] != 9).any()
