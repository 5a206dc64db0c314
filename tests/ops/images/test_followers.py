"""Boxes, keypoints and masks go where the pixels go, through any steps that move these."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from dataflow.ops.images.center_crop import CenterCrop
from dataflow.ops.images.pixels.followers import Boxes, Keypoints, Mask
from dataflow.ops.images.pixels.picture import Picture, Stored
from dataflow.ops.images.random_crop import RandomCrop
from dataflow.ops.images.random_flip import RandomFlip
from dataflow.ops.images.random_resized_crop import RandomResizedCrop
from dataflow.ops.images.random_rotate import RandomRotate
from dataflow.ops.images.resize import Resize
from dataflow.ops.images.step import OneImageStep

HEIGHT, WIDTH = 60, 80
sizes = st.tuples(st.integers(30, 90), st.integers(30, 90))
flips = st.builds(lambda: RandomFlip(column="i", horizontal=0.5, vertical=0.5))
crops = st.one_of(
    sizes.map(lambda size: CenterCrop(column="i", size=size)),
    st.builds(
        lambda size, padding: RandomCrop(column="i", size=size, padding=padding, pad_if_needed=True),
        sizes, st.tuples(*[st.integers(0, 20)] * 4),
    ),
)  # fmt: skip
# Not smaller: what is lost there is more than a pixel once it is made larger again.
resizes = st.one_of(
    st.tuples(st.integers(80, 150), st.integers(80, 150)).map(lambda size: Resize(column="i", size=size)),
    st.integers(80, 120).map(lambda side: Resize(column="i", shorter=side)),
    sizes.map(lambda size: RandomResizedCrop(column="i", size=(90, 90), scale=(0.5, 1.0))),
)
turns = st.builds(
    lambda angle, expand: RandomRotate(column="i", degrees=(-angle, angle), expand=expand),
    st.floats(0, 180), st.booleans(),
)  # fmt: skip
rigid = st.lists(st.one_of(flips, crops), max_size=4)
seeds = st.integers(0, 2**32 - 1)
boxes = st.tuples(st.integers(0, 70), st.integers(0, 50), st.integers(5, 80), st.integers(5, 60)).map(
    lambda b: (b[0], b[1], min(WIDTH, b[0] + b[2]), min(HEIGHT, b[1] + b[3]))
)
Box = tuple[int, int, int, int]


class Scene:
    """A white box on black, and all that follows it."""

    def __init__(self, box: Box) -> None:
        pixels = np.zeros((HEIGHT, WIDTH, 1), np.uint8)
        pixels[box[1] : box[3], box[0] : box[2]] = 255
        size = (HEIGHT, WIDTH)
        values = np.array([box], np.float32)
        self.picture = Picture(Stored(pixels))
        self.boxes, self.mask = Boxes(values, size), Mask(Stored(pixels // 255 * 7), fill=0)
        self.corners = Keypoints(values.reshape(2, 2), size)

    def through(self, steps: Sequence[OneImageStep], seed: int) -> Scene:
        rng = np.random.default_rng(seed)
        for step in steps:
            words = rng.integers(0, 2**32, (1, max(1, step.words)), np.uint32)
            param = step.plan(np.array([self.picture.size]), words).params[0]
            for canvas in (self.picture, self.boxes, self.mask, self.corners):
                step.change(canvas, param)  # type: ignore[arg-type]
                assert canvas.size == self.picture.size
        return self

    @property
    def box(self) -> list[float]:
        made: list[float] = self.boxes.values[0].tolist()
        return made

    @property
    def shown(self) -> list[int] | None:
        """The bounding box of the pixels that are more white than black."""
        return _around(self.picture.pixels()[..., 0] > 127)


def _around(there: npt.NDArray[np.bool_]) -> list[int] | None:
    rows, columns = np.nonzero(there)
    return [columns.min(), rows.min(), columns.max() + 1, rows.max() + 1] if len(rows) else None


def _area(box: Sequence[float]) -> float:
    return (box[2] - box[0]) * (box[3] - box[1])


@given(boxes, rigid, seeds)
def test_flips_and_crops_are_exact(box: Box, steps: list[OneImageStep], seed: int) -> None:
    scene = Scene(box).through(steps, seed)
    assert scene.shown == (scene.box if _area(scene.box) else None)
    assert np.array_equal(scene.mask.pixels() // 7 * 255, scene.picture.pixels())


@given(boxes, rigid, resizes, rigid, seeds)
def test_a_box_is_that_of_its_pixels(box: Box, first: Any, resize: Any, then: Any, seed: int) -> None:
    scene = Scene(box).through([*first, resize, *then], seed)
    if scene.shown is None:
        assert _area(scene.box) <= 2 * max(scene.picture.size)
    else:
        assert np.abs(np.array(scene.shown) - scene.box).max() <= 1
        found = _around(scene.mask.pixels()[..., 0] == 7)
        assert found is not None
        assert np.abs(np.array(found) - scene.box).max() <= 1


@given(boxes, st.lists(st.one_of(flips, crops, turns), max_size=5), seeds)
def test_a_box_holds_its_pixels_however_they_are_turned(box: Box, steps: Any, seed: int) -> None:
    scene = Scene(box).through(steps, seed)
    turned = sum(isinstance(step, RandomRotate) for step in steps)
    if scene.shown is not None:
        low, high = np.array(scene.shown[:2]), np.array(scene.shown[2:])
        assert (low >= np.array(scene.box[:2]) - 1 - turned).all()
        assert (high <= np.array(scene.box[2:]) + 1 + turned).all()


@given(boxes, st.floats(-180, 180), st.sampled_from(["nearest", "bilinear"]))
def test_a_turned_box_is_the_bounding_box_of_its_turned_pixels(box: Box, angle: float, filter: Any) -> None:
    assume(min(box[2] - box[0], box[3] - box[1]) > 8)
    turn = RandomRotate(column="i", degrees=(angle, angle), expand=True, filter=filter)
    scene = Scene(box).through([turn], 0)
    assert scene.shown is not None
    # A corner of less than half a pixel is not seen.
    assert np.abs(np.array(scene.shown) - scene.box).max() <= 1.5
    places = scene.corners.values
    assert (places >= np.array(scene.box[:2]) - 1e-3).all()
    assert (places <= np.array(scene.box[2:]) + 1e-3).all()


@given(boxes, st.lists(st.one_of(crops, resizes), max_size=5), seeds)
def test_keypoints_are_the_corners_of_a_box_that_is_not_cut_off(box: Box, steps: Any, seed: int) -> None:
    scene = Scene(box)
    for step in steps:
        scene.through([step], seed)
        height, width = scene.picture.size
        inside = (scene.corners.values >= 0).all() and (scene.corners.values <= [width, height]).all()
        if not inside:
            return
        assert np.abs(scene.corners.values.reshape(4) - scene.box).max() < 1e-3


@pytest.mark.parametrize(("width", "x"), [(80, 79), (1, 0)])
def test_a_mirrored_keypoint_names_the_mirrored_pixel(width: int, x: int) -> None:
    points = Keypoints(np.array([[0, 0]], np.float32), (1, width))
    points.flip(horizontal=True)
    assert points.values.tolist() == [[x, 0]]


# Made by torchvision 0.29.1, of boxes (5, 6, 20, 16) and (40, 20, 50, 30) and keypoints (5, 6) and (49, 29) in 30 x 50.
BOXES, POINTS = [[5, 6, 20, 16], [40, 20, 50, 30]], [[5, 6], [49, 29]]
GOLDEN: list[tuple[OneImageStep, Any, Any]] = [
    (RandomFlip(column="i", horizontal=1), [[30, 6, 45, 16], [0, 20, 10, 30]], [[44, 6], [0, 29]]),
    (RandomFlip(column="i", horizontal=0, vertical=1), [[5, 14, 20, 24], [40, 0, 50, 10]], [[5, 23], [49, 0]]),
    (CenterCrop(column="i", size=(20, 20)), [[0, 1, 5, 11], [20, 15, 20, 20]], [[-10, 1], [34, 24]]),
    (CenterCrop(column="i", size=(40, 60)), [[10, 11, 25, 21], [45, 25, 55, 35]], [[10, 11], [54, 34]]),
    (CenterCrop(column="i", size=(31, 20)), [[0, 6, 5, 16], [20, 20, 20, 30]], [[-10, 6], [34, 29]]),
    (CenterCrop(column="i", size=(29, 49)), [[5, 6, 20, 16], [40, 20, 49, 29]], [[5, 6], [49, 29]]),
    (CenterCrop(column="i", size=(1, 1)), [[0, 0, 0, 1], [1, 1, 1, 1]], [[-19, -8], [25, 15]]),
    (Resize(column="i", size=(45, 20)), [[2, 9, 8, 24], [16, 30, 20, 45]], [[2, 9], [19.6, 43.5]]),
    (
        RandomRotate(column="i", degrees=(30, 30)),
        [[3.179, 9.706, 21.17, 25.866], [40.49, 6.83, 50, 20.49]], [[3.179, 17.206], [52.785, 15.124]],
    ),
    (
        RandomRotate(column="i", degrees=(20, 20), center=(10, 5)),
        [[5.644, 2.519, 23.159, 17.047], [43.321, 5.415, 50, 18.232]], [[5.644, 7.65], [54.856, 14.214]],
    ),
    (
        RandomRotate(column="i", degrees=(90, 90), expand=True),
        [[6, 30, 16, 45], [20, 0, 30, 10]], [[6, 45], [29, 1]],
    ),
]  # fmt: skip


@pytest.mark.parametrize(("step", "wanted", "points"), GOLDEN)
def test_coordinates_are_those_of_torchvision(step: OneImageStep, wanted: Any, points: Any) -> None:
    param = step.plan(np.array([(30, 50)]), np.zeros((1, 2), np.uint32)).params[0]
    for canvas, after in (
        (Boxes(np.array(BOXES, np.float32), (30, 50)), wanted),
        (Keypoints(np.array(POINTS, np.float32), (30, 50)), points),
    ):
        step.change(canvas, param)  # type: ignore[arg-type]
        assert np.allclose(canvas.values, after, atol=1e-3)


def test_what_padding_and_turning_add_to_a_mask_has_its_fill() -> None:
    mask = Mask(Stored(np.full((10, 10, 1), 3, np.uint8)), fill=255)
    mask.pad(1, 1, 1, 1, fill=(9, 9, 9))
    mask.resize(37, 23, "bicubic")
    assert set(np.unique(mask.pixels())) == {3, 255}
    turn = RandomRotate(column="i", degrees=(45, 45), filter="bilinear")
    mask = Mask(Stored(np.full((10, 10, 1), 3, np.uint8)), fill=255)
    turn.change(mask, turn.plan(np.array([[10, 10]]), np.zeros((1, 1), np.uint32)).params[0])
    assert set(np.unique(mask.pixels())) == {3, 255}
