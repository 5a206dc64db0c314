"""Files of images, common and odd, have the pixels that Pillow gives them, in the mode asked for."""

from __future__ import annotations

import io
import struct
import warnings
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import cv2
import numpy as np
import pytest
import simplejpeg
from odd_files import decoded, interlaced_png, jpeg_with, tiled_tiff
from photographs import encoded, photograph
from PIL import Image

Pixels = np.ndarray[Any, np.dtype[Any]]
HEIGHT, WIDTH = 31, 47
PIXELS = photograph(0, HEIGHT, WIDTH)
COLOURS = Image.fromarray(PIXELS)
GREY = COLOURS.convert("L")
PALETTE = COLOURS.quantize(64)
MODES = ["RGB", "L", "RGBA", "unchanged"]


def saved(image: Image.Image, format: str, **options: Any) -> bytes:
    file = io.BytesIO()
    image.save(file, format, **options)
    return file.getvalue()


def with_alpha(image: Image.Image) -> Image.Image:
    image = image.copy()
    image.putalpha(GREY.rotate(180))
    return image


def jpeg(**options: Any) -> bytes:
    return encoded(PIXELS, **options)


def sampled(sampling: str) -> bytes:
    return bytes(simplejpeg.encode_jpeg(PIXELS, colorsubsampling=sampling))


def larger_canvas(gif: bytes, by: int = 7) -> bytes:
    """A GIF that says of itself, but not of its frame, to be so much wider and higher."""
    return gif[:6] + struct.pack("<HH", WIDTH + by, HEIGHT + by) + gif[10:]


CMYK = saved(COLOURS.convert("CMYK"), "JPEG", quality=95)

JPEGS: dict[str, bytes] = {
    "baseline": jpeg(),
    "progressive": jpeg(progressive=True),
    "restart markers": jpeg(restart_marker_blocks=1),
    "grey": encoded(np.asarray(GREY)),
    "Adobe RGB": jpeg(keep_rgb=True),
    "CMYK": CMYK,
    "YCCK": jpeg_with(CMYK, transform=2),
    **{name: sampled(name) for name in ("444", "422", "420", "440", "411")},
    "colours larger than grey": jpeg_with(jpeg(), sampling=(0x11, 0x22)),
    "garbage behind it": jpeg() + b"\xff\xd8garbage" * 9,
    "numbers of the scan that some phones write": jpeg_with(jpeg(), last=0),
    "zeros in front of its end": jpeg()[:-2] + bytes(40) + jpeg()[-2:],
    "zeros in front of its tables": jpeg().replace(b"\xff\xc4", b"\0\0\0\xff\xc4", 1),
    "an ICC profile": jpeg(icc_profile=b"of no use" * 20),
    "a comment": jpeg(comment=b"taken by hand"),
    "one pixel": encoded(PIXELS[:1, :1]),
    "one row": encoded(PIXELS[:1]),
    "one column": encoded(PIXELS[:, :1]),
}

OTHERS: dict[str, bytes] = {
    "PNG": saved(COLOURS, "PNG"),
    "PNG, grey": saved(GREY, "PNG"),
    "PNG, grey and alpha": saved(with_alpha(GREY), "PNG"),
    "PNG, alpha": saved(with_alpha(COLOURS), "PNG"),
    "PNG, 1 bit": saved(COLOURS.convert("1"), "PNG"),
    "PNG, palette": saved(PALETTE, "PNG"),
    "PNG, palette of 4 bits": saved(COLOURS.quantize(16), "PNG", bits=4),
    "PNG, a colour of the palette transparent": saved(PALETTE, "PNG", transparency=3),
    "PNG, palette with alpha": saved(PALETTE, "PNG", transparency=bytes(range(0, 256, 4))),
    "PNG, a colour transparent": saved(COLOURS, "PNG", transparency=tuple(PIXELS[0, 0].tolist())),
    "PNG, a grey transparent": saved(GREY, "PNG", transparency=int(np.asarray(GREY)[0, 0])),
    "PNG, interlaced": interlaced_png(PIXELS),
    "PNG, interlaced, one pixel": interlaced_png(PIXELS[:1, :1]),
    "PNG, animated": saved(COLOURS, "PNG", save_all=True, append_images=[COLOURS.rotate(180)]),
    "PNG, an ICC profile": saved(COLOURS, "PNG", icc_profile=b"of no use"),
    "GIF": saved(PALETTE, "GIF"),
    "GIF, transparent": saved(PALETTE, "GIF", transparency=2),
    "GIF, animated": saved(
        PALETTE, "GIF", save_all=True, append_images=[PALETTE.rotate(90)], disposal=2, transparency=5,
    ),
    "GIF, a frame smaller than its canvas": larger_canvas(saved(PALETTE, "GIF", transparency=0)),
    "GIF, a frame larger than its canvas": larger_canvas(saved(PALETTE, "GIF"), -9),
    "BMP": saved(COLOURS, "BMP"),
    "BMP, grey": saved(GREY, "BMP"),
    "BMP, 1 bit": saved(COLOURS.convert("1"), "BMP"),
    "BMP, palette": saved(PALETTE, "BMP"),
    "BMP, 32 bits": saved(with_alpha(COLOURS), "BMP"),
    "TIFF": saved(COLOURS, "TIFF"),
    "TIFF, grey": saved(GREY, "TIFF"),
    "TIFF, alpha": saved(with_alpha(COLOURS), "TIFF"),
    "TIFF, palette": saved(PALETTE, "TIFF"),
    "TIFF, 1 bit": saved(COLOURS.convert("1"), "TIFF", compression="group4"),
    "TIFF, CMYK": saved(COLOURS.convert("CMYK"), "TIFF"),
    "TIFF, YCbCr": saved(COLOURS.convert("YCbCr"), "TIFF"),
    "TIFF, LZW": saved(COLOURS, "TIFF", compression="tiff_lzw"),
    "TIFF, JPEG": saved(COLOURS, "TIFF", compression="jpeg"),
    "TIFF, two pages": saved(COLOURS, "TIFF", save_all=True, append_images=[COLOURS.rotate(180)]),
    "TIFF, tiles": tiled_tiff(np.asarray(GREY)),
    "WebP": saved(COLOURS, "WEBP"),
    "WebP, lossless": saved(COLOURS, "WEBP", lossless=True),
    "WebP, alpha": saved(with_alpha(COLOURS), "WEBP", lossless=True),
    "WebP, animated": saved(COLOURS, "WEBP", save_all=True, append_images=[COLOURS.rotate(180)]),
}  # fmt: skip


def by_pillow(file: bytes, mode: str) -> Pixels:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pixels = np.asarray(Image.open(io.BytesIO(file)).convert(mode))
    return pixels.reshape(*pixels.shape[:2], -1)


def own_mode(file: bytes) -> str:
    """The mode that keeps what a file has."""
    image = Image.open(io.BytesIO(file))
    plain = {"1": "L", "L": "L", "LA": "LA", "RGBA": "RGBA"}.get(image.mode, "RGB")
    return plain + "A" if "transparency" in image.info else plain


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", JPEGS)
def test_a_jpeg_is_that_of_pillow_within_two_levels(name: str, mode: str) -> None:
    file = JPEGS[name]
    wanted = by_pillow(file, own_mode(file) if mode == "unchanged" else mode)
    made = decoded(file, mode)
    assert made.dtype == np.uint8
    assert made.shape == wanted.shape
    far = np.abs(made.astype(int) - wanted) > 2
    if mode == "L":
        # The file's own grey, which Pillow's convert has only of colours that are none beyond black and white.
        colours = by_pillow(file, "RGB")
        far &= ((colours > 0) & (colours < 255)).all(-1, keepdims=True)
    assert not far.any()


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", OTHERS)
def test_a_file_of_another_format_is_that_of_pillow(name: str, mode: str) -> None:
    file = OTHERS[name]
    wanted = by_pillow(file, own_mode(file) if mode == "unchanged" else mode)
    made = decoded(file, mode)
    assert made.dtype == np.uint8
    assert np.array_equal(made, wanted)


@pytest.mark.parametrize("name", ["PNG", "PNG, grey", "GIF", "BMP", "TIFF, tiles", "WebP"])
def test_what_is_opaque_has_alpha_255(name: str) -> None:
    assert (decoded(OTHERS[name], "RGBA")[..., 3] == 255).all()
    assert (decoded(JPEGS["baseline"], "RGBA")[..., 3] == 255).all()


def test_the_grey_of_a_jpeg_is_its_own() -> None:
    image = Image.open(io.BytesIO(JPEGS["420"]))
    image.draft("L", image.size)
    assert np.array_equal(decoded(JPEGS["420"], "L")[..., 0], np.asarray(image))


def test_the_first_frame_of_an_animation_is_the_image() -> None:
    for name in ("PNG, animated", "TIFF, two pages"):
        assert np.array_equal(decoded(OTHERS[name]), PIXELS)


def _sixteen(pixels: Pixels, format: str) -> bytes:
    """A file of 16-bit samples, as OpenCV writes it."""
    whole, file = cv2.imencode(format, pixels if pixels.ndim == 2 else pixels[..., ::-1])
    assert whole
    return file.tobytes()


@pytest.mark.parametrize("format", [".png", ".tiff"])
@pytest.mark.parametrize("mode", MODES)
def test_of_16_bits_the_upper_half_is_left(format: str, mode: str) -> None:
    values = np.random.default_rng(0).integers(0, 1 << 16, (HEIGHT, WIDTH, 3), np.uint16)
    upper = (values >> 8).astype(np.uint8)
    grey = mode if mode != "unchanged" else "L"
    colours = mode if mode != "unchanged" else "RGB"
    for pixels, wanted in (
        (values, np.asarray(Image.fromarray(upper).convert(colours))),
        (values[..., 0], np.asarray(Image.fromarray(upper[..., 0]).convert(grey))),
    ):
        made = decoded(_sixteen(pixels, format), mode)
        assert made.dtype == np.uint8
        assert np.array_equal(made, wanted.reshape(made.shape))


def test_lab_becomes_rgb_before_anything_else() -> None:
    file = saved(COLOURS.convert("LAB"), "TIFF")
    for mode in MODES:
        wanted = Image.open(io.BytesIO(file)).convert("RGB").convert("RGB" if mode == "unchanged" else mode)
        assert np.array_equal(decoded(file, mode).reshape(np.asarray(wanted).shape), np.asarray(wanted))


def test_many_threads_decode_as_one_does() -> None:
    """Of the libraries' states none is shared: the first images of a process may be those of many threads."""
    files = [*JPEGS.values(), *OTHERS.values()] * 3
    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(decoded, files))
    assert all(np.array_equal(pixels, decoded(file)) for pixels, file in zip(made, files, strict=True))


@pytest.mark.parametrize("mode", MODES)
def test_a_large_image_is_as_a_small_one(mode: str) -> None:
    """It is converted in strips."""
    colours = Image.fromarray(photograph(0, 400, 600)).resize((901, 1203))
    for image, format in ((colours, "PNG"), (colours.quantize(64), "GIF"), (colours.convert("CMYK"), "TIFF")):
        file = saved(image, format)
        assert np.array_equal(
            decoded(file, mode), by_pillow(file, own_mode(file) if mode == "unchanged" else mode)
        )
