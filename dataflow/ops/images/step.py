"""ImageStep: what all operators on images have in common; ImageChain: several of them as one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from connectors.contract import Json
from dataflow.errors import InternalError
from dataflow.given import check_text
from dataflow.graph.block import Block
from dataflow.graph.columns import check_columns
from dataflow.graph.draw import Draw
from dataflow.graph.image_column import Pixels
from dataflow.graph.node import Node, Traits
from dataflow.ops.images.canvas import Image, Planned, Source, Stage
from dataflow.ops.images.extra import check_extra
from dataflow.ops.images.follow import Follower, followers_of, with_followers
from dataflow.ops.images.form import Form, form_of, tensor_form

__all__ = ["ImageChain", "ImageStep", "OneImageStep"]

Int64s = npt.NDArray[np.int64]
UInt32s = npt.NDArray[np.uint32]
Memory = Mapping[str, npt.NDArray[np.generic]]


@dataclass(frozen=True, kw_only=True, eq=False)
class ImageStep(Node):
    """A step, or several that are done as one, over the images of one column.

    An image goes through all steps of a chain before the next one is begun, so that it is decoded, cropped and
    resized into its place in the batch without lying in memory between.
    """

    column: str

    @property
    def steps(self) -> tuple[OneImageStep, ...]:
        """The steps, first to last."""
        raise InternalError(f"{self.kind} has no steps.")

    @cached_property
    def carried(self) -> tuple[tuple[Follower, ...], ...]:
        """What follows the images into each step, and, last, what does behind them."""
        carried = [followers_of(self.input, self.column) if self.inputs else ()]
        for step in self.steps:
            carried.append((*carried[-1], *step.names))
        return tuple(carried)

    @cached_property
    def followers(self) -> tuple[Follower, ...]:
        """What the steps read and write beside the images: what moves, and what begins to follow."""
        moving = [followers for followers, step in zip(self.carried, self.steps, strict=False) if step.moves]
        named = [step.names for step in self.steps]
        return tuple(dict.fromkeys(each for followers in (*moving, *named) for each in followers))

    @property
    def traits(self) -> Traits:
        columns = frozenset({self.column, *(each.column for each in self.followers)})
        masks = {each.column for each in self.followers if each.kind == "masks"}
        return Traits(
            kernel=True, reads=columns, writes=columns, fills=frozenset({self.column, *masks}),
            random=any(s.words for s in self.steps),
        )  # fmt: skip

    def infer(self, schemas: Sequence[pa.Schema | None]) -> pa.Schema | None:
        schema = schemas[0]
        if schema is None:
            return None
        for step, followers in zip(self.steps, self.carried, strict=False):
            schema = step.schema_after(schema)
            if step.moves:
                schema = with_followers(schema, self.column, followers)
        return schema

    def needs(self, wanted: frozenset[str] | None) -> tuple[frozenset[str] | None, ...]:
        # What follows is moved where somebody wants it: nothing else needs it.
        return (None if wanted is None else wanted | {self.column},)

    def verified(self) -> Self:
        """The step, with files read to their end: which rows are bad is then a matter of the files alone."""
        return self

    def fused(self, below: Node) -> Node | None:
        if not isinstance(below, ImageStep) or below.column != self.column:
            return None
        return ImageChain(column=self.column, chain=(*below.steps, *self.steps), inputs=below.inputs)

    def apply(self, block: Block, draw: Draw) -> Block:
        return self._run(block, draw, {})

    def fill(self, block: Block, draw: Draw, into: Memory) -> Block:
        return self._run(block, draw, into)

    def _run(self, block: Block, draw: Draw, into: Memory) -> Block:
        # Here, not at the top: it loads OpenCV.
        from dataflow.ops.images.pixels.beside import Companions
        from dataflow.ops.images.pixels.run import run_steps

        if self.schema is None:
            raise InternalError(f"the columns behind {self.label()} are not known.")
        kind = self.schema.field(self.column).type
        beside = Companions.of_block(self.followers, self.carried, self.schema, block, into)
        return run_steps(
            self.title, self.column, self.steps, kind, block, draw, into.get(self.column), beside
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class OneImageStep(ImageStep):
    """A step that makes another image of each image of a column.

    It decides in `plan`, for all images of a block from their sizes and the words of their samples, and does it in
    `change`, image by image.
    """

    draws: str | None = field(default=None, metadata={"key": "key"})
    stage: ClassVar[Stage]
    moves: ClassVar[bool] = False  # pixels change places: boxes, masks and keypoints follow (`names`)
    words: ClassVar[int] = 0  # random words that `plan` wants for each image; 0: it draws nothing

    def __post_init__(self) -> None:
        check_columns(self.kind, [self.column], None)
        check_text(self.kind, "key", self.draws)
        check_extra(self.kind)

    @property
    def steps(self) -> tuple[OneImageStep, ...]:
        return (self,)

    @property
    def names(self) -> tuple[Follower, ...]:
        """What follows the images from here on."""
        return ()

    @property
    def key(self) -> str | None:
        return self.draws

    def keyed(self, key: str) -> Self:
        return replace(self, draws=key)

    def order_fact(self) -> Json:
        return self.draws if self.words else None

    def narrowed(self, wanted: frozenset[str]) -> Self:
        return self

    def schema_after(self, schema: pa.Schema) -> pa.Schema:
        """The schema behind this step, given that in front of it.

        Raises:
            PlanError: there is no such column, or it holds no images that this step can work on.
        """
        check_columns(self.kind, [self.column], schema)
        place = schema.get_field_index(self.column)
        kind = schema.field(place).type
        form = tensor_form(kind) if self.stage == "tensor" else None
        form = form or form_of(kind, step=self.kind, column=self.column)
        return schema.set(place, pa.field(self.column, self.form_after(form).type))

    def form_after(self, form: Form) -> Form:
        """What is known of the images behind this step."""
        return form

    def plan(self, sizes: Int64s, words: UInt32s) -> Planned:
        """What is done to images of these sizes, int64 (images, 2), whose random words are uint32 (images, words)."""
        return Planned([None] * len(sizes), sizes)

    def open(self, file: memoryview) -> Source:
        """For a step whose stage is "open": the image in a file.

        Raises:
            DataError: it is none.
        """
        raise InternalError(f"{self.kind} opens no files.")

    def change(self, image: Image, param: Any) -> None:
        """For a step whose stage is "pixels": do it to one image."""
        raise InternalError(f"{self.kind} changes no pixels.")

    def write(self, pixels: Pixels, out: npt.NDArray[Any]) -> None:
        """For a step whose stage is "write": make the tensor `out` of the pixels."""
        raise InternalError(f"{self.kind} makes no tensors.")

    def paint(self, tensor: npt.NDArray[Any], param: Any) -> None:
        """For a step whose stage is "tensor": change (height, width, channels) in place, pixels or a tensor.

        Not called where `param` is None.
        """
        raise InternalError(f"{self.kind} changes no tensors.")


@dataclass(frozen=True, kw_only=True, eq=False)
class ImageChain(ImageStep):
    """Steps over one column, one behind the other, that were written one by one."""

    chain: tuple[OneImageStep, ...] = ()
    kind: ClassVar[str] = "images"
    in_specs: ClassVar[bool] = False

    @property
    def steps(self) -> tuple[OneImageStep, ...]:
        return self.chain

    @property
    def key(self) -> str | None:
        return self.kind  # each step has its own

    @property
    def title(self) -> str:
        return " + ".join(step.title for step in self.chain)

    def narrowed(self, wanted: frozenset[str]) -> Self:
        return replace(self, chain=tuple(step.narrowed(wanted) for step in self.chain))

    def verified(self) -> Self:
        return replace(self, chain=tuple(step.verified() for step in self.chain))

    def label(self) -> str:
        return " + ".join(step.label() for step in self.chain)
