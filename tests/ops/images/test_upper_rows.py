"""Rows of a JPEG below the part that is wanted are left out, and those of the part are the same, damage included."""

from __future__ import annotations

from math import ceil, floor
from typing import Any

import numpy as np
import pytest
import simplejpeg
from hypothesis import given
from hypothesis import strategies as st
from odd_files import exif, jpeg_with, with_exif
from photographs import encoded, photograph

import dataflow as flow
from dataflow.errors import DataError
from dataflow.graph.image_column import Pixels
from dataflow.ops.images.canvas import Box
from dataflow.ops.images.pixels.jpeg import Jpeg, jpeg_head
from dataflow.ops.images.pixels.upper_rows import upper_rows

PIXELS = photograph(0, 117, 133)
JPEG = encoded(PIXELS)
HEIGHT, WIDTH, _ = PIXELS.shape


def read(file: bytes, part: Box, factor: int = 1, mode: str = "RGB") -> Pixels:
    """The part of an image at a scale of one in `factor`, and the pixels that its edges touch."""
    head = jpeg_head(memoryview(file))
    assert head is not None
    least = None if factor == 1 else (floor(part.height / factor / 1.41), floor(part.width / factor / 1.41))
    pixels, place = Jpeg(memoryview(file), head, mode, reduced=True).read(part, least)
    assert place.top >= 0
    assert place.left >= 0
    rows = slice(floor(place.top), ceil(place.top + place.height))
    return pixels[rows, floor(place.left) : ceil(place.left + place.width)]


def upper(file: bytes, rows: int) -> Pixels | None:
    made = np.empty((rows, WIDTH, 3), np.uint8)
    return made if upper_rows(memoryview(file), rows, "RGB", made) else None


@given(
    st.sampled_from(["4:4:4", "4:2:2", "4:2:0", "4:1:1"]), st.integers(1, 8), st.sampled_from([1, 2, 4, 8]),
    st.sampled_from(["RGB", "L", "RGBA"]), st.data(),
)  # fmt: skip
def test_a_part_is_the_same_however_many_rows_are_decoded(
    sampling: str, orientation: int, factor: int, mode: str, data: st.DataObject
) -> None:
    file = with_exif(encoded(PIXELS, subsampling=sampling), exif(orientation))
    size = (WIDTH, HEIGHT) if orientation >= 5 else (HEIGHT, WIDTH)
    height, width = (data.draw(st.integers(16, side)) for side in size)
    top, left = (
        data.draw(st.integers(0, side - kept)) for side, kept in zip(size, (height, width), strict=True)
    )
    part = Box(top, left, height, width)
    with pytest.MonkeyPatch.context() as patch:
        got = read(file, part, factor, mode)
        patch.setattr("dataflow.ops.images.pixels.jpeg.upper_rows", lambda *_: False)
        assert np.array_equal(got, read(file, part, factor, mode))


@pytest.mark.parametrize("rows", [8, 50, HEIGHT])
def test_rows_of_a_plain_file_are_decoded_alone(rows: int) -> None:
    got = upper(JPEG, rows)
    assert got is not None
    assert np.array_equal(got[: rows - 2], read(JPEG, Box(0, 0, HEIGHT, WIDTH))[: rows - 2])


@pytest.mark.parametrize("options", [{"progressive": True}, {"restart_marker_rows": 1}])
def test_files_whose_rows_are_not_one_run_are_decoded_whole(options: dict[str, Any]) -> None:
    file = encoded(PIXELS, **options)
    assert upper(file, 50) is None
    whole = read(file, Box(0, 0, HEIGHT, WIDTH))
    assert np.array_equal(read(file, Box(0, 0, 20, WIDTH)), whole[:20])


@pytest.mark.parametrize("kept", [0.6, 0.9, 0.999])
def test_a_file_that_is_cut_off_below_the_part_is_broken(kept: float) -> None:
    file = JPEG[: int(len(JPEG) * kept)]
    assert upper(file, 20) is None
    with pytest.raises(DataError, match="JPEG is broken"):
        read(file, Box(0, 0, 10, WIDTH))


def test_damage_in_the_part_is_found_and_damage_below_it_is_not_looked_for() -> None:
    middle = len(JPEG) // 2
    file = JPEG[:middle] + b"\xff\xd9" + JPEG[middle:-2] + b"\xff\xd9"
    whole = read(JPEG, Box(0, 0, HEIGHT, WIDTH))
    assert np.array_equal(read(file, Box(0, 0, 20, WIDTH)), whole[:20])
    with pytest.raises(DataError, match="premature end"):
        read(file, Box(0, 0, HEIGHT - 30, WIDTH))


def test_what_a_phone_leaves_in_the_head_hides_no_damage() -> None:
    file = jpeg_with(JPEG, last=0)
    assert upper(file, 50) is None
    assert read(file, Box(0, 0, 20, WIDTH)).shape == (20, WIDTH, 3)


@pytest.mark.parametrize("on_error", ["skip", "replace"])
def test_which_rows_are_bad_depends_on_no_crop_where_bad_rows_are_borne(on_error: Any) -> None:
    files = [
        damaged_below(number) if number % 2 else encoded(photograph(number, 117, 133)) for number in range(12)
    ]
    pipe = flow.from_columns({"image": files}).decode_image("image").random_resized_crop("image", 16).batch(2)
    with pipe.loader(output="numpy", ids=True, on_error=on_error) as loader:
        epochs = [list(loader) for _ in range(3)]
    ids = [np.concatenate([batch["__id__"] for batch in batches]) for batches in epochs]
    if on_error == "skip":
        assert [found.tolist() for found in ids] == [list(range(0, 12, 2))] * 3
    else:
        stand_ins = [np.concatenate([batch["__replaced_by__"] for batch in batches]) for batches in epochs]
        assert [np.flatnonzero(found >= 0).tolist() for found in stand_ins] == [list(range(1, 12, 2))] * 3


def test_damage_below_the_part_is_found_where_that_is_asked_for() -> None:
    rows = flow.from_columns({"image": [damaged_below(1)]})
    with rows.decode_image("image").center_crop("image", 40).batch(1).loader(output="numpy") as loader:
        assert len(list(loader)) == 1
    with (
        rows.decode_image("image", verify=True)
        .center_crop("image", 40)
        .batch(1)
        .loader(output="numpy") as loader,
        pytest.raises(DataError, match="broken"),
    ):
        list(loader)


def damaged_below(number: int) -> bytes:
    """A photograph whose damage lies, and shows itself, below row 90 of 117."""
    whole = encoded(photograph(number, HEIGHT, WIDTH))
    at = len(whole) * 9 // 10
    for seed in range(200):
        noise = np.random.default_rng(seed).integers(0, 255, 60, np.uint8).tobytes()
        file = whole[:at] + noise + whole[at + 60 :]
        if upper(file, 90) is not None and is_broken(file):
            return file
    raise AssertionError("no damage is found by the whole decode alone")


def is_broken(file: bytes) -> bool:
    try:
        simplejpeg.decode_jpeg(file, strict=True)
    except ValueError as error:
        return "extraneous" not in str(error)
    return False
