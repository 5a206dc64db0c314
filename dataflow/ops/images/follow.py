"""Which columns follow the images of another one: boxes, keypoints and masks that go where the pixels go."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol, runtime_checkable

import pyarrow as pa

from connectors.tensors import shape_of
from dataflow.errors import PlanError
from dataflow.graph.image_column import IMAGE_DTYPES
from dataflow.graph.node import Node
from dataflow.ops.images.form import Form, form_of, is_encoded
from dataflow.ops.images.points import points_type

__all__ = ["Follower", "Kind", "followers_of", "with_followers"]

Kind = Literal["boxes", "keypoints", "masks"]
Followers = tuple["Follower", ...]


@dataclass(frozen=True, kw_only=True)
class Follower:
    """A column that follows; `fill` is the class number that masks have where there was no image."""

    column: str
    kind: Kind
    fill: int = 0


@runtime_checkable
class _OverImages(Protocol):
    """A step over images, as this file sees it."""

    @property
    def column(self) -> str: ...

    @property
    def carried(self) -> tuple[Followers, ...]: ...


def followers_of(node: Node, column: str) -> Followers:
    """What follows the images of `column` where they come out of `node`.

    Found step by step through all that stands below; a column that was dropped follows no longer, and one that was
    renamed does so under its new name.

    Raises:
        PlanError: the inputs of a concat or mix differ in it.
    """
    if isinstance(node, _OverImages) and node.column == column:
        return node.carried[-1]
    names = node.new_names or {}
    old = {new: name for name, new in names.items()}.get(column, column)
    feeds = [followers_of(feed, old) for feed in node.inputs]
    if node.traits.joins and not node.traits.pairs and len({frozenset(found) for found in feeds}) > 1:
        raise PlanError(
            f"{node.kind}: other columns follow {column!r} in one input than in another.",
            hint=f"call .annotate({column!r}, ...) behind it, or in each input alike",
        )
    found = feeds[0] if feeds and not node.traits.pairs else sum(feeds, ())
    return _present(_renamed(found, names), node.schema)


def _renamed(followers: Followers, names: Mapping[str, str]) -> Followers:
    return tuple(replace(each, column=names.get(each.column, each.column)) for each in followers)


def _present(followers: Followers, schema: pa.Schema | None) -> Followers:
    return tuple(each for each in followers if schema is None or each.column in schema.names)


def with_followers(schema: pa.Schema, column: str, followers: Followers) -> pa.Schema:
    """The schema behind a step that has worked on them: float32, and masks of the size of the images of `column`.

    Raises:
        PlanError: a column cannot hold what follows.
    """
    size = form_of(schema.field(column).type, step="annotate", column=column).size
    for each in followers:
        if each.column in schema.names:
            place = schema.get_field_index(each.column)
            kind = _type_behind(each, schema.field(place).type, size)
            schema = schema.set(place, pa.field(each.column, kind))
    return schema


def _type_behind(follower: Follower, kind: Any, size: tuple[int, int] | None) -> Any:
    if follower.kind != "masks":
        width = 4 if follower.kind == "boxes" else 2
        return points_type(kind, width, step="annotate", column=follower.column)
    form = _mask_form(kind, follower.column)
    if form.dtype == "uint8" and follower.fill > 255:
        raise PlanError(
            f"annotate: mask_fill={follower.fill} in {follower.column!r} of uint8.",
            hint="give a number up to 255",
        )
    return replace(form, size=size).type


def _mask_form(kind: Any, column: str) -> Form:
    """Masks in files, of (height, width), or of (height, width, channels)."""
    if is_encoded(kind):
        return Form(channels=1)
    dense = shape_of(kind)
    if dense is not None and len(dense[1]) == 2 and dense[0].name in IMAGE_DTYPES:
        return Form(dtype=dense[0].name, channels=1)
    try:
        return form_of(kind, step="annotate", column=column)
    except PlanError as error:
        raise PlanError(
            f"annotate: column {column!r} is {kind}, no masks.",
            hint="give files, or pixels (height, width) of uint8 or uint16",
        ) from error
