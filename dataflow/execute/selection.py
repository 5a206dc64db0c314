"""Filters as index work: which rows a step keeps, found in one pass over the columns that it reads."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import Generic, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from connectors.contract import Prunes
from dataflow.errors import DataError, InternalError
from dataflow.execute.sample import read_positions
from dataflow.graph.node import NameRows, Node, Source, walk
from dataflow.index.index import Index
from dataflow.index.select import bits
from dataflow.optimize.push_projection import narrow_to
from dataflow.order import stream as streams
from dataflow.order.stream import Stream

__all__ = ["select_rows"]

Int64s = npt.NDArray[np.int64]
T = TypeVar("T")
_ID_ROWS = (1 << 40) - 1
# Rows evaluated at a time where no single source can be asked fragment by fragment.
_PASS_ROWS = 1 << 16


class _Numbers(Protocol):
    """What knows the sources of the plan."""

    seed: int

    def stream(self, node: Node) -> Stream: ...


def select_rows(node: Node, stream: Stream, compiler: _Numbers) -> Stream:
    """The stream of a step that selects, given the stream that goes into it."""
    basis = narrow_to(node.selection_basis, node.traits.reads)
    inner = compiler.stream(basis)
    if basis.source is not None and node.selection_key is not None:
        return streams.select(stream, _by_fragment(node, basis, inner))
    named = _namer(basis, inner)
    keep = np.empty(inner.n, np.bool_)
    for start in range(0, inner.n, _PASS_ROWS):
        stop = min(inner.n, start + _PASS_ROWS)
        keep[start:stop] = _kept(node, basis, inner, (start, stop), compiler.seed, named)
    return streams.select(stream, keep)


def _by_fragment(node: Node, basis: Node, inner: Stream) -> npt.NDArray[np.uint8]:
    source = basis.source
    if source is None or node.selection_key is None:
        raise InternalError("a selection by fragment needs a source and a key.")
    index = source.index
    named = _namer(basis, inner)
    # Footers are looked at only where the bitmap is not cached.
    possible = _Once(lambda: _possible(node, index))

    def compute(fragment: int) -> npt.NDArray[np.bool_]:
        start, stop = int(index.starts[fragment]), int(index.starts[fragment + 1])
        some = possible()
        if some is not None and not some[fragment]:
            return np.zeros(stop - start, np.bool_)
        return _kept(node, basis, inner, (start, stop), 0, named)

    return bits(index, node.selection_key, compute)


class _Once(Generic[T]):
    """A value that is made when it is first asked for, whichever thread asks."""

    def __init__(self, make: Callable[[], T]) -> None:
        self._make, self._lock = make, Lock()
        self._made: list[T] = []

    def __call__(self) -> T:
        with self._lock:
            if not self._made:
                self._made.append(self._make())
            return self._made[0]


def _kept(
    node: Node, basis: Node, inner: Stream, bounds: tuple[int, int], seed: int, named: NameRows
) -> npt.NDArray[np.bool_]:
    """Which rows from position to position are kept.

    One that cannot be read is, so that the loader's policy decides about it.
    """
    keep = np.ones(bounds[1] - bounds[0], np.bool_)
    try:
        block, _ = read_positions(basis, inner, *bounds, seed, node.kind)
    except DataError:
        return keep
    keep[block.origin] = node.selected(block, named)
    return keep


def _possible(node: Node, index: Index) -> npt.NDArray[np.bool_] | None:
    """Which fragments can have a row that is kept, as far as the format's statistics know."""
    expression = node.expression
    if expression is None or not isinstance(index.connector, Prunes):
        return None
    fragments = [index.fragment(number) for number in range(len(index.fragments))]
    return index.connector.prune(index.opened, fragments, expression)


def _file_starts(index: Index) -> Int64s:
    """The first row of every file, and behind the last the number of rows."""
    if index.connector.traits.scans == "listing" and index.rows == len(index.files):
        return np.arange(index.rows + 1)  # a file is a row
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(index.files.rows)])


def _namer(basis: Node, inner: Stream) -> NameRows:
    """From sample ids to file names and rows in the file."""
    by_number: dict[int, Source] = {}
    reads = [step.source for step in walk(basis) if step.source is not None]
    for leaf, source in zip((leaf for s in inner.inputs for leaf in s.leaves), reads, strict=False):
        by_number[leaf.number] = source

    def named(ids: Int64s) -> tuple[list[str], Int64s]:
        names: list[str] = [""] * len(ids)
        rows = ids & _ID_ROWS
        for number in np.unique(ids >> 40).tolist():
            index = by_number[number].index
            starts = _file_starts(index)
            some = np.flatnonzero(ids >> 40 == number)
            file = np.searchsorted(starts, rows[some], "right") - 1
            known = {f: index.files.name(f) for f in np.unique(file).tolist()}
            for place, f in zip(some.tolist(), file.tolist(), strict=True):
                names[place] = known[f]
            rows[some] -= starts[file]
        return names, rows

    return named
