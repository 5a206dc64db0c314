"""Files that are no image, or a broken one, are errors that say what is wrong, and cost their row."""

from __future__ import annotations

import contextlib
import io
import json
import struct
import tarfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from odd_files import decoded, jpeg_with, png_chunk, png_head, tiff
from photographs import encoded, photograph
from PIL import Image

import dataflow as flow
from dataflow.errors import DataError
from dataflow.ops.images.pixels.codec import open_image

PIXELS = photograph(0, 31, 47)
JPEG = encoded(PIXELS)
RESTARTED = encoded(PIXELS, restart_marker_blocks=1)
PRINTED = io.BytesIO()
Image.fromarray(PIXELS).convert("CMYK").save(PRINTED, "JPEG")

FILES = {
    "JPEG": JPEG,
    "progressive JPEG": encoded(PIXELS, progressive=True),
    "JPEG with restart markers": RESTARTED,
    "JPEG of a phone": jpeg_with(JPEG, last=0),
    "CMYK JPEG": PRINTED.getvalue(),
    **{format: encoded(PIXELS, format) for format in ("PNG", "GIF", "BMP", "TIFF", "WEBP")},
}

NO_IMAGES: dict[str, tuple[bytes, str]] = {
    "nothing": (b"", "empty"),
    "text": (b"Not found.\n", "begins with b'Not found.\\n'"),
    "a page": (b"<!DOCTYPE html>\n<html><body>404</body></html>", "is HTML"),
    "a page behind spaces": (b"\xef\xbb\xbf \n<html>", "is HTML"),
    "SVG": (b'<svg xmlns="http://www.w3.org/2000/svg"/>', "is SVG"),
    "SVG as XML": (b'<?xml version="1.0"?><svg/>', "SVG?"),
    "HEIC": (b"\0\0\0\x18ftypheic\0\0\0\0mif1heic", "is HEIC"),
    "AVIF": (b"\0\0\0\x1cftypavif\0\0\0\0avifmif1", "is AVIF"),
    "a film": (b"\0\0\0\x18ftypisom\0\0\0\0", "film"),
    "JPEG XL": (b"\xff\x0a\x00\x00", "is JPEG XL"),
    "JPEG 2000": (b"\0\0\0\x0cjP  \r\n\x87\n", "is JPEG 2000"),
    "PDF": (b"%PDF-1.7", "is PDF"),
    "PostScript, which Pillow starts a program for": (b"%!PS-Adobe-3.0 EPSF-3.0", "begins with b'%!PS"),
    "zeros": (bytes(100), "begins with"),
}

BROKEN: dict[str, tuple[bytes, str]] = {
    "a JPEG of 3 bytes": (JPEG[:3], "ends in its head"),
    "a JPEG of zeros": (JPEG[:3] + bytes(100), "JPEG is broken"),
    "a JPEG without losses": (jpeg_with(JPEG, frame=0xC3), "JPEG is broken"),
    "a JPEG of another coder": (jpeg_with(JPEG, frame=0xC9), "JPEG is broken"),
    "a JPEG of 12 bits": (jpeg_with(JPEG, precision=12), "precision 12"),
    "a JPEG of a sampling that nobody has": (jpeg_with(JPEG, sampling=(0x31, 0x22)), "JPEG is broken"),
    "a JPEG with an end in its middle": (JPEG[: len(JPEG) // 2] + b"\xff\xd9", "premature end"),
    "a JPEG without a restart marker": (RESTARTED.replace(b"\xff\xd3", b"", 1), "JPEG is broken"),
    "a JPEG of many zeros in front of its end": (JPEG[:-2] + bytes(400) + JPEG[-2:], "extraneous"),
    "a PNG without pixels": (png_head(3, 4) + png_chunk(b"IEND", b""), "PNG is broken"),
    "a PNG of other bytes than it says": (png_head(3, 4) + png_chunk(b"IDAT", b"no zlib"), "PNG is broken"),
    "a PNG of no height": (png_head(0, 4), "PNG is broken"),
    "a WebP of a head": (b"RIFF\x20\0\0\0WEBPVP8 " + bytes(20), "WebP is broken"),
    "a WebP of nothing": (b"RIFF\x20\0\0\0WEBP", "WebP is broken"),
    "a TIFF of nothing": (tiff([]), "TIFF is broken"),
    "a GIF of a head": (b"GIF89a" + bytes(7), "GIF is broken"),
    "a BMP of a head": (b"BM" + bytes(20), "BMP is broken"),
    "a TIFF of floats": (encoded(np.ones((3, 4), np.float32), "TIFF"), "floating-point"),
    "a TIFF of 32 bits": (encoded(np.ones((3, 4), np.int32), "TIFF"), "32-bit"),
}


@pytest.mark.parametrize("name", NO_IMAGES | BROKEN)
def test_the_error_says_what_is_wrong(name: str) -> None:
    file, what = (NO_IMAGES | BROKEN)[name]
    for mode in ("RGB", "L", "RGBA", "unchanged"):
        with pytest.raises(DataError) as caught:
            decoded(file, mode)
        assert what in str(caught.value)
        assert caught.value.hint


@pytest.mark.filterwarnings("ignore::UserWarning")  # Pillow warns of a TIFF that is cut off
@pytest.mark.parametrize("name", FILES)
def test_what_is_cut_off_is_an_error_or_all_there(name: str) -> None:
    """Never a part of an image with grey below."""
    file = FILES[name]
    whole = decoded(file)
    for length in range(0, len(file), max(1, len(file) // 100)):
        try:
            made = decoded(file[:length])
        except DataError:
            continue
        assert "JPEG" not in name
        assert np.array_equal(made, whole)


@pytest.mark.filterwarnings("ignore::UserWarning")
@given(st.sampled_from(list(FILES)), st.lists(st.tuples(st.floats(0, 1), st.integers(0, 255)), max_size=5))
def test_damaged_bytes_are_an_error_or_an_image(name: str, damage: list[tuple[float, int]]) -> None:
    file = bytearray(FILES[name])
    for place, value in damage:
        # More of them in the head, where they matter most.
        file[int(place**3 * (len(file) - 1))] = value
    with contextlib.suppress(DataError):
        assert decoded(bytes(file), max_pixels=10**6).shape[2] == 3


def vp8x(height: int, width: int) -> bytes:
    """A WebP up to its frames."""
    canvas = struct.pack(
        "<BxxxHBHB", 2, *(width - 1 & 0xFFFF, width - 1 >> 16), height - 1 & 0xFFFF, height - 1 >> 16
    )
    return b"RIFF\x20\0\0\0WEBPVP8X" + struct.pack("<I", 10) + canvas


def patched(file: bytes, at: int, size: tuple[int, int], format: str) -> bytes:
    """A file that says another size, height and width, at a byte."""
    return file[:at] + struct.pack(format, *size[::-1]) + file[at + struct.calcsize(format) :]


def large_tiff(height: int, width: int) -> bytes:
    numbers = [
        (256, width),
        (257, height),
        (258, 8),
        (259, 1),
        (262, 1),
        (273, 200),
        (277, 1),
        (278, height),
        (279, 9),
    ]
    return tiff([(tag, 4, 1, struct.pack("<I", value)) for tag, value in numbers])


LARGE: dict[str, Callable[[int, int], bytes]] = {
    "JPEG": lambda *size: jpeg_with(JPEG, size=size),
    "PNG": lambda *size: png_head(*size) + png_chunk(b"IDAT", b""),
    "GIF": lambda *size: patched(encoded(PIXELS, "GIF"), 6, size, "<HH"),
    "BMP": lambda *size: patched(encoded(PIXELS, "BMP"), 18, size, "<ii"),
    "TIFF": large_tiff,
    "WebP": vp8x,
    "WebP, lossy": lambda *size: patched(encoded(PIXELS, "WEBP"), 26, size, "<HH"),
}


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", LARGE)
def test_too_many_pixels_are_known_from_the_head(name: str) -> None:
    """Without memory for them; the limit of Pillow, which is one of the process, plays no part."""
    height, width = (16_000, 16_001) if name == "WebP, lossy" else (60_000, 60_001)
    file = memoryview(LARGE[name](height, width))
    with pytest.raises(DataError, match=rf"{height:,} x {width:,} pixels, more than 178,956,970") as caught:
        open_image(file, "RGB", max_pixels=178_956_970, reduced=True)
    assert "max_pixels" in str(caught.value.hint)
    assert open_image(file, "RGB", max_pixels=10**10, reduced=True).size == (height, width)


def test_the_limit_itself_is_allowed() -> None:
    for format in ("JPEG", "PNG", "WEBP"):
        file = encoded(PIXELS, format)
        assert decoded(file, max_pixels=31 * 47).shape == (31, 47, 3)
        with pytest.raises(DataError, match="more than 1,456"):
            decoded(file, max_pixels=31 * 47 - 1)


# ---- in pipelines

GOOD = [
    encoded(photograph(row, 40, 40), format)
    for row, format in enumerate(["JPEG", "PNG", "WEBP", "GIF", "JPEG"])
]
BAD = {1: JPEG[:-300], 3: b"<html>", 4: b"", 6: large_tiff(20_000, 20_000)}


def rows() -> list[bytes]:
    """Nine files, some of them bad; every one is named .jpg."""
    good = iter(GOOD)
    return [BAD[row] if row in BAD else next(good) for row in range(len(GOOD) + len(BAD))]


def in_a_folder(path: Path) -> flow.Pipeline:
    for row, file in enumerate(rows()):
        (path / f"{row}.jpg").write_bytes(file)
    return flow.read(path).rename({"bytes": "image"})


def in_a_tar(path: Path) -> flow.Pipeline:
    with tarfile.open(path / "images.tar", "w") as archive:
        for row, file in enumerate(rows()):
            member = tarfile.TarInfo(f"{row}.jpg")
            member.size = len(file)
            archive.addfile(member, io.BytesIO(file))
    return flow.read(path / "images.tar").rename({"jpg": "image"})


def in_parquet(path: Path) -> flow.Pipeline:
    pq.write_table(pa.table({"image": rows()}), path / "images.parquet", row_group_size=2)
    return flow.read(path / "images.parquet")


SOURCES = {"folder": in_a_folder, "tar": in_a_tar, "Parquet": in_parquet}


@pytest.fixture(params=SOURCES)
def pipe(request: pytest.FixtureRequest, tmp_path: Path) -> flow.Pipeline:
    source = tmp_path / "source"
    source.mkdir()
    made = SOURCES[request.param](source)
    return made.select("image").decode_image("image").resize("image", 16).batch(2, remainder="keep")


def test_a_bad_file_is_left_out_and_written_down_with_file_and_row(
    pipe: flow.Pipeline, tmp_path: Path
) -> None:
    path = tmp_path / "bad.jsonl"
    with pipe.loader(on_error="skip", ids=True, quarantine=path) as loader:
        batches = list(loader)
    assert [row for batch in batches for row in batch["__id__"].tolist()] == [0, 2, 5, 7, 8]
    assert all(batch["image"].shape[1:] == (16, 16, 3) for batch in batches)
    lines = sorted((json.loads(line) for line in path.read_text().splitlines()), key=lambda line: line["id"])
    assert [line["id"] for line in lines] == list(BAD)
    for line, what in zip(lines, ("Premature end", "is HTML", "empty", "20,000 x 20,000"), strict=True):
        assert what in line["error"]
        assert line["operator"] == "decode_image + resize"
        name = Path(line["file"]).name
        assert (name, line["row"]) in [
            (f"{line['id']}.jpg", 0),
            ("images.tar", line["id"]),
            ("images.parquet", line["id"]),
        ]


def test_a_bad_file_ends_the_run_or_gives_its_place_to_another(pipe: flow.Pipeline) -> None:
    with pytest.raises(DataError, match="Premature end"), pipe.loader() as loader:
        list(loader)
    with pipe.loader(on_error="replace", ids=True) as loader:
        made = [image for batch in loader for image in batch["image"]]
    assert len(made) == len(rows())
