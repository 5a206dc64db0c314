"""Pixels as numbers: the values of torchvision's ToDtype and Normalize, in every dtype and layout."""

from __future__ import annotations

from itertools import product
from typing import Any, get_args

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest
import torch
from photographs import encoded

import dataflow as flow
from connectors.bfloat16 import BFloat16Type, is_bfloat16, rounded, widened
from connectors.tensors import empty_rows, shape_of, to_arrow, to_numpy
from dataflow.errors import PlanError
from dataflow.ops.images.form import Dtype, Layout

LAYOUTS = [layout for layout in get_args(Layout) if layout != "HWC"]
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
HEIGHT, WIDTH, ROWS = 5, 7, 31


def _image(number: int) -> npt.NDArray[np.uint8]:
    return np.random.default_rng(number).integers(0, 256, (HEIGHT, WIDTH, 3), np.uint8)


def _files(rows: int = ROWS) -> flow.Pipeline:
    files = [encoded(_image(number), "PNG") for number in range(rows)]
    return flow.from_columns({"image": files, "n": list(range(rows))})


def _rows(rows: int = ROWS) -> flow.Pipeline:
    return _files(rows).decode_image("image")


def _deep() -> flow.Pipeline:
    return flow.from_columns({"image": np.zeros((1, 2, 2, 3), np.uint16)})


def _fixed(rows: int = ROWS) -> flow.Pipeline:
    return _rows(rows).center_crop("image", (HEIGHT, WIDTH))


def _expected(number: int, dtype: str, *, normalized: bool = False) -> torch.Tensor:
    """As the source of torchvision has it, one operation after the other, (channels, height, width)."""
    pixels = torch.from_numpy(_image(number)).permute(2, 0, 1)
    if dtype == "uint8":
        return pixels
    values = pixels.to(torch.float32).mul_(1.0 / 255)
    if normalized:
        mean, std = torch.tensor(MEAN).view(3, 1, 1), torch.tensor(STD).view(3, 1, 1)
        values = values.sub(mean).div_(std)
    converted: torch.Tensor = values.to(getattr(torch, dtype))
    return converted


def _check(batch: dict[str, Any], dtype: str, layout: str, *, normalized: bool = False) -> None:
    images = batch["image"]
    assert images.dtype == getattr(torch, dtype)
    form = torch.channels_last if layout == "channels_last" else torch.contiguous_format
    assert images.is_contiguous(memory_format=form)
    shown = images.permute(0, 3, 1, 2) if layout == "NHWC" else images
    for number, image in zip(batch["n"].tolist(), shown, strict=True):
        assert torch.equal(image, _expected(number, dtype, normalized=normalized))


@pytest.mark.parametrize(("dtype", "layout"), list(product(get_args(Dtype), LAYOUTS)))
@pytest.mark.parametrize("lanes", [1, 3])
def test_batches_have_the_numbers_and_the_memory_that_were_asked_for(
    dtype: Any, layout: Any, lanes: int
) -> None:
    pipe = _fixed().to_dtype("image", dtype, layout=layout)
    for remainder in ("pad", "keep"):
        with pipe.batch(global_size=6, lanes=lanes, remainder=remainder).loader(threads=2) as loader:
            for batch in loader:
                _check(batch, dtype, layout)


@pytest.mark.parametrize(("dtype", "layout"), list(product(["float32", "float16", "bfloat16"], LAYOUTS)))
def test_normalized_numbers_are_those_of_torchvision_bit_for_bit(dtype: Any, layout: Any) -> None:
    pipe = _fixed(8).normalize("image", MEAN, STD, dtype=dtype, layout=layout).batch(4)
    with pipe.loader() as loader:
        for batch in loader:
            _check(batch, dtype, layout, normalized=True)


def test_every_value_of_a_pixel_is_scaled_as_torchvision_does() -> None:
    pixels = np.arange(256, dtype=np.uint8).reshape(1, 16, 16, 1)
    pipe = flow.from_columns({"image": pixels}).to_dtype("image").batch(1)
    with pipe.loader(output="numpy") as loader:
        found = next(iter(loader))["image"].ravel()
    # What torchvision 0.29 gives where a product with 1 / 255 is not the quotient by 255.
    golden = {3: 0x3C40C0C2, 6: 0x3CC0C0C2, 7: 0x3CE0E0E2, 12: 0x3D40C0C2, 13: 0x3D50D0D2}
    assert found.view(np.uint32)[list(golden)].tolist() == list(golden.values())
    assert np.array_equal(found, np.arange(256, dtype=np.float32) * np.float32(1.0 / 255))


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("channels", [1, 2, 3, 4])
def test_pixels_of_8_and_16_bits_of_any_channels(layout: Any, channels: int) -> None:
    for kind in (np.uint8, np.uint16):
        pixels = np.random.default_rng(0).integers(0, np.iinfo(kind).max, (4, 3, 1, channels), kind)
        first = pixels if layout == "NHWC" else pixels.transpose(0, 3, 1, 2)
        rows = flow.from_columns({"image": pixels})
        for scale in (True, False):
            expected: Any = first * np.float32(1 / np.iinfo(kind).max) if scale else first.astype(np.float32)
            pipe = rows.to_dtype("image", scale=scale, layout=layout).batch(4)
            with pipe.loader(output="numpy") as loader:
                assert np.array_equal(next(iter(loader))["image"], expected)
        upper = first >> 8 if kind is np.uint16 else first
        with rows.to_dtype("image", "uint8", layout=layout).batch(4).loader(output="numpy") as loader:
            assert np.array_equal(next(iter(loader))["image"], upper)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_bfloat16_is_its_bits_in_numpy_and_a_type_of_its_own_in_arrow(layout: Any) -> None:
    pipe = _fixed(4).to_dtype("image", "bfloat16", layout=layout).batch(4)
    with pipe.loader(output="numpy") as loader:
        bits = next(iter(loader))["image"]
    with pipe.loader(output="arrow") as loader:
        column = next(iter(loader)).column("image")
    assert bits.dtype == np.uint16
    assert is_bfloat16(column.type)
    assert np.array_equal(to_numpy(column), bits)
    shown = bits.transpose(0, 3, 1, 2) if layout == "NHWC" else bits
    assert np.array_equal(widened(shown[0].copy()), _expected(0, "bfloat16").float().numpy())


def test_bfloat16_is_rounded_as_torch_rounds() -> None:
    values = (
        np.random.default_rng(1).integers(0, 1 << 32, 100_000, np.uint64).astype(np.uint32).view(np.float32)
    )
    values[:4] = np.array([np.nan, np.inf, -np.inf, 3.4028235e38], np.float32)
    wanted = torch.from_numpy(values).to(torch.bfloat16)
    found = torch.from_numpy(rounded(values).view(np.int16)).view(torch.bfloat16)
    assert torch.equal(found.isnan(), wanted.isnan())
    assert torch.equal(found[~found.isnan()], wanted[~wanted.isnan()])


def test_memory_for_rows_of_a_type_becomes_arrow_without_a_copy() -> None:
    kinds: list[Any] = [
        pa.fixed_shape_tensor(BFloat16Type(), [2, 3, 4], permutation=[2, 0, 1]),
        pa.fixed_shape_tensor(pa.list_(pa.int32(), 5), [2, 3, 4], permutation=[1, 2, 0]),
        pa.list_(pa.float32(), 3),
        pa.int8(),
    ]
    for kind in kinds:
        found = shape_of(kind)
        assert found is not None
        rows = empty_rows(6, kind)
        assert (rows.dtype, rows.shape) == (found[0], (6, *found[1]))
        rows[...] = np.arange(rows.size).reshape(rows.shape)
        column = to_arrow(rows, kind)
        assert np.shares_memory(to_numpy(column), rows)
        assert np.array_equal(to_numpy(column), rows)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_bad_images_are_left_out_or_replaced_in_every_layout(layout: Any) -> None:
    files = [encoded(_image(number), "PNG") for number in range(24)]
    files[5] = files[16] = b"no image"
    rows = flow.from_columns({"image": files, "n": list(range(24))}).shuffle(12)
    pipe = rows.decode_image("image").center_crop("image", (HEIGHT, WIDTH))
    pipe = pipe.to_dtype("image", "bfloat16", layout=layout).batch(global_size=4, lanes=2)
    for policy in ("skip", "replace"):
        with pipe.loader(on_error=policy, threads=2) as loader:
            for batch in loader:
                images = batch["image"].permute(0, 3, 1, 2) if layout == "NHWC" else batch["image"]
                if policy == "skip":
                    _check(batch, "bfloat16", layout)
                assert all(
                    any(torch.equal(image, _expected(number, "bfloat16")) for number in range(24))
                    for image in images
                )


def test_a_restored_loader_goes_on_with_the_same_memory_and_numbers() -> None:
    pipe = _fixed().shuffle(8).to_dtype("image", layout="channels_last").batch(global_size=6, lanes=3)
    with pipe.loader(threads=2) as loader:
        whole = list(loader)
    with pipe.loader(threads=1) as loader:
        next(iter(loader))
        state = loader.state_dict()
    with pipe.loader(threads=2) as loader:
        loader.load_state_dict(state)
        for batch, again in zip(whole[1:], loader, strict=True):
            _check(again, "float32", "channels_last")
            assert torch.equal(batch["image"], again["image"])


def test_a_function_behind_it_gets_arrays_and_keeps_what_it_passes_on() -> None:
    pipe = _fixed().to_dtype("image", "bfloat16", layout="channels_last")
    seen = []

    def look(row: dict[str, Any]) -> dict[str, Any]:
        seen.append((row["image"].shape, row["image"].dtype))
        return row

    with pipe.map(look).batch(4).loader(threads=1) as loader:
        for batch in loader:
            images = batch["image"]
            assert images.dtype == torch.bfloat16
            assert torch.equal(images[0], _expected(int(batch["n"][0]), "bfloat16"))
    assert set(seen) == {((3, HEIGHT, WIDTH), np.dtype(np.uint16))}


def test_joined_inputs_keep_their_layout() -> None:
    pipe = _fixed(8).to_dtype("image", "bfloat16", layout="channels_last")
    with flow.concat(pipe, pipe).batch(8).loader() as loader:
        for batch in loader:
            _check(batch, "bfloat16", "channels_last")


def test_a_spec_says_what_was_written() -> None:
    pipe = _fixed().to_dtype("image", "float16", scale=False, layout="NHWC")
    assert pipe.node.written() == {
        "column": "image", "dtype": "float16", "scale": False, "layout": "NHWC",
    }  # fmt: skip


@pytest.mark.parametrize(("write", "hint"), [
    (lambda: _rows().to_dtype("image"), "resize or crop"),
    (lambda: _files().decode_image("image", "unchanged").resize("image", 8).to_dtype("image"), "mode="),
    (lambda: _fixed().to_dtype("image", "float23"), "float32"),  # type: ignore[arg-type]
    (lambda: _fixed().to_dtype("image", layout="NCWH"), "NCHW"),  # type: ignore[arg-type]
    (lambda: _fixed().to_dtype("image", scale=1), "scale=True"),  # type: ignore[arg-type]
    (lambda: _fixed().to_dtype("picture"), "image"),
    (lambda: _fixed().to_dtype("image").to_dtype("image"), "in front of"),
    (lambda: _fixed().to_dtype("image", "bfloat16", layout="NHWC").resize("image", 8), "in front of"),
    (lambda: _fixed().normalize("image", MEAN, STD, dtype="uint8"), "to_dtype"),
    (lambda: _fixed().to_dtype("image", "bfloat16").cast({"image": "float32[3,5,7]"}), "to_dtype"),
    (lambda: _deep().to_dtype("image", "uint8", scale=False), "scale=True"),
])  # fmt: skip
def test_what_does_not_fit_is_an_error_where_it_is_written(write: Any, hint: str) -> None:
    with pytest.raises(PlanError) as raised:
        write()
    assert hint in str(raised.value.hint)
