"""The columns that follow the images of a block: read, moved row by row with the image, and written."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from connectors.tensors import shape_of, to_numpy
from dataflow.errors import DataError
from dataflow.graph.block import Block, Column
from dataflow.graph.image_column import ImageType, Pixels, image_column, images_in
from dataflow.ops.images.canvas import Canvas, Source
from dataflow.ops.images.follow import Follower
from dataflow.ops.images.form import is_encoded
from dataflow.ops.images.pixels.followers import Boxes, Keypoints, Mask
from dataflow.ops.images.pixels.mask import MaskFile
from dataflow.ops.images.pixels.picture import Stored
from dataflow.ops.images.points import points_column, points_in

__all__ = ["Beside", "Companions", "Following", "pixels_in"]

Values = npt.NDArray[Any]


class Following(Protocol):
    """A column that follows the images of a block."""

    def open(self, row: int, size: tuple[int, int]) -> Canvas:
        """What the row has, beside an image of `size` (height, width).

        Raises:
            DataError: it does not fit the image, or cannot be read.
        """

    def keep(self, row: int) -> None:
        """The row's canvas has gone through all steps."""

    def column(self) -> Column:
        """The rows that were kept, and anything at all for the others."""


@dataclass(frozen=True)
class Companions:
    """All that follows the images of a block.

    Fields:
        columns: by name.
        carried: the names of those that follow the images into each step.
    """

    columns: Mapping[str, Following]
    carried: Sequence[Sequence[str]]

    @classmethod
    def of_block(
        cls, followers: Sequence[Follower], carried: Sequence[Sequence[Follower]], schema: pa.Schema,
        block: Block, into: Mapping[str, Values],
    ) -> Self:  # fmt: skip
        """Those of `followers` that the block has; `schema` is that behind the steps, `into` memory by column."""
        columns = {
            each.column: _following(
                each, block.columns[each.column], schema.field(each.column).type, into.get(each.column)
            )
            for each in followers
            if each.column in block.columns
        }
        names = [[each.column for each in into if each.column in columns] for into in carried]
        return cls(columns, names)

    def written(self) -> dict[str, Column]:
        """The columns behind the steps."""
        return {name: column.column() for name, column in self.columns.items()}


class Beside:
    """What follows one image: opened when the first step moves it, so that it fits the image as it is then."""

    def __init__(self, companions: Companions, row: int) -> None:
        self._companions, self._row = companions, row
        self._canvases: dict[str, Canvas] = {}

    def move(self, step: int, size: tuple[int, int], change: Callable[[Canvas], None]) -> None:
        """Do what a step does to the image, which has had `size` until now, to all that follows it."""
        for name in self._companions.carried[step]:
            change(self._opened(name, size))

    def keep(self, size: tuple[int, int]) -> None:
        """All steps are done; the image has `size`."""
        for name, column in self._companions.columns.items():
            self._opened(name, size)
            column.keep(self._row)

    def _opened(self, name: str, size: tuple[int, int]) -> Canvas:
        canvas = self._canvases.get(name)
        if canvas is None:
            canvas = self._canvases[name] = self._companions.columns[name].open(self._row, size)
        return canvas


def _following(follower: Follower, column: Column, kind: Any, out: Values | None) -> Following:
    if follower.kind == "masks":
        return _Masks(column, kind, follower.fill, out)
    return _Points(column, kind, follower.kind == "boxes")


class _Points:
    """Boxes or keypoints."""

    def __init__(self, column: Column, kind: Any, boxes: bool) -> None:
        self._kind = kind
        self._canvas: type[Keypoints] = Boxes if boxes else Keypoints
        self._width = 4 if boxes else 2
        self._rows = points_in(column, self._width)
        self._open: dict[int, Keypoints] = {}

    def open(self, row: int, size: tuple[int, int]) -> Canvas:
        found = self._rows[row]
        if isinstance(found, Exception):
            raise found
        points = np.empty((0, self._width), np.float32) if found is None else found
        canvas = self._open[row] = self._canvas(points, size)
        return canvas

    def keep(self, row: int) -> None:
        canvas = self._open.pop(row)
        self._rows[row] = None if self._rows[row] is None else canvas.values

    def column(self) -> Column:
        dense = shape_of(self._kind)
        # No null, which would keep all rows in Arrow's form.
        blank = np.zeros(dense[1], np.float32) if dense else None
        rows = [blank if isinstance(row, Exception) else row for row in self._rows]
        return points_column(rows, self._kind)


class _Masks:
    """Masks, in files or as pixels."""

    def __init__(self, column: Column, kind: Any, fill: int, out: Values | None) -> None:
        self._kind, self._fill = kind, fill
        self._source = _sources(column)
        dense = shape_of(kind)
        self._out = np.zeros((len(column), *dense[1]), dense[0]) if dense and out is None else out
        self._open: dict[int, Mask] = {}
        self._made: list[Pixels | None] = [None] * len(column)

    def open(self, row: int, size: tuple[int, int]) -> Canvas:
        source = self._source(row)
        if source.size != size:
            raise DataError(
                f"a mask of {source.size[0]} x {source.size[1]} pixels beside an image of {size[0]} x {size[1]}.",
                hint="a mask has the height and width of its image where .annotate(...) stands",
            )
        canvas = self._open[row] = Mask(source, self._fill)
        return canvas

    def keep(self, row: int) -> None:
        pixels = self._open.pop(row).pixels()
        if self._out is not None:
            self._out[row] = pixels
        else:
            self._made[row] = pixels

    def column(self) -> Column:
        return self._out if self._out is not None else image_column(self._made, self._kind)


def _sources(column: Column) -> Callable[[int], Source]:
    """From a row to its mask; raises DataError where it has none that can be read."""
    if not isinstance(column, np.ndarray) and is_encoded(column.type):
        return partial(_file, column)
    return partial(_stored, list(pixels_in(column)))


def _file(column: Any, row: int) -> Source:
    value = column[row]
    if not value.is_valid:
        raise _missing()
    return MaskFile(memoryview(value.as_buffer()).cast("B"))


def _stored(masks: Sequence[Pixels | None], row: int) -> Source:
    pixels = masks[row]
    if pixels is None:
        raise _missing()
    return Stored(pixels)


def _missing() -> DataError:
    return DataError(
        "the mask is null.", hint="filter such rows out, or let the loader skip them: on_error='skip'"
    )


def pixels_in(column: Column) -> Iterator[Pixels | None]:
    """The pixels (height, width, channels) of each row of a column that has some; None where it is null."""
    found: Iterable[Any]
    if isinstance(column, np.ndarray):
        found = column
    elif isinstance(column.type, ImageType):
        found = images_in(column)
    else:
        # Nulls keep it in Arrow's form.
        valid = column.is_valid().to_pylist()
        found = (to_numpy(column.slice(row, 1))[0] if there else None for row, there in enumerate(valid))
    for pixels in found:
        yield pixels[..., None] if pixels is not None and pixels.ndim == 2 else pixels
