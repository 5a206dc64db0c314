"""What a file is, by how it begins: a name says nothing."""

from __future__ import annotations

from typing import Final

from dataflow.errors import DataError

__all__ = ["format_of"]

_READ: Final = {
    b"\xff\xd8\xff": "JPEG",
    b"\x89PNG\r\n\x1a\n": "PNG",
    b"GIF87a": "GIF",
    b"GIF89a": "GIF",
    b"BM": "BMP",
    b"II*\0": "TIFF",
    b"MM\0*": "TIFF",
    b"II+\0": "TIFF",
    b"MM\0+": "TIFF",
}
# By the brand behind "ftyp" (ISO/IEC 14496-12).
_BRANDS: Final = {b"avif": "AVIF", b"avis": "AVIF", b"heic": "HEIC", b"heix": "HEIC", b"mif1": "HEIC",
                  b"msf1": "HEIC"}  # fmt: skip
_UNREAD: Final = {
    b"\xff\x0a": "JPEG XL",
    b"\0\0\0\x0cJXL ": "JPEG XL",
    b"\0\0\0\x0cjP  ": "JPEG 2000",
    b"\xff\x4f\xff\x51": "JPEG 2000",
    b"8BPS": "Photoshop",
    b"\0\0\1\0": "icon",
    b"%PDF": "PDF",
    b"<svg": "SVG",
    b"<?xml": "XML (SVG?)",
    b"<!doctype html": "HTML",
    b"<html": "HTML",
}
_HEAD: Final = 32  # bytes that tell


def format_of(file: memoryview) -> str:
    """JPEG, PNG, WebP, GIF, BMP or TIFF.

    Raises:
        DataError: it is none of them; the message says what it is instead.
    """
    head = bytes(file[:_HEAD])
    if not head:
        raise DataError("the image file is empty.", hint="leave the row out, or replace the file")
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return "WebP"
    for start, name in _READ.items():
        if head.startswith(start):
            return name
    other = _other(head)
    found = f"begins with {head[:12]!r}" if other is None else f"is {other}"
    raise DataError(
        f"the file is no image that can be read: it {found}.",
        hint="JPEG, PNG, WebP, GIF, BMP and TIFF can; convert it, or leave the row out",
    )


def _other(head: bytes) -> str | None:
    """The name of a format that is known but not read."""
    if head[4:8] == b"ftyp":
        return _BRANDS.get(head[8:12], "a film, or an image of a kind like HEIC")
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip().lower()
    return next(
        (name for start, name in _UNREAD.items() if head.startswith(start) or text.startswith(start)), None
    )
