"""Filters as index work: which rows a step keeps, found in one pass over the columns that it reads."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from threading import Lock
from typing import Generic, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from connectors.contract import Prunes
from dataflow.errors import InternalError, PlanError
from dataflow.execute.guard import guarded
from dataflow.execute.row_names import FindPlace, located, place_finder, row_namer
from dataflow.execute.sample import FileOrder
from dataflow.graph.block import BadSample, Block
from dataflow.graph.calls import first_id, forget_frames, stage_error
from dataflow.graph.node import Kept, NameRows, Node, Selection
from dataflow.index.index import Index
from dataflow.index.progress import Progress
from dataflow.index.select import bits
from dataflow.options import PassOptions
from dataflow.order.stream import Stream

__all__ = ["find_kept"]

Bools = npt.NDArray[np.bool_]
T = TypeVar("T")


# Memory for one thread of a pass: with less there are fewer threads.
_THREAD_BYTES = 32 << 20
# Of that: what a block may hold. It is decoded, put in its place and looked at by the condition, which makes columns of
# its own, beside what the decoder keeps.
_BLOCK_SHARE = 1 / 8


def find_kept(
    step: Node, stream: Stream, seed: int, sources: Mapping[int, Index], *, tolerant: bool, options: PassOptions
) -> Kept:  # fmt: skip
    """Which rows a step that selects keeps of those that go into it, which are the rows of `stream`.

    With `tolerant` a row is kept about which nothing can be found out, so that the loader's policy decides about it.

    Args:
        sources: by number.
        options: of the pass, which holds a few rows of each fragment that it is in.

    Raises:
        DataflowError: that of the first such row, unless `tolerant`; it has a note with file and row.
    """
    selection = step.selection
    if selection is None:
        raise InternalError(f"{step.label()} selects nothing.")
    decide = _Decision(step, selection, row_namer(sources), place_finder(sources), tolerant)
    source, key = step.input.source, selection.selection_key
    if source is not None and key is not None:
        return Kept(_by_fragment(key, source.index, stream, replace(decide, tolerant=True), options))
    bitmap = np.zeros(-(-stream.n // 8), np.uint8)
    error: Exception | None = None
    is_open = False
    names = ", ".join(sources[leaf.number].name for leaf in stream.leaves)
    block_bytes = int(_BLOCK_SHARE * options.memory_limit)
    with (
        closing(FileOrder(step.input, stream, seed, block_bytes=block_bytes)) as order,
        Progress(f"Filtering {names}") as progress,
    ):
        progress.begin(stream.n)
        for start, stop, block in order.blocks(isolate=tolerant):
            found = decide.about(block, stop - start)
            bitmap[start // 8 : -(-stop // 8)] = np.packbits(found.keep, bitorder="little")
            error, is_open = error or found.error, is_open or found.open
            progress.advance(stop - start)
    bitmap.flags.writeable = False
    return Kept(bitmap, error, is_open)


class _Found(NamedTuple):
    """`Kept` for the rows of one block: `keep` is bool (rows,)."""

    keep: Bools
    error: Exception | None
    open: bool


@dataclass(frozen=True)
class _Decision:
    """Asks a step about rows. `tolerant` as in `find_kept`."""

    step: Node
    selection: Selection
    named: NameRows
    place: FindPlace
    tolerant: bool

    def about(self, block: Block, rows: int) -> _Found:
        """What is found about `rows` rows, of which a block has those that could be made."""
        out = self._selected(replace(block, bad=()))
        bad = sorted((*block.bad, *out.bad), key=lambda sample: sample.origin)
        keep = np.zeros(rows, np.bool_)
        keep[out.origin] = True
        if not bad:
            return _Found(keep, None, open=False)
        error = located(bad[0], self.place)
        if not self.tolerant:
            raise error
        keep[[sample.origin for sample in bad]] = True
        kept = stage_error(bad[0].operator, error)
        forget_frames(kept)
        return _Found(keep, kept, open=bool(out.bad))

    def _selected(self, block: Block) -> Block:
        if not block.rows:
            return block  # user functions are never called for nothing
        if self.tolerant:
            return guarded(
                self.step, lambda part: self.selection.selected(part, self.named), block, isolate=True
            )
        try:
            return self.selection.selected(block, self.named)
        except (InternalError, PlanError):
            raise
        except Exception as error:
            wrapped = stage_error(self.step.title, error)
            first = BadSample(int(block.origin[0]), first_id(block, 0), self.step.title, wrapped, block.rows)
            raise located(first, self.place) from error


def _by_fragment(
    key: str, index: Index, stream: Stream, decide: _Decision, options: PassOptions
) -> npt.NDArray[np.uint8]:
    """The bitmap of a source, which is kept on disk where its files can be told apart."""
    # Footers are looked at only where the bitmap is not cached.
    possible = _Once(lambda: _possible(decide.step, index))
    threads = max(1, min(options.threads, options.memory_limit // _THREAD_BYTES))
    block_bytes = int(_BLOCK_SHARE * options.memory_limit / threads)

    def compute(fragment: int) -> Bools:
        start, stop = int(index.starts[fragment]), int(index.starts[fragment + 1])
        some = possible()
        if some is not None and not some[fragment]:
            return np.zeros(stop - start, np.bool_)
        keep = np.zeros(stop - start, np.bool_)
        # Draws take no part: a source makes none.
        with closing(FileOrder(decide.step.input, stream, 0, block_bytes=block_bytes)) as order:
            for low, high, block in order.blocks(start, stop, isolate=True):
                found = decide.about(block, high - low)
                if found.error is not None and found.open:
                    raise found.error
                keep[low - start : high - start] = found.keep
        return keep

    return bits(index, key, compute, threads=threads)


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


def _possible(step: Node, index: Index) -> Bools | None:
    """Which fragments can have a row that is kept, as far as the format's statistics know."""
    expression = step.expression
    if expression is None or not isinstance(index.connector, Prunes):
        return None
    fragments = [index.fragment(number) for number in range(len(index.fragments))]
    return index.connector.prune(index.opened, fragments, expression)
