"""The operators below `batch` as one function: from what was read of a window to rows in delivery order.

Leaves that need nothing done to them alone (one source, or a concat of bare sources) form a *group*: they are
read straight into one set of columns. Everything above the groups is kernels, unions and pairs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from math import lcm
from typing import Protocol, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dataflow.errors import PlanError
from dataflow.execute.dense import dense_shape
from dataflow.execute.guard import emptied, guarded
from dataflow.execute.metrics import Meters
from dataflow.graph.block import BadSample, Block, Column, as_arrow, concat_blocks
from dataflow.graph.draw import Draw, Turn
from dataflow.graph.node import Node, walk
from dataflow.index.index import Index

Int64s = npt.NDArray[np.int64]

__all__ = ["Group", "Program", "Took", "Turned", "compile_program", "cut", "untold"]

# What a part of a window shall become in front of a step that wants all of it.
_PART_BYTES = 4 << 20


@dataclass(frozen=True, slots=True)
class Group:
    """Sources that are read straight into one set of columns.

    `input` is 0 for the stream itself, i for `stream.others[i - 1]` of a zip; `indexes` are the sources by
    leaf number of that stream; `schema` has the columns wanted.
    """

    input: int
    indexes: Mapping[int, Index]
    schema: pa.Schema

    @property
    def row_bytes(self) -> float:
        """Estimated decoded bytes of one row."""
        return self._bytes_of(self.schema.names)

    @property
    def arrow_row_bytes(self) -> float:
        """Those of the columns that stay Arrow."""
        return self._bytes_of([column.name for column in self.schema if dense_shape(column.type) is None])

    def _bytes_of(self, names: Sequence[str]) -> float:
        if not names:
            return 0.0
        return max(
            index.decoded_bytes_per_row([name for name in names if name in index.row_bytes])
            for index in self.indexes.values()
        )


Took: TypeAlias = Callable[[int, int], None]


def untold(nbytes: int, rows: int) -> None:
    """What is done with the bytes that rows become where nobody counts them."""


@dataclass(frozen=True, slots=True)
class Turned:
    """What kernels need to know besides the rows: the key of this pass, and where time is counted.

    `isolate`: where a batched function fails, run it again to find out for which rows; else all are bad. `took` is
    told the bytes that some rows of a window have become, where a step wants them all at once.
    """

    seed: int
    turn: Turn
    meters: Meters
    isolate: bool
    took: Took = untold


# Memory for the rows of a range, by column: arrays (rows, *shape).
Slot = Mapping[str, npt.NDArray[np.generic]]


class _Step(Protocol):
    def run(self, parts: Sequence[Block], turned: Turned, slot: Slot | None = None) -> Block: ...


@dataclass(frozen=True)
class Program:
    """`run` turns the rows read for each group into what comes out of the operators. Pure.

    `chunk` is the number of rows at whose multiples a window may be cut for `run`; None: not at all.
    `bare` says that `run` costs nothing. `slot`: the type of each dense column that the last step
    writes into memory that it is given.
    """

    groups: tuple[Group, ...]
    step: _Step
    chunk: int | None
    bare: bool
    keeps_rows: bool
    slot: Mapping[str, pa.DataType]

    @property
    def row_bytes(self) -> float:
        """Estimated decoded bytes of one row of all columns that are read, zipped inputs included; at least 1."""
        return max(1.0, sum(group.row_bytes for group in self.groups))

    @property
    def arrow_row_bytes(self) -> float:
        """Those of the columns that stay Arrow, which are copied twice to bring a window into order."""
        return sum(group.arrow_row_bytes for group in self.groups)

    def run(self, parts: Sequence[Block], turned: Turned, slot: Slot | None = None) -> Block:
        """Apply the operators to the rows of one range of a window, a block for each group."""
        return self.step.run(parts, turned, slot)


@dataclass(frozen=True)
class _Part:
    group: int

    def run(self, parts: Sequence[Block], turned: Turned, slot: Slot | None = None) -> Block:
        return parts[self.group]


@dataclass(frozen=True)
class _PartByPart:
    """Steps in front of one that wants all rows of a window: they get few at a time, for they may make much of each.

    `chunk` is the number of rows at whose multiples a window may be cut for them.
    """

    feed: _Step
    chunk: int

    def run(self, parts: Sequence[Block], turned: Turned, slot: Slot | None = None) -> Block:
        rows = max(map(_window_rows, parts), default=0)
        made: list[Block] = []
        bad: list[BadSample] = []
        start, chunks = 0, 1
        while start < rows or not made:
            stop = start + chunks * self.chunk
            block = self.feed.run(cut(parts, start, stop), turned)
            turned.took(block.nbytes, stop - start)
            bad += block.bad
            if block.rows or not made:
                made.append(block)
            chunks = 2 * chunks if 2 * block.nbytes <= _PART_BYTES else max(1, chunks // 2)
            start = stop
        return replace(concat_blocks(made), bad=tuple(bad))


def _window_rows(part: Block) -> int:
    """How many rows of a window reach to the last of a block, bad ones included."""
    last = int(part.origin[-1]) if part.rows else -1
    return 1 + max([last, *(bad.origin for bad in part.bad)])


@dataclass(frozen=True)
class _Kernel:
    feed: _Step
    node: Node

    def run(self, parts: Sequence[Block], turned: Turned, slot: Slot | None = None) -> Block:
        block = self.feed.run(parts, turned)
        if block.rows == 0:
            return emptied(block, self.node)
        draw = Draw(turned.seed, turned.turn, self.node.key or self.node.kind)
        chunk = self.node.traits.chunk
        with turned.meters.busy(self.node.kind) as stage:
            pieces = [block] if chunk is None else _chunks(block, chunk)
            kernel = partial(_applied, self.node, draw, slot if chunk is None else None)
            out = concat_blocks([guarded(self.node, kernel, piece, turned.isolate) for piece in pieces])
            stage.rows, stage.bytes = block.rows, out.nbytes
        return replace(out, bad=_merged(block, out))


def _applied(node: Node, draw: Draw, slot: Slot | None, block: Block) -> Block:
    # Rows may have been left out below, or be looked at one by one.
    if slot is not None and all(len(memory) == block.rows for memory in slot.values()):
        return node.fill(block, draw, slot)
    return node.apply(block, draw)


def _merged(before: Block, after: Block) -> tuple[BadSample, ...]:
    """The bad samples of both, each once: a slice of a block loses those of the whole."""
    known = {id(bad) for bad in after.bad}
    return (*(bad for bad in before.bad if id(bad) not in known), *after.bad)


def _chunks(block: Block, rows: int) -> list[Block]:
    """Cut a block at the multiples of `rows` of its window, whatever rows are left of each part; and each part again
    where it has become more than `rows` rows."""
    number = block.origin // rows
    cuts = [0, *(np.flatnonzero(np.diff(number)) + 1).tolist(), block.rows]
    return [
        block.slice(start, min(start + rows, high))
        for low, high in pairwise(cuts)
        for start in range(low, high, rows)
    ]


@dataclass(frozen=True)
class _Union:
    feeds: tuple[_Step, ...]
    schema: pa.Schema

    def run(self, parts: Sequence[Block], turned: Turned, slot: Slot | None = None) -> Block:
        blocks = [feed.run(parts, turned) for feed in self.feeds]
        bad = tuple(sample for block in blocks for sample in block.bad)
        shaped = [_conformed(block, self.schema) for block in blocks if block.rows] or [
            _conformed(blocks[0], self.schema)
        ]
        # Those of all feeds: batches are made of ranges that may have rows of any of them.
        axes = max(1 if block.ids.ndim == 1 else block.ids.shape[1] for block in blocks)
        whole = concat_blocks([replace(block, ids=_with_axes(block.ids, axes)) for block in shaped])
        # Each origin comes from one feed, whose order among equal origins a stable sort keeps.
        merged = whole.take(np.argsort(whole.origin, kind="stable")) if len(shaped) > 1 else whole
        return Block(merged.columns, merged.ids, merged.origin, owned=merged.owned, bad=bad)


def _with_axes(ids: Int64s, axes: int) -> Int64s:
    """Ids of a branch without flat_map beside those of one with: its sub-numbers are 0."""
    if axes == 1:
        return ids
    flat = ids.reshape(len(ids), 1 if ids.ndim == 1 else ids.shape[1])
    return np.column_stack([flat, np.zeros((len(ids), axes - flat.shape[1]), np.int64)])


def _conformed(block: Block, schema: pa.Schema) -> Block:
    columns = {}
    for field in schema:
        column = block.columns[field.name]
        columns[field.name] = column if _has_type(column, field.type) else as_arrow(column).cast(field.type)
    return block.with_columns(columns, owned=block.owned)


@dataclass(frozen=True)
class _Pairs:
    feeds: tuple[_Step, ...]

    def run(self, parts: Sequence[Block], turned: Turned, slot: Slot | None = None) -> Block:
        blocks = [feed.run(parts, turned) for feed in self.feeds]
        bad = tuple(sample for block in blocks for sample in block.bad)
        if bad:
            # A row that is bad in one input is missing in all.
            gone = np.array(sorted({sample.origin for sample in bad}), np.int64)
            blocks = [block.take(np.flatnonzero(~np.isin(block.origin, gone))) for block in blocks]
        columns = {name: column for block in blocks for name, column in block.columns.items()}
        ids = np.column_stack([block.ids for block in blocks])
        owned = all(block.owned for block in blocks)
        return Block(columns, ids, blocks[0].origin, owned=owned, bad=bad)


def _has_type(column: Column, kind: pa.DataType) -> bool:
    if isinstance(column, np.ndarray):
        return dense_shape(kind) == (column.dtype, column.shape[1:])
    return bool(column.type.equals(kind))


def compile_program(root: Node) -> Program:
    """The program of the steps below and including `root`.

    Leaf numbers follow the streams that `arrange` makes of the same tree: the leaves of a concat are those of its
    inputs one behind the other, for each zipped input; the inputs of a zip are those of its inputs.
    """
    groups: list[Group] = []
    step, _ = _build(root, _leaves(root), groups)
    steps = walk(root)
    kernels = [node.traits for node in steps if node.traits.kernel]
    chunk: int | None = lcm(*(t.chunk for t in kernels if t.chunk)) if kernels else 1
    if any(t.whole_window for t in kernels):
        chunk = None
    bare = all(t.keeps_rows and not t.holds_gil and not _works(node) for node in steps for t in [node.traits])
    keeps_rows = all(t.keeps_rows for t in kernels)
    return Program(tuple(groups), step, chunk, bare and len(groups) == 1, keeps_rows, _slot(root))


def _slot(root: Node) -> dict[str, pa.DataType]:
    if root.schema is None:
        return {}
    kinds: dict[str, pa.DataType] = {name: root.schema.field(name).type for name in sorted(root.traits.fills)}
    return {name: kind for name, kind in kinds.items() if dense_shape(kind) is not None}


def _works(node: Node) -> bool:
    """Whether the kernel takes time: picking and naming columns does not."""
    return node.traits.kernel and not node.traits.keeps_values


def cut(parts: Sequence[Block], start: int, stop: int) -> list[Block]:
    """The rows `start` to `stop` of a window, of a block for each group."""
    pieces = []
    for block in parts:
        low, high = np.searchsorted(block.origin, (start, stop))
        bad = tuple(sample for sample in block.bad if start <= sample.origin < stop)
        piece = block.slice(int(low), int(high))
        pieces.append(Block(piece.columns, piece.ids, piece.origin, owned=False, bad=bad))
    return pieces


Leaves = tuple[tuple[Node, ...], ...]


def _leaves(node: Node) -> Leaves:
    """The reads below a node, by zipped input and then by leaf number."""
    if node.source is not None:
        return ((node,),)
    below = [_leaves(feed) for feed in node.inputs]
    if node.traits.pairs:
        return tuple(reads for leaves in below for reads in leaves)
    return tuple(sum(column, ()) for column in zip(*below, strict=True))


def _build(node: Node, numbered: Leaves, groups: list[Group]) -> tuple[_Step, Leaves]:
    """The step of a node; `numbered` are all reads of the whole tree."""
    bare = _bare_reads(node)
    if bare is not None and node.schema is not None:
        place = {id(read): (i, k) for i, reads in enumerate(numbered) for k, read in enumerate(reads)}
        first = place[id(bare[0])][0]
        indexes = {place[id(read)][1]: read.source.index for read in bare if read.source is not None}
        groups.append(Group(first, indexes, node.schema))
        return _Part(len(groups) - 1), numbered
    feeds = tuple(_build(feed, numbered, groups)[0] for feed in node.inputs)
    if node.traits.pairs:
        return _Pairs(feeds), numbered
    if node.traits.joins:
        if node.schema is None:
            unknown = next(feed for feed in node.inputs if feed.schema is None)
            raise PlanError(
                f"{node.kind}: the columns of its input {unknown.label()} are not known.",
                hint="give schema= to the functions in it",
            )
        return _Union(feeds, node.schema), numbered
    if node.traits.whole_window:
        chunks = (step.traits.chunk for step in walk(node) if step.traits.kernel)
        return _Kernel(_PartByPart(feeds[0], lcm(*(chunk for chunk in chunks if chunk))), node), numbered
    return (_Kernel(feeds[0], node) if node.traits.kernel else feeds[0]), numbered


def _bare_reads(node: Node) -> tuple[Node, ...] | None:
    """The reads below a node that does nothing to rows; None where something is done, or rows are paired."""
    if node.source is not None:
        return (node,)
    if node.traits.kernel or node.traits.pairs:
        return None
    below = [_bare_reads(feed) for feed in node.inputs]
    found: tuple[Node, ...] = ()
    for reads in below:
        if reads is None:
            return None
        found += reads
    return found
