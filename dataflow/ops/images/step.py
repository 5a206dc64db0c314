"""ImageStep: what all operators on images have in common; ImageChain: several of them as one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
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
from dataflow.ops.images.form import Form, form_of

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

    @property
    def traits(self) -> Traits:
        columns = frozenset({self.column})
        return Traits(
            kernel=True, reads=columns, writes=columns, fills=columns, random=any(s.words for s in self.steps)
        )

    def infer(self, schemas: Sequence[pa.Schema | None]) -> pa.Schema | None:
        schema = schemas[0]
        return schema and reduce(lambda below, step: step.schema_after(below), self.steps, schema)

    def fused(self, below: Node) -> Node | None:
        if not isinstance(below, ImageStep) or below.column != self.column:
            return None
        return ImageChain(column=self.column, chain=(*below.steps, *self.steps), inputs=below.inputs)

    def apply(self, block: Block, draw: Draw) -> Block:
        return self._run(block, draw, None)

    def fill(self, block: Block, draw: Draw, into: Memory) -> Block:
        return self._run(block, draw, into[self.column])

    def _run(self, block: Block, draw: Draw, out: npt.NDArray[Any] | None) -> Block:
        # Here, not at the top: it loads OpenCV.
        from dataflow.ops.images.pixels.run import run_steps

        if self.schema is None:
            raise InternalError(f"the columns behind {self.label()} are not known.")
        kind = self.schema.field(self.column).type
        return run_steps(self.title, self.column, self.steps, kind, block, draw, out)


@dataclass(frozen=True, kw_only=True, eq=False)
class OneImageStep(ImageStep):
    """A step that makes another image of each image of a column.

    It decides in `plan`, for all images of a block from their sizes and the words of their samples, and does it in
    `change`, image by image.
    """

    draws: str | None = field(default=None, metadata={"key": "key"})
    stage: ClassVar[Stage]
    moves: ClassVar[bool] = False  # pixels change places: boxes, masks and keypoints follow
    words: ClassVar[int] = 0  # random words that `plan` wants for each image; 0: it draws nothing

    def __post_init__(self) -> None:
        check_columns(self.kind, [self.column], None)
        check_text(self.kind, "key", self.draws)
        check_extra(self.kind)

    @property
    def steps(self) -> tuple[OneImageStep, ...]:
        return (self,)

    @property
    def key(self) -> str | None:
        return self.draws

    def keyed(self, key: str) -> Self:
        return replace(self, draws=key)

    def order_fact(self) -> Json:
        return self.draws if self.words else None

    def schema_after(self, schema: pa.Schema) -> pa.Schema:
        """The schema behind this step, given that in front of it.

        Raises:
            PlanError: there is no such column, or it holds no images that this step can work on.
        """
        check_columns(self.kind, [self.column], schema)
        place = schema.get_field_index(self.column)
        form = form_of(schema.field(place).type, step=self.kind, column=self.column)
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
        """For a step whose stage is "tensor": change it in place."""
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

    def label(self) -> str:
        return " + ".join(step.label() for step in self.chain)
