"""What will be done to the images of a block, for a backend that makes them later."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dataflow.graph.block import BadSample, Block, Column
from dataflow.graph.calls import bad_row, check_wanted
from dataflow.graph.draw import Draw
from dataflow.ops.images.backend import ImageBackend
from dataflow.ops.images.canvas import Box, Source
from dataflow.ops.images.frame import Frame
from dataflow.ops.images.pixels.beside import Beside, Companions
from dataflow.ops.images.pixels.jpeg import Jpeg
from dataflow.ops.images.pixels.run import Step, change_canvas, files_opened, planned, run_steps, words_of
from dataflow.ops.images.step import ImageStep

__all__ = ["decide"]

UInt32s = npt.NDArray[np.uint32]


class _Decision(Protocol):
    """`DecideImages`, as this file sees it."""

    @property
    def title(self) -> str: ...

    @property
    def chain(self) -> ImageStep: ...

    @property
    def backend(self) -> ImageBackend: ...

    @property
    def done(self) -> int: ...

    @property
    def verify(self) -> bool: ...

    @property
    def given(self) -> tuple[str, str]: ...


def decide(node: _Decision, kind: pa.DataType, block: Block, draw: Draw, companions: Companions) -> Block:
    """The block with what was decided beside its files, and what follows the images moved.

    Images that the backend cannot make are made here, of type `kind`. A file that is none is a bad row.
    """
    column, steps = node.chain.column, node.chain.steps
    opened = list(files_opened(steps[0], block.columns[column]))
    sizes = np.array([(1, 1) if isinstance(image, Exception) else image.size for image in opened], np.int64)
    words = words_of(steps, block, draw)
    plans = planned(steps, sizes.reshape(-1, 2), words)
    bad: dict[int, BadSample] = {}
    left: list[int] = []
    for row, image in enumerate(opened):
        check_wanted()
        try:
            if isinstance(image, Exception):
                raise image
            params = [plan.params[row] for plan in plans]
            _follow(steps, image.size, params, Beside(companions, row))
            if not _fits(node, image, params):
                left.append(row)
            elif node.verify:
                _look_through(image)
        except Exception as error:
            bad[row] = bad_row(block, row, node.title, error)
    made, failed = _made_now(node, kind, block, draw, left, words)
    bad |= failed
    whole = block.with_columns(
        {
            **block.columns,
            **companions.written(),
            node.given[0]: np.concatenate([sizes.reshape(-1, 2).astype(np.uint32), *words], axis=1),
            node.given[1]: made,
        }
    )
    if not bad:
        return whole
    good = np.ones(block.rows, np.bool_)
    good[list(bad)] = False
    return whole.without([bad[row] for row in sorted(bad)], good)


def _fits(node: _Decision, image: Source, params: Sequence[Any]) -> bool:
    # JPEGs alone: of the other formats a decoder has ideas of its own, and Pillow's are ours.
    if not isinstance(image, Jpeg) or image.printed:
        return False
    return node.backend.fits(node.chain.steps[: node.done], image.size, params[: node.done])


def _follow(steps: Sequence[Step], size: tuple[int, int], params: Sequence[Any], beside: Beside) -> None:
    """Move what follows an image, and see that each step can be done.

    Raises:
        DataError: a step cannot be done to an image of this size, or what follows does not fit it.
    """
    frame = Frame(size)
    for place, (step, param) in enumerate(zip(steps, params, strict=True)):
        if step.stage == "pixels" and step.moves:
            change = partial(change_canvas, step, param)
            beside_size = frame.size
            change(frame)
            beside.move(place, beside_size, change)
    beside.keep(frame.size)


def _look_through(image: Source) -> None:
    """Read a file to its end, at the smallest scale there is.

    Raises:
        DataError: it is broken.
    """
    height, width = image.size
    image.read(Box(0, 0, height, width), (1, 1))


def _made_now(
    node: _Decision, kind: pa.DataType, block: Block, draw: Draw, rows: Sequence[int],
    words: Sequence[UInt32s],
) -> tuple[Column, dict[int, BadSample]]:  # fmt: skip
    """The memory of the images of some rows, null for the others; and which of them are bad."""
    if not rows:
        return pa.nulls(block.rows, pa.large_binary()), {}
    column, steps = node.chain.column, node.chain.steps
    some = np.array(rows, np.int64)
    # Rows of one flat_map have one origin: here each is known by its place.
    placed = replace(block.take(some), origin=some)
    alone, drawn = Companions({}, [()] * len(steps)), [each[some] for each in words]
    images = run_steps(node.title, column, steps, kind, placed, draw, None, alone, drawn)
    memory: list[bytes | None] = [None] * block.rows
    for row, image in zip(images.origin.tolist(), images.columns[column], strict=True):
        memory[row] = np.asarray(image).tobytes()
    bad = {each.origin: replace(each, origin=int(block.origin[each.origin])) for each in images.bad}
    return pa.array(memory, pa.large_binary()), bad
