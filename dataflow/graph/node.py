"""Node: one step of a pipeline, a frozen fact that answers questions about itself.

Rules and engine ask a node what it does to rows and columns (`traits`), what comes out (`infer`), what it
does to the order (`arrange`) and to a block of rows (`apply`). They never ask what type it is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Protocol, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from connectors.contract import Json
from dataflow.errors import InternalError
from dataflow.graph.arguments import Argument, arguments_of, written
from dataflow.graph.block import Block
from dataflow.graph.draw import Draw
from dataflow.index.index import Index
from dataflow.order.batches import Remainder
from dataflow.order.stream import Stream

__all__ = [
    "BatchSizes",
    "Kept",
    "NameRows",
    "Node",
    "Selection",
    "Source",
    "Traits",
    "distinct_sources",
    "makes_batches",
    "split_at_batch",
    "walk",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Traits:
    """What rules and engine ask an operator about itself.

    `reads` and `writes` are column names, None for "any". `chunk` is the number of rows that the kernel
    wants together (fixed blocks of a window), None where rows may come in any grouping.
    """

    kernel: bool = False  # has work to do on blocks (`apply`)
    keeps_rows: bool = True  # row i of the output is row i of the input
    keeps_columns: bool = True  # columns that it does not write pass through
    keeps_values: bool = False  # the kernel only picks, orders and names columns
    random: bool = False
    holds_gil: bool = False
    changes_order: bool = False  # shuffle, repeat
    counts_rows: bool = False  # needs to know how many rows its inputs have
    joins: bool = False  # has several inputs
    pairs: bool = False  # row i comes from row i of every input
    filters: bool = False  # gives each row or leaves it out
    selects: bool = False  # its kept rows are found in one pass beforehand
    shuffles: bool = False
    many: bool = False  # may give several rows of one
    needs_schema: bool = False  # what comes out is known when its function has run once (`probe`)
    whole_window: bool = False  # the kernel wants all rows of a window at once
    batches: bool = False  # makes batches: nothing but batch operators may follow
    after_batch: bool = False  # may stand behind `batch`
    combines: bool = False  # wants the rows of a batch together (`combine`): stands behind `batch` alone
    reads: frozenset[str] | None = frozenset()
    writes: frozenset[str] | None = frozenset()
    chunk: int | None = None
    fills: frozenset[str] = frozenset()  # columns that the kernel writes into memory it is given (`fill`)


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchSizes:
    """What a step that `batches` was asked for: rows of a rank's or of the global batch, one of them None."""

    size: int | None
    global_size: int | None
    lanes: int | None
    remainder: Remainder

    def begun_on(self, world: int) -> tuple[int, int]:
        """The rows of a global batch and the lanes of a run that begins on `world` ranks."""
        batch = self.global_size if self.global_size is not None else (self.size or 0) * world
        return batch, self.lanes or world


@dataclass(frozen=True, slots=True, eq=False)
class Kept:
    """What the pass of a step that `selects` has found: row i is kept if bit `i % 8` of byte `i // 8` is set.

    Rows about which nothing could be found out are kept; `error` is that of the first of them, None where there is
    none. `open`: some of them are good as they come to the step, so that it is asked again when they are delivered.
    """

    bitmap: npt.NDArray[np.uint8]
    error: Exception | None = None
    open: bool = False


# From sample ids to the file of each row (its name relative to the root) and the row's number in it.
NameRows = Callable[[npt.NDArray[np.int64]], tuple[list[str], npt.NDArray[np.int64]]]


class Source(Protocol):
    """Where rows come from."""

    @property
    def index(self) -> Index:
        """The index of the source; opened when first asked for."""

    @property
    def index_url(self) -> str | Path | None:
        """Where the index is kept beside the user's cache, if anywhere; `storage_options` are those of its store."""

    @property
    def storage_options(self) -> Mapping[str, Json] | None:
        """What fsspec is given to open the store, None for its defaults."""

    def written(self) -> dict[str, Json]:
        """What a spec says of the source.

        Raises:
            PlanError: it cannot be written down, as rows in memory.
        """


class Selection(Protocol):
    """The pass that finds the kept rows of a step beforehand: what it reads, and what it has found."""

    @property
    def reads_from(self) -> Node:
        """The step whose rows the pass is over."""

    @property
    def selection_key(self) -> str | None:
        """A text that decides the result beside the data; None where none does."""

    @property
    def kept(self) -> Kept | None:
        """What the pass has found, once it has been run."""

    def selected(self, block: Block, named: NameRows) -> Block:
        """The rows of a block of `reads_from` that are kept."""

    def with_basis(self, basis: Node) -> Node:
        """The step, which remembers what its pass reads: rules narrow only its input."""

    def with_kept(self, kept: Kept) -> Node:
        """The step, which knows what its pass has found."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Node:
    """A step of a pipeline over the steps that feed it. Fields other than `inputs` are its arguments."""

    inputs: tuple[Node, ...] = field(default=(), repr=False)
    kind: ClassVar[str] = ""
    feeds: ClassVar[int | None] = 1  # how many steps feed it: 0 for a source, None for any number
    in_specs: ClassVar[bool] = True  # users may write it; others only rules make

    @classmethod
    def arguments(cls) -> tuple[Argument, ...]:
        """What a spec may say of such a step: its fields, unless it has a form of its own."""
        return arguments_of(cls)

    @classmethod
    def from_arguments(cls, inputs: tuple[Node, ...], values: Mapping[str, Any]) -> Node:
        """Such a step (or several) over its inputs, from values by the names of its arguments."""
        return cls(inputs=inputs, **values)

    def written(self) -> dict[str, Json]:
        """What a spec says of this step: the arguments that are not at their defaults, as plain data.

        Raises:
            PlanError: an argument has no written form.
        """
        return written(self, self.arguments())

    @property
    def input(self) -> Node:
        return self.inputs[0]

    @property
    def traits(self) -> Traits:
        return Traits()

    @property
    def source(self) -> Source | None:
        """The source whose rows begin here, where one does."""
        return None

    @property
    def key(self) -> str | None:
        """The name of its random draws: the user's `key=`, or the one given before the first rule."""
        return None

    @cached_property
    def schema(self) -> pa.Schema | None:
        """The schema that comes out, None where only running can tell."""
        return self.infer([feed.schema for feed in self.inputs])

    def infer(self, schemas: Sequence[pa.Schema | None]) -> pa.Schema | None:
        """The schema that comes out, given those that go in; None where only running can tell.

        Raises:
            PlanError: a column name or type does not fit.
        """
        return schemas[0]

    def order_fact(self) -> Json:
        """What of this step shapes the order of rows, for the state to compare; None where nothing does."""
        return None

    def with_source(self, source: Source) -> Node:
        """A step that reads, over another source."""
        raise InternalError(f"{self.kind} reads no source.")

    def needs(self, wanted: frozenset[str] | None) -> tuple[frozenset[str] | None, ...]:
        """The columns that each input must give where `wanted` ones are asked of this step; None for all."""
        traits = self.traits
        if wanted is None or traits.reads is None or traits.writes is None:
            return (None,) * len(self.inputs)
        kept = wanted - traits.writes if traits.keeps_columns else frozenset()
        return (kept | traits.reads,) * len(self.inputs)

    def narrowed(self, wanted: frozenset[str]) -> Node:
        """This step where only `wanted` columns are asked of it, over inputs that were narrowed already."""
        return self

    def fused(self, below: Node) -> Node | None:
        """One step that does what `below` and then this one do, or None where there is none."""
        return None

    @property
    def new_names(self) -> Mapping[str, str] | None:
        """For a step that only gives columns other names: the new name by the old one."""
        return None

    def counted_before(self, basis: Node | None = None) -> Node:
        """A filter whose kept rows are found in one pass beforehand, over its input or over `basis`."""
        raise InternalError(f"{self.kind} is no filter.")

    def for_outputs(self) -> Node:
        """A shuffle as it is behind an operator that makes several rows of one."""
        raise InternalError(f"{self.kind} is no shuffle.")

    @property
    def batch_sizes(self) -> BatchSizes:
        """For a step that `batches`: how many rows make a batch."""
        raise InternalError(f"{self.kind} makes no batches.")

    @property
    def window_size(self) -> int | str:
        """For a step that shuffles: its window in rows, in bytes as text, or "full"."""
        raise InternalError(f"{self.kind} has no window.")

    def with_window(self, window: int | str) -> Node:
        """A step that shuffles, with its window in rows."""
        raise InternalError(f"{self.kind} has no window.")

    @property
    def expression(self) -> pc.Expression | None:
        """The condition of a filter as an Arrow expression, where it is one."""
        return None

    @property
    def selection(self) -> Selection | None:
        """The pass that finds the kept rows of a step that `selects`; None for all others."""
        return None

    def keyed(self, key: str) -> Self:
        """The same step with its random draws named."""
        return self

    def resolved_with(self, schema: pa.Schema) -> Self:
        """The same step, which knows now what it gives."""
        raise InternalError(f"{self.kind} asks for no schema.")

    def probe(self, block: Block, draw: Draw) -> pa.Schema:
        """What a step that `needs_schema` gives for the first rows of the source."""
        raise InternalError(f"{self.kind} asks for no schema.")

    def arrange(self, streams: Sequence[Stream]) -> Stream:
        """What the step does to the order of rows; by default nothing."""
        return streams[0]

    def apply(self, block: Block, draw: Draw) -> Block:
        """The kernel: a block of rows in, a block of rows out. Pure; runs on any thread."""
        raise InternalError(f"{self.kind} has no kernel.")

    def fill(self, block: Block, draw: Draw, into: Mapping[str, npt.NDArray[np.generic]]) -> Block:
        """What `apply` gives, for a step that `fills`: these columns in `into`, arrays (rows, *shape) by name."""
        raise InternalError(f"{self.kind} fills no memory that it is given.")

    def combine(self, block: Block, rows: npt.NDArray[np.int64], draw: Draw) -> Block:
        """For a step that `combines`: a rank's batch in and out, of which `rows` are real and the others only pad."""
        raise InternalError(f"{self.kind} combines no rows.")

    @property
    def title(self) -> str:
        """The step in an error: its name, with that of its function where it has one."""
        return self.kind

    def label(self) -> str:
        """The step as one line of text: its name and the arguments that differ from their defaults."""
        shown = []
        for f in fields(self):
            value = getattr(self, f.name)
            # Arrow's expressions answer != with an expression, or not at all: types are compared first.
            differs = type(value) is not type(f.default) or value != f.default
            if f.name != "inputs" and f.repr and differs:
                shown.append(f"{f.name}={_short(value)}")
        return f"{self.kind}({', '.join(shown)})"

    def over(self, *inputs: Node) -> Self:
        """The same step over other inputs."""
        return replace(self, inputs=inputs)


def _short(value: object) -> str:
    if callable(value):
        return str(getattr(value, "__qualname__", type(value).__qualname__))
    text = repr(value) if not isinstance(value, pa.Schema) else "{" + ", ".join(value.names) + "}"
    text = " ".join(text.split())
    return text if len(text) <= 60 else text[:57] + "..."


def walk(node: Node) -> list[Node]:
    """All steps below and including `node`, inputs first, depth first: the order of ordinals and leaves."""
    return [step for feed in node.inputs for step in walk(feed)] + [node]


def distinct_sources(node: Node) -> list[Source]:
    """The sources below a step, each once, numbered by first appearance."""
    return list({id(step.source): step.source for step in walk(node) if step.source is not None}.values())


def split_at_batch(node: Node) -> tuple[Node, tuple[Node, ...]]:
    """The last step in front of batch, and the steps from batch on; none of these where nothing makes batches."""
    behind: list[Node] = []
    step = node
    while step.inputs and step.traits.after_batch:
        behind.insert(0, step)
        step = step.input
    return (step.input, (step, *behind)) if step.traits.batches else (node, ())


def makes_batches(node: Node) -> bool:
    """Whether rows come out in batches."""
    return bool(split_at_batch(node)[1])
