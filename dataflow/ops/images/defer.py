"""Images that another backend makes behind `batch`: what is decided in front of it, and what is left to be made.

A row knows its pass, its file and its `on_error` policy in its window alone, and a backend wants whole batches. So
`DecideImages` stands where the chain stood: it opens the files, draws and plans, and moves what follows the images.
The files travel on to the batch, with what was drawn beside them, and there `DevelopImages` says what becomes of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final, NamedTuple

import pyarrow as pa

from connectors.tensors import shape_of
from dataflow.errors import InternalError
from dataflow.graph.block import Block
from dataflow.graph.draw import Draw
from dataflow.graph.node import Node, Traits
from dataflow.ops.images.backend import ImageBackend
from dataflow.ops.images.step import ImageStep

__all__ = ["SIZE_WORDS", "DecideImages", "DevelopImages", "Given", "defer_images", "why_not"]

# In front of the random words of a row: the height and width of its image.
SIZE_WORDS: Final = 2


class Given(NamedTuple):
    """The columns that lie beside the files of a column on their way to the batch.

    `decided` is uint32 (rows, 2 + words): the image's height and width, and the random words of all steps. `made` has
    the memory of images that the backend cannot make and the CPU kernel has made, null for all others.
    """

    decided: str
    made: str

    @classmethod
    def beside(cls, column: str) -> Given:
        """Those of this column."""
        return cls(f"__decided_{column}__", f"__made_{column}__")


@dataclass(frozen=True, kw_only=True, eq=False)
class _Deferred(Node):
    """A part of what is done to the images of a column.

    Fields:
        chain: all of it, over the same input.
        done: how many of its steps the backend does.
    """

    chain: ImageStep
    done: int
    in_specs: ClassVar[bool] = False

    @property
    def column(self) -> str:
        """The column that holds the files, and in the end the images."""
        return self.chain.column

    @property
    def given(self) -> Given:
        return Given.beside(self.column)

    @property
    def image_type(self) -> Any:
        """The Arrow type of the images, which is dense."""
        if self.chain.schema is None:
            raise InternalError(f"the columns behind {self.label()} are not known.")
        return self.chain.schema.field(self.column).type


@dataclass(frozen=True, kw_only=True, eq=False)
class DecideImages(_Deferred):
    """What is done to the images of a column is decided; the files stay.

    Fields:
        verify: read each file through, so that a broken one is known in time.
    """

    backend: ImageBackend
    verify: bool
    kind: ClassVar[str] = "decide_images"

    @property
    def traits(self) -> Traits:
        chain = self.chain.traits
        return Traits(kernel=True, reads=chain.reads, writes=(chain.writes or frozenset()) | {*self.given})

    @property
    def title(self) -> str:
        return self.chain.title

    def infer(self, schemas: Sequence[pa.Schema | None]) -> pa.Schema | None:
        before, behind = schemas[0], self.chain.infer(schemas)
        if before is None or behind is None:
            return None
        words = SIZE_WORDS + sum(step.words for step in self.chain.steps)
        schema = behind.set(behind.get_field_index(self.column), before.field(self.column))
        schema = schema.append(pa.field(self.given.decided, pa.list_(pa.uint32(), words)))
        return schema.append(pa.field(self.given.made, pa.large_binary()))

    def apply(self, block: Block, draw: Draw) -> Block:
        # Here, not at the top: it loads OpenCV.
        from dataflow.ops.images.pixels.beside import Companions
        from dataflow.ops.images.pixels.decide import decide

        chain, schema = self.chain, self.chain.schema
        if schema is None:
            raise InternalError(f"the columns behind {self.label()} are not known.")
        beside = Companions.of_block(chain.followers, chain.carried, schema, block, {})
        return decide(self, self.image_type, block, draw, beside)


@dataclass(frozen=True, kw_only=True, eq=False)
class DevelopImages(_Deferred):
    """The images of a column are made, behind `batch`, of the files and of what was decided for them."""

    kind: ClassVar[str] = "develop_images"

    @property
    def traits(self) -> Traits:
        return Traits(after_batch=True, reads=frozenset({self.column}), writes=frozenset({self.column}))

    def infer(self, schemas: Sequence[pa.Schema | None]) -> pa.Schema | None:
        schema = schemas[0]
        if schema is None:
            return None
        fields = [field for field in schema if field.name not in self.given]
        return pa.schema([pa.field(f.name, self.image_type) if f.name == self.column else f for f in fields])


def defer_images(
    root: Node, backend: ImageBackend, *, verify: bool
) -> tuple[Node, tuple[DevelopImages, ...]]:
    """The steps below `batch` without the images that the backend makes, and what it has to do, first to last.

    Only chains that stand last are left to it: what stands behind one would have to wait for it.
    """
    chain, below = _last_chain(root)
    if chain is None:
        return root, ()
    done = 0 if why_not(chain) else backend.does(chain.steps)
    if not done:
        return root, ()
    rest, develops = defer_images(below, backend, verify=verify)
    deferred = chain.over(rest)
    decide = DecideImages(chain=deferred, backend=backend, done=done, verify=verify, inputs=(rest,))
    return decide, (*develops, DevelopImages(chain=deferred, done=done))


def why_not(chain: ImageStep) -> str | None:
    """Why the images of a chain cannot be made behind `batch` by any backend; None where they can."""
    if chain.steps[0].stage != "open":
        return "they are pixels already"
    if chain.schema is None or shape_of(chain.schema.field(chain.column).type) is None:
        return "they have no one size"
    return None


def _last_chain(root: Node) -> tuple[ImageStep | None, Node]:
    return (root, root.input) if isinstance(root, ImageStep) else (None, root)
