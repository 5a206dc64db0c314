"""A pipeline becomes a plan: its sources, the stream of its rows, the program of its operators, its batches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from copy import copy
from dataclasses import dataclass, field
from math import prod
from typing import Any, Literal

import pyarrow as pa

from connectors.tensors import shape_of
from dataflow.byte_sizes import parse_bytes
from dataflow.errors import PlanError, StageError
from dataflow.execute.passes import found_once
from dataflow.execute.program import Program, compile_program
from dataflow.execute.sample import FileOrder
from dataflow.execute.selection import find_kept
from dataflow.graph.draw import Draw
from dataflow.graph.node import Kept, Node, Selection, Source, split_at_batch, walk
from dataflow.index.index import Index
from dataflow.ops.images.backend import ImageBackend
from dataflow.ops.images.defer import DevelopImages, defer_images
from dataflow.ops.images.verify import verify_images
from dataflow.ops.read import PinnedSource
from dataflow.optimize.name_draws import name_batch_draws
from dataflow.optimize.push_projection import narrow_to
from dataflow.optimize.rules import optimize
from dataflow.options import PassOptions
from dataflow.order import stream as streams
from dataflow.order.stream import Leaf, Stream

__all__ = ["NumberedSource", "Plan", "compile_plan"]

# Rows with which a function is asked what it gives, and how many at most where filters leave none of them.
_PROBE_ROWS = 16
_PROBE_MOST = 4096
# A string or list that a function made, of which nothing is known beforehand.
_UNKNOWN_BYTES = 64.0


@dataclass(frozen=True, slots=True)
class NumberedSource:
    """A source and its place in sample ids."""

    number: int
    index: Index


@dataclass(frozen=True)
class Plan:
    """What a loader runs. `root` is the step below batch; `batch_steps` are those from batch on.

    Behind them, where another backend than the kernel makes images, come those that it `develops` of a batch, and
    `late_steps`, which want these.
    """

    root: Node
    batch_steps: tuple[Node, ...]
    sources: tuple[NumberedSource, ...]
    stream: Stream
    program: Program
    seed: int
    windows: tuple[int, ...]  # the rows of each shuffle window, inputs first
    windows_asked: tuple[int, ...]  # those that a run would begin with, where a state keeps others
    output_window: int | None = None
    skips_bad_rows: bool = False  # a row that cannot be made is left out
    develops: tuple[DevelopImages, ...] = ()
    late_steps: tuple[Node, ...] = ()

    @property
    def lengths_known(self) -> bool:
        """Whether the number of rows is known before they are read."""
        return self.program.keeps_rows and not self.skips_bad_rows

    @property
    def schema(self) -> pa.Schema | None:
        """The columns below batch."""
        return self.root.schema

    @property
    def delivered_schema(self) -> pa.Schema | None:
        """The columns of a batch, where they are known."""
        schema = self.schema
        for step in (*self.batch_steps[1:], *self.develops, *self.late_steps):
            schema = step.infer([schema])
        return schema

    @property
    def delivered_bytes(self) -> float:
        """Estimated bytes of one row as it is assembled."""
        return sum(map(_field_bytes, self.schema)) if self.schema is not None else 0.0

    @property
    def developed_bytes(self) -> float:
        """Those of the images of one row that are made behind `batch`."""
        return sum(_bytes_of(step.image_type) for step in self.develops)

    @property
    def row_bytes(self) -> float:
        """Estimated decoded bytes of one row of all columns that are read, zipped inputs included."""
        return self.program.row_bytes

    @property
    def indexes(self) -> Mapping[int, Index]:
        """The sources by number."""
        return {source.number: source.index for source in self.sources}


def _field_bytes(field: pa.Field[Any]) -> float:
    return _bytes_of(field.type)


def _bytes_of(kind: Any) -> float:
    dense = shape_of(kind)
    return _UNKNOWN_BYTES if dense is None else dense[0].itemsize * float(prod(dense[1]))


@dataclass
class _Compiler:
    seed: int
    windows: Sequence[int] | None
    pinned: Mapping[int, Source]  # sources that stand in for others, by the id() of those
    evaluate: bool
    tolerant: bool
    passes: PassOptions
    numbers: dict[int, NumberedSource] = field(default_factory=dict)
    window_rows: list[int] = field(default_factory=list)
    window_rows_asked: list[int] = field(default_factory=list)
    output_window: int | None = None
    _streams: dict[Node, Stream] = field(default_factory=dict)

    def prepare(self, node: Node) -> Node:
        """The steps as they were written, over the sources to be read; those that select know what they keep."""
        if node.source is not None:
            return node.with_source(self.pinned.get(id(node.source), node.source))
        made = node.over(*[self.prepare(feed) for feed in node.inputs])
        selection = made.selection
        if not self.evaluate or selection is None:
            return made
        indexes = [step.source.index for step in walk(made) if step.source is not None]
        kept = found_once(node, indexes, lambda: self._found(made))
        made = selection.with_kept(kept)
        unmet = kept.open and not made.traits.kernel
        if kept.error is not None and (unmet or not self.tolerant):
            # A copy: through the frames that it passes, the error itself would keep the step that it is kept with.
            raise copy(kept.error) from kept.error.__cause__
        return made

    def _found(self, step: Node) -> Kept:
        """The pass of a step of the user's, over all that is below it."""
        below = self.resolve(optimize(_in_file_order(step.input)))
        over = step.over(below)
        over.schema  # noqa: B018 - columns that were not known when it was written fail here
        _check_counts(over)
        return self._find(step, below, self.stream(below), tolerant=self.tolerant)

    def _find(self, step: Node, below: Node, stream: Stream, *, tolerant: bool) -> Kept:
        over = step.over(below)
        read = narrow_to(below, over.traits.reads)
        sources = _by_number(self.numbers)
        return find_kept(over.over(read), stream, self.seed, sources, tolerant=tolerant, options=self.passes)

    def resolve(self, node: Node) -> Node:
        """Fresh nodes, of which each knows its schema: functions without one are asked with the first rows."""
        made = node.over(*[self.resolve(feed) for feed in node.inputs])
        selection = made.selection
        if selection is not None and selection.kept is None:
            made = selection.with_basis(self.resolve(selection.reads_from))
        return made.resolved_with(self._probed(made)) if made.traits.needs_schema else made

    def _probed(self, node: Node) -> pa.Schema:
        """What a function gives for the first rows that come to it; where bad rows are borne, for which it does."""
        basis = _in_file_order(node.input)
        stream = self.stream(basis)
        draw = Draw(self.seed, 0, node.key or node.kind)
        most = min(_PROBE_ROWS, node.traits.chunk or _PROBE_ROWS)
        rows, asked, failure = _PROBE_ROWS, 0, None
        while True:
            with closing(FileOrder(basis, stream, self.seed)) as order:
                block = order.read(0, min(rows, stream.n), isolate=self.tolerant)
            for start in range(asked, block.rows, most):
                try:
                    return node.probe(block.slice(start, min(block.rows, start + most)), draw)
                except StageError as error:
                    if not self.tolerant:
                        raise
                    failure = failure or error
            if rows >= min(_PROBE_MOST, stream.n):
                among = f" among the first {min(rows, stream.n)}" if stream.n else ""
                raise failure or PlanError(
                    f"{node.label()} gets no row{among}, so that its columns are unknown.",
                    hint="give schema={...} to it",
                )
            rows, asked = 8 * rows, block.rows

    def stream(self, node: Node) -> Stream:
        """The rows that come out of a row-keeping tree, in its order."""
        if node not in self._streams:
            self._streams[node] = self._made(node)
        return self._streams[node]

    def _made(self, node: Node) -> Stream:
        if node.source is not None:
            return streams.read(self._leaf(node.source))
        if node.traits.counts_rows or node.traits.selects:
            _check_counts(node)
        feeds = [self.stream(feed) for feed in node.inputs]
        if not self.evaluate and any(step.traits.selects for step in walk(node)):
            if node.traits.pairs:
                feeds = _of_one_length(feeds)
            elif node.traits.selects or node.traits.counts_rows:
                return feeds[0]
        if node.selection is not None:
            return streams.select(feeds[0], self._kept(node, node.selection, feeds[0]).bitmap)
        if node.traits.shuffles:
            node = node.with_window(self._window(node))
        if node.traits.whole_window:
            window = self._window(node)
            self.output_window = None if window == "full" else window
        return node.arrange(feeds)

    def _kept(self, node: Node, selection: Selection, stream: Stream) -> Kept:
        if selection.kept is not None:
            return selection.kept
        # Of a step that a rule made: no function of the user's runs for it.
        kept = self._find(node, selection.reads_from, stream, tolerant=True)
        if kept.error is not None and kept.open:
            raise kept.error
        return kept

    def _window(self, node: Node) -> int | Literal["full"]:
        window = node.window_size
        if window == "full":
            return "full"
        place = len(self.window_rows)
        if isinstance(window, int):
            rows = asked = window
        else:
            rows = asked = max(1, int(parse_bytes(window, "window") / _row_bytes(node)))
            if self.windows is not None and place < len(self.windows):
                rows = self.windows[place]
        self.window_rows.append(rows)
        self.window_rows_asked.append(asked)
        return rows

    def _leaf(self, source: Source) -> Leaf:
        numbered = self.numbered(source)
        traits = source.index.traits
        return Leaf(numbered.number, source.index.starts, traits.row_ranges, traits.single_rows)

    def numbered(self, source: Source) -> NumberedSource:
        """The source with its number: sources are numbered by first appearance."""
        if id(source) not in self.numbers:
            self.numbers[id(source)] = NumberedSource(len(self.numbers), source.index)
        return self.numbers[id(source)]


def _of_one_length(feeds: Sequence[Stream]) -> list[Stream]:
    """The inputs of a zip cut to the shortest."""
    shortest = min(feed.n for feed in feeds)
    return [streams.take(feed, shortest) for feed in feeds]


def _row_bytes(node: Node) -> float:
    """Decoded bytes of a row below a shuffle, the mean over all rows of its sources."""
    total, rows = 0.0, 0
    for step in walk(node):
        if step.source is not None and step.schema is not None:
            index = step.source.index
            total += index.rows * index.decoded_bytes_per_row(step.schema.names)
            rows += index.rows
    return total / rows if rows else 1.0


def _by_number(numbers: Mapping[int, NumberedSource]) -> dict[int, Index]:
    return {source.number: source.index for source in numbers.values()}


def _in_file_order(node: Node) -> Node:
    """The same rows without shuffles and repeats."""
    while node.traits.changes_order:
        node = node.input
    return node.over(*[_in_file_order(feed) for feed in node.inputs])


def _check_counts(node: Node) -> None:
    """How many rows come to a step that must know it is known.

    Raises:
        PlanError: it is not; names the step that leaves it open.
    """
    for step in (s for feed in node.inputs for s in walk(feed)):
        if not step.traits.keeps_rows:
            raise PlanError(
                f"{node.label()} behind {step.label()}: how many rows that gives is not known.",
                hint=f"put {node.kind} in front of it"
                + (", or use counted()" if step.traits.filters else ""),
            )


def _behind(root: Node, steps: Sequence[Node]) -> tuple[Node, ...]:
    """The steps from batch on over the root, so that each knows the columns that come to it."""
    made: list[Node] = []
    for step in steps:
        made.append(step.over(made[-1] if made else root))
        made[-1].schema  # noqa: B018 - what only running could tell is known now, and may not fit
    return tuple(made)


def compile_plan(
    node: Node,
    seed: int,
    windows: Sequence[int] | None = None,
    indexes: Mapping[int, Index] | None = None,
    *,
    evaluate: bool = True,
    tolerant: bool = False,
    passes: PassOptions | None = None,
    images: ImageBackend | None = None,
) -> Plan:
    """Compile a pipeline; `windows` are the window rows that a state keeps.

    `indexes`, by the id() of a source, stand in for the sources' own: those that a state was saved with. Without
    `evaluate` no function is asked for its columns and no pass of a filter is run: such a plan is for looking at,
    and its rows are those in front of such filters, and of what counts theirs. With `tolerant` a row that such a
    pass cannot decide about is kept, and is bad when it is delivered. `passes` is what these may take. `images` makes
    of a batch what it can, the kernel all else.

    Raises:
        PlanError: the steps do not fit together.
        DataflowError: an index cannot be built, or a function fails that must be asked beforehand: for its columns,
            or for the rows that it keeps.
    """
    below, batch_steps = split_at_batch(node)
    pinned = {key: PinnedSource(index=index) for key, index in (indexes or {}).items()}
    compiler = _Compiler(seed, windows, pinned, evaluate, tolerant, passes or PassOptions())
    for step in walk(below):
        if step.source is not None:
            compiler.numbered(pinned.get(id(step.source), step.source))
    root = optimize(compiler.prepare(below))
    if evaluate:
        root = compiler.resolve(root)
    if tolerant:
        root = verify_images(root)
    compiler.window_rows.clear()
    compiler.window_rows_asked.clear()
    stream = compiler.stream(root)
    develops: tuple[DevelopImages, ...] = ()
    if images is not None and batch_steps:
        root, develops = defer_images(root, images, verify=tolerant)
    keyed = name_batch_draws(batch_steps)
    # What stands behind `batch` wants images where there are any.
    early, late = (keyed[:1], keyed[1:]) if develops else (keyed, [])
    behind = _behind(root, [*early, *develops, *late])
    return Plan(
        root=root, batch_steps=behind[: len(early)], develops=develops,
        late_steps=behind[len(early) + len(develops) :],
        sources=tuple(compiler.numbers.values()), stream=stream, program=compile_program(root), seed=seed,
        windows=tuple(compiler.window_rows), windows_asked=tuple(compiler.window_rows_asked),
        output_window=compiler.output_window,
    )  # fmt: skip
