"""Annotate: columns that follow the images of another one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import pyarrow as pa

from dataflow.errors import PlanError
from dataflow.graph.columns import check_columns
from dataflow.graph.registry import register
from dataflow.ops.images.canvas import Canvas, Stage
from dataflow.ops.images.follow import Follower, Kind, with_followers
from dataflow.ops.images.step import OneImageStep

__all__ = ["Annotate"]

Names = tuple[str, ...]


@register("annotate")
@dataclass(frozen=True, kw_only=True, eq=False)
class Annotate(OneImageStep):
    """From here on, boxes, keypoints and masks go where later steps move the pixels of `column`.

    Coordinates are in pixels from the upper left corner of the image as it is here (decode_image has turned it as its
    camera was held), and become float32. They, and the numbers in masks, are moved as torchvision.transforms.v2 moves
    BoundingBoxes, KeyPoints and Mask. Rows without boxes or keypoints have an empty list or null.

    Fields:
        boxes: columns of (x1, y1, x2, y2), one or a list a row. What a crop or a turn leaves outside is cut off, as
            torchvision's ClampBoundingBoxes does: a box that lies outside keeps its place in the list, with an area
            of 0. A turned box is the bounding box of its corners.
        keypoints: columns of (x, y), one or a list a row; they may come to lie outside.
        masks: columns of class numbers a pixel, in files (PNG, of a palette its indices) or as pixels, of the height
            and width of the image; others are a bad row. They become (height, width, 1) and are resized and turned by
            "nearest".
        mask_fill: the class number of what padding and turning add.
    """

    boxes: Names = ()
    keypoints: Names = ()
    masks: Names = ()
    mask_fill: int = 0
    stage: ClassVar[Stage] = "pixels"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_columns(self.kind, [self.column, *(each.column for each in self.names)], None)
        if type(self.mask_fill) is not int or not 0 <= self.mask_fill <= 65535:
            raise PlanError(f"annotate: mask_fill={self.mask_fill!r}.", hint="give a class number from 0 on")

    @property
    def names(self) -> tuple[Follower, ...]:
        named: tuple[tuple[Kind, Names], ...] = (
            ("boxes", self.boxes), ("keypoints", self.keypoints), ("masks", self.masks),
        )  # fmt: skip
        return tuple(
            Follower(column=name, kind=kind, fill=self.mask_fill if kind == "masks" else 0)
            for kind, names in named
            for name in names
        )

    def narrowed(self, wanted: frozenset[str]) -> Self:
        boxes, keypoints, masks = (
            tuple(name for name in names if name in wanted)
            for names in (self.boxes, self.keypoints, self.masks)
        )
        return replace(self, boxes=boxes, keypoints=keypoints, masks=masks)

    def infer(self, schemas: Sequence[pa.Schema | None]) -> pa.Schema | None:
        following = {each.column for each in self.carried[0]}
        twice = next((each.column for each in self.names if each.column in following), None)
        if twice is not None:
            raise PlanError(f"annotate: {twice!r} follows {self.column!r} already.", hint="name it once")
        return super().infer(schemas)

    def schema_after(self, schema: pa.Schema) -> pa.Schema:
        schema = super().schema_after(schema)
        check_columns(self.kind, [each.column for each in self.names], schema)
        return with_followers(schema, self.column, self.names)

    def change(self, image: Canvas, param: Any) -> None:
        """Nothing changes: what is named is opened, and found to fit, behind this step."""
