"""DecodeImage: files of images become images."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final, Literal, Self

import pyarrow as pa

from dataflow.errors import PlanError
from dataflow.given import check_choice, check_flags
from dataflow.graph.columns import check_columns
from dataflow.graph.registry import register
from dataflow.ops.images.canvas import Source, Stage
from dataflow.ops.images.form import Form, is_encoded
from dataflow.ops.images.step import OneImageStep

__all__ = ["DecodeImage", "Mode"]

Mode = Literal["RGB", "L", "RGBA", "unchanged"]
_CHANNELS: Final = {"RGB": 3, "L": 1, "RGBA": 4, "unchanged": None}


@register("decode_image")
@dataclass(frozen=True, kw_only=True, eq=False)
class DecodeImage(OneImageStep):
    """Decode a column of files (binary): JPEG, PNG, WebP, GIF (first frame), BMP, TIFF; the content tells which.

    An image is uint8 (height, width, channels): 3 channels for mode "RGB", 1 for "L", 4 for "RGBA". "unchanged" gives
    those that the file has. Of samples of 16 bits the upper 8 are kept. The orientation that a camera wrote into the
    file (EXIF) is applied, colour profiles are not.

    Fields:
        max_pixels: an image of more is a bad row, found before memory is taken for it.
        reduced: where later steps make a JPEG smaller ("bilinear" or "bicubic"), decode it at 1/2, 1/4 or 1/8 of its
            size first. The part is the same, and the result on photographs within a PSNR of 35 dB.
        verify: decode a JPEG to its last row also where later steps want upper rows alone, so that damage below them
            is found. A loader that skips or replaces bad rows does so in any case: which rows are bad must not depend
            on what is cut out of them.
    """

    mode: Mode = "RGB"
    max_pixels: int = 178_956_970
    reduced: bool = True
    verify: bool = False
    stage: ClassVar[Stage] = "open"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice(self.kind, "mode", self.mode, _CHANNELS)
        check_flags(self.kind, reduced=self.reduced, verify=self.verify)
        if type(self.max_pixels) is not int or self.max_pixels < 1:
            raise PlanError(
                f"decode_image: max_pixels={self.max_pixels!r}.", hint="give a whole number over 0"
            )

    def schema_after(self, schema: pa.Schema) -> pa.Schema:
        check_columns(self.kind, [self.column], schema)
        place = schema.get_field_index(self.column)
        kind = schema.field(place).type
        if not is_encoded(kind):
            raise PlanError(
                f"decode_image: column {self.column!r} is {kind}, and files of images are binary.",
                hint=_where_files_are(self.column, kind),
            )
        return schema.set(place, pa.field(self.column, Form(channels=_CHANNELS[self.mode]).type))

    def open(self, file: memoryview) -> Source:
        from dataflow.ops.images.pixels.codec import open_image

        return open_image(
            file, self.mode, max_pixels=self.max_pixels, reduced=self.reduced, verify=self.verify
        )

    def verified(self) -> Self:
        return replace(self, verify=True)


def _where_files_are(column: str, kind: Any) -> str:
    fields = [kind.field(number) for number in range(kind.num_fields)] if pa.types.is_struct(kind) else []
    inside = next((field.name for field in fields if is_encoded(field.type)), None)
    if inside is None:
        return "name the column that holds the files' bytes"
    return f"take the files out of it first: .field({column!r}, {inside!r})"
