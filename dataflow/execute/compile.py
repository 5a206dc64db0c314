"""A pipeline becomes a plan: its sources, the stream of its rows, the program of its operators, its batches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any, Literal

import pyarrow as pa

from connectors.tensors import shape_of
from dataflow.errors import PlanError
from dataflow.execute.program import Program, compile_program
from dataflow.execute.sample import read_positions
from dataflow.execute.selection import select_rows
from dataflow.graph.node import Node, Source, walk
from dataflow.index.index import Index
from dataflow.ops.read import PinnedSource
from dataflow.ops.shuffle import parse_bytes
from dataflow.optimize.rules import optimize
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
    """What a loader runs. `root` is the step below batch; `batch_steps` are those from batch on."""

    root: Node
    batch_steps: tuple[Node, ...]
    sources: tuple[NumberedSource, ...]
    stream: Stream
    program: Program
    seed: int
    windows: tuple[int, ...]  # the rows of each shuffle window, inputs first
    output_window: int | None = None

    @property
    def lengths_known(self) -> bool:
        """Whether the number of rows is known before they are read."""
        return self.program.keeps_rows

    @property
    def schema(self) -> pa.Schema | None:
        """The columns below batch."""
        return self.root.schema

    @property
    def delivered_bytes(self) -> float:
        """Estimated bytes of one row as it is delivered."""
        return sum(map(_field_bytes, self.schema)) if self.schema is not None else 0.0

    @property
    def row_bytes(self) -> float:
        """Estimated decoded bytes of one row of all columns that are read, zipped inputs included."""
        return max(1.0, sum(_group_bytes(g.indexes, g.schema) for g in self.program.groups))


def _field_bytes(field: pa.Field[Any]) -> float:
    dense = shape_of(field.type)
    return _UNKNOWN_BYTES if dense is None else dense[0].itemsize * float(prod(dense[1]))


def _group_bytes(indexes: Mapping[int, Index], schema: pa.Schema) -> float:
    each = [
        index.decoded_bytes_per_row([n for n in schema.names if n in index.row_bytes])
        for index in indexes.values()
    ]
    return max(each)


@dataclass
class _Compiler:
    seed: int
    windows: Sequence[int] | None
    numbers: dict[int, NumberedSource] = field(default_factory=dict)
    window_rows: list[int] = field(default_factory=list)
    output_window: int | None = None
    _streams: dict[Node, Stream] = field(default_factory=dict)

    def resolve(self, node: Node) -> Node:
        """Fresh nodes, of which each knows its schema: functions without one are asked with the first rows."""
        made = node.over(*[self.resolve(feed) for feed in node.inputs])
        if made.traits.selects:
            made = made.with_basis(self.resolve(made.selection_basis))
        return made.resolved_with(self._probed(made)) if made.traits.needs_schema else made

    def _probed(self, node: Node) -> pa.Schema:
        rows = _PROBE_ROWS
        basis = self._without_order(node.input)
        stream = self.stream(basis)
        while True:
            block, draw = read_positions(
                basis, stream, 0, min(rows, stream.n), self.seed, node.key or node.kind
            )
            if block.rows:
                most = min(_PROBE_ROWS, node.traits.chunk or _PROBE_ROWS)
                return node.probe(block.slice(0, min(block.rows, most)), draw)
            if rows >= min(_PROBE_MOST, stream.n):
                raise PlanError(
                    f"{node.label()} gets no row among the first {rows}, so that its columns are unknown.",
                    hint="give schema={...} to it",
                )
            rows *= 8

    def _without_order(self, node: Node) -> Node:
        """The same rows in file order."""
        while node.traits.changes_order:
            node = node.input
        return node.over(*[self._without_order(feed) for feed in node.inputs])

    def stream(self, node: Node) -> Stream:
        """The rows that come out of a row-keeping tree, in its order."""
        if node not in self._streams:
            self._streams[node] = self._made(node)
        return self._streams[node]

    def _made(self, node: Node) -> Stream:
        if node.source is not None:
            return streams.read(self._leaf(node.source))
        if node.traits.counts_rows or node.traits.selects:
            for step in (s for feed in node.inputs for s in walk(feed)):
                if not step.traits.keeps_rows:
                    raise PlanError(
                        f"{node.label()} behind {step.label()}: how many rows that gives is not known.",
                        hint=f"put {node.kind} in front of it"
                        + (", or use counted()" if step.traits.filters else ""),
                    )
        feeds = [self.stream(feed) for feed in node.inputs]
        if node.traits.selects:
            return select_rows(node, feeds[0], self)
        if node.traits.shuffles:
            node = node.with_window(self._window(node))
        if node.traits.whole_window:
            window = self._window(node)
            self.output_window = None if window == "full" else window
        return node.arrange(feeds)

    def _window(self, node: Node) -> int | Literal["full"]:
        window = node.window_size
        if window == "full":
            return "full"
        place = len(self.window_rows)
        if isinstance(window, int):
            rows = window
        elif self.windows is not None and place < len(self.windows):
            rows = self.windows[place]
        else:
            rows = max(1, int(parse_bytes(window, "window") / _row_bytes(node)))
        self.window_rows.append(rows)
        return rows

    def _leaf(self, source: Source) -> Leaf:
        numbered = self.numbered(source)
        traits = source.index.connector.traits
        return Leaf(numbered.number, source.index.starts, traits.row_ranges, traits.single_rows)

    def numbered(self, source: Source) -> NumberedSource:
        """The source with its number: sources are numbered by first appearance."""
        if id(source) not in self.numbers:
            self.numbers[id(source)] = NumberedSource(len(self.numbers), source.index)
        return self.numbers[id(source)]


def _row_bytes(node: Node) -> float:
    """Decoded bytes of a row below a shuffle, the mean over all rows of its sources."""
    total, rows = 0.0, 0
    for step in walk(node):
        if step.source is not None and step.schema is not None:
            index = step.source.index
            total += index.rows * index.decoded_bytes_per_row(step.schema.names)
            rows += index.rows
    return total / rows if rows else 1.0


def _pinned(node: Node, pinned: Mapping[int, Source]) -> Node:
    """The tree over other sources; one source stays one source."""
    if node.source is None:
        return node.over(*[_pinned(feed, pinned) for feed in node.inputs])
    return node.with_source(pinned[id(node.source)])


def compile_plan(
    node: Node, seed: int, windows: Sequence[int] | None = None, indexes: Mapping[int, Index] | None = None
) -> Plan:
    """Compile a pipeline; `windows` are the window rows that a state keeps.

    `indexes`, by the id() of a source, stand in for the sources' own: those that a state was saved with.

    Raises:
        PlanError: the steps do not fit together.
        DataflowError: an index cannot be built, or a function that must be asked for its columns fails.
    """
    batch_steps: list[Node] = []
    below = node
    if any(step.traits.batches for step in walk(node)):
        while not below.traits.batches:
            batch_steps.insert(0, below)
            below = below.input
        batch_steps.insert(0, below)
        below = below.input
    if indexes is not None:
        pinned: dict[int, Source] = {key: PinnedSource(index=index) for key, index in indexes.items()}
        below = _pinned(below, pinned)
    compiler = _Compiler(seed, windows)
    for step in walk(below):
        if step.source is not None:
            compiler.numbered(step.source)
    root = compiler.resolve(optimize(below))
    compiler.window_rows.clear()
    stream = compiler.stream(root)
    return Plan(
        root=root, batch_steps=tuple(batch_steps), sources=tuple(compiler.numbers.values()), stream=stream,
        program=compile_program(root), seed=seed, windows=tuple(compiler.window_rows),
        output_window=compiler.output_window,
    )  # fmt: skip
