"""Steps over the images of a block, image by image, each into its place."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache, partial
from typing import Any, Protocol, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from threadpoolctl import ThreadpoolController

from connectors.bfloat16 import is_bfloat16, rounded, widened
from connectors.tensors import empty_rows, shape_of
from dataflow.errors import DataError
from dataflow.graph.block import BadSample, Block, Column, own_arrays
from dataflow.graph.calls import bad_row, check_wanted, sub_number
from dataflow.graph.draw import Draw
from dataflow.graph.image_column import ImageType, Pixels, image_column
from dataflow.ops.images.canvas import Canvas, Image, Planned, Source, Stage
from dataflow.ops.images.form import Layout, tensor_form
from dataflow.ops.images.pixels.beside import Beside, Companions, pixels_in
from dataflow.ops.images.pixels.picture import Picture, Stored
from dataflow.ops.images.pixels.tensor import channels_behind
from dataflow.order.philox import draws, key_of

__all__ = ["Step", "change_canvas", "files_opened", "planned", "run_steps", "words_of"]

Int64s = npt.NDArray[np.int64]
UInt32s = npt.NDArray[np.uint32]
Values = npt.NDArray[Any]


class Step(Protocol):
    """A step as `run_steps` sees it: see `OneImageStep`."""

    @property
    def stage(self) -> Stage: ...

    @property
    def moves(self) -> bool: ...

    @property
    def words(self) -> int: ...

    @property
    def key(self) -> str | None: ...

    def plan(self, sizes: Int64s, words: UInt32s) -> Planned: ...

    def open(self, file: memoryview) -> Source: ...

    def change(self, image: Image, param: Any) -> None: ...

    def write(self, pixels: Pixels, out: Values) -> None: ...

    def paint(self, tensor: Values, param: Any) -> None: ...


@contextmanager
def _on_this_thread() -> Iterator[None]:
    # Torch would share each image among all cores, which other images have: that takes ten times as long. The limit
    # is that of this thread alone.
    with _openmp().limit(limits=1, user_api="openmp"):
        yield


@cache
def _openmp() -> ThreadpoolController:
    return ThreadpoolController()


@_on_this_thread()
def run_steps(
    title: str,
    column: str,
    steps: Sequence[Step],
    kind: pa.DataType,
    block: Block,
    draw: Draw,
    out: Values | None,
    companions: Companions,
    words: Sequence[UInt32s] | None = None,
) -> Block:
    """The block with `column` as the steps make it, of type `kind`, and what follows it; what fails is a bad row.

    `out`: where its images go, (rows, *shape); None: memory of its own. `words`: those of each step, (rows, words),
    where they were drawn before.
    """
    layout, bfloat16 = _layout(steps, kind), is_bfloat16(kind)
    # Steps on tensors alone find them in the column.
    given = layout if all(step.stage == "tensor" for step in steps) else "HWC"
    opened = list(_opened(steps, block.columns[column], given))
    sizes = np.array([(1, 1) if isinstance(image, Exception) else image.size for image in opened], np.int64)
    drawn = words_of(steps, block, draw) if words is None else words
    plans = [each.params for each in planned(steps, sizes.reshape(-1, 2), drawn)]
    if out is None and shape_of(kind) is not None:
        out = empty_rows(block.rows, kind)
    made: list[Pixels | None] = []
    bad: list[BadSample] = []
    for row, image in enumerate(opened):
        check_wanted()
        try:
            if isinstance(image, Exception):
                raise image
            params = [planned[row] for planned in plans]
            beside, place = Beside(companions, row), None if out is None else out[row]
            made.append(_made(Picture(image), steps, params, place, layout, beside, bfloat16=bfloat16))
        except Exception as error:
            bad.append(bad_row(block, row, title, error))
            made.append(None)
    images: Column = out if out is not None else image_column(made, _ragged(kind))
    # The images are ours alone, and what stands beside them shall be as well.
    new = {**companions.written(), column: images}
    others = own_arrays(block.columns, owned=block.owned, but=new)
    # Columns stay where they stand.
    columns = {name: others[name] if name in others else new[name] for name in block.columns}
    whole = block.with_columns({**columns, **new}, owned=True)
    if not bad:
        return whole
    good = np.ones(block.rows, np.bool_)
    good[[place for place, pixels in enumerate(made) if pixels is None]] = False
    return whole.without(bad, good)


def _layout(steps: Sequence[Step], kind: pa.DataType) -> Layout:
    """How steps that work on tensors find them in the column that is made."""
    tensor = tensor_form(kind) if any(step.stage == "tensor" for step in steps) else None
    return "HWC" if tensor is None else tensor.layout


def _ragged(kind: Any) -> ImageType:
    assert isinstance(kind, ImageType)
    return kind


def _opened(steps: Sequence[Step], column: Column, layout: Layout) -> Iterator[Source | Exception]:
    """Where the pixels of each row come from, or why there are none; dense rows have this layout."""
    if steps[0].stage == "open":
        yield from files_opened(steps[0], column)
    else:
        for image in pixels_in(column):
            yield Stored(channels_behind(image, layout)) if image is not None else _missing()


def files_opened(step: Step, column: Column) -> Iterator[Source | Exception]:
    """The image in each file of a column, or why there is none."""
    for value in column:
        yield _file(step, value)


def _missing() -> DataError:
    return DataError(
        "the image is null.", hint="filter such rows out, or let the loader skip them: on_error='skip'"
    )


def _file(step: Step, value: Any) -> Source | Exception:
    if not value.is_valid:
        return _missing()
    try:
        return step.open(memoryview(value.as_buffer()).cast("B"))
    except Exception as error:
        return error


def words_of(steps: Sequence[Step], block: Block, draw: Draw) -> list[UInt32s]:
    """The random words of each step for each row, (rows, words)."""
    ids = np.ascontiguousarray(block.ids.reshape(block.rows, -1)[:, 0])
    subs = 0 if block.ids.ndim == 1 else np.array([sub_number(block, row) for row in range(block.rows)])
    return [draws(key_of(draw.seed, draw.turn, step.key or ""), ids, step.words, subs) for step in steps]


def planned(steps: Sequence[Step], sizes: Int64s, words: Sequence[UInt32s]) -> list[Planned]:
    """What each step will do to each image of these sizes, by step."""
    plans = []
    for step, drawn in zip(steps, words, strict=True):
        plans.append(step.plan(sizes, drawn))
        sizes = plans[-1].sizes
    return plans


def _made(
    picture: Picture,
    steps: Sequence[Step],
    params: Sequence[Any],
    out: Values | None,
    layout: Layout,
    beside: Beside,
    *,
    bfloat16: bool,
) -> Pixels:
    """One image through all steps, into `out` where there is one, and what follows it.

    `bfloat16`: the numbers in `out` are the bits of such.
    """
    target = None if out is None else channels_behind(out, layout)
    written = target is not None and all(step.stage == "tensor" for step in steps)
    if target is not None and written:
        target[...] = picture.pixels()
    for place, (step, param) in enumerate(zip(steps, params, strict=True)):
        if step.stage == "pixels":
            before = picture.size
            step.change(picture, param)
            if step.moves:
                beside.move(place, before, partial(change_canvas, step, param))
        elif step.stage == "write" and out is not None:
            step.write(picture.pixels(), out)
            written = True
        elif step.stage == "tensor" and param is not None:
            if written and target is not None:
                _paint(step, target, param, bfloat16=bfloat16)
            else:
                pixels = picture.pixels().copy()
                step.paint(pixels, param)
                picture.show(pixels)
    beside.keep(picture.size)
    if target is None:
        return picture.pixels()
    if not written:
        target[...] = picture.pixels()
    return target


def _paint(step: Step, tensor: Values, param: Any, *, bfloat16: bool) -> None:
    if bfloat16:
        numbers = widened(tensor)
        step.paint(numbers, param)
        tensor[...] = rounded(numbers)
    else:
        step.paint(tensor, param)


def change_canvas(step: Step, param: Any, canvas: Canvas) -> None:
    """Do a step that moves pixels to anything that moves with them."""
    # A step that moves pixels calls nothing but what every canvas has.
    step.change(cast(Image, canvas), param)
