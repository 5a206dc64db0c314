"""Bad rows replaced: another row of the same window in their place, drawn by sample id."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from dataflow.errors import DataError, InternalError
from dataflow.execute.job import WindowJob
from dataflow.execute.sample import run_window
from dataflow.execute.workbench import Bench
from dataflow.graph.block import BadSample, Block, concat_blocks
from dataflow.graph.draw import Turn
from dataflow.ops.shuffle import output_order
from dataflow.order.philox import draws, key_of
from dataflow.order.windows import Span, Window, ids
from dataflow.wording import text_of

__all__ = ["CANDIDATES", "REPLACED_BY", "Mend", "Replacer"]

CANDIDATES = 16
REPLACED_BY = "__replaced_by__"

Int64s = npt.NDArray[np.int64]
Mend = Callable[[Block, WindowJob], Block]


class Replacer:
    """Fills the places of bad rows. Candidate j is a draw keyed by (sample id, j) among the rows of the window.

    The row that steps in goes through the operators under the bad row's id, so that augmentation and order do
    not move. Of a row that became several it takes the place of all, also where one of them was bad. `note` is told
    of each bad row. Every block gets a column `__replaced_by__`: the id of the row that stepped in, else -1. A row
    for which all candidates are bad stays bad, and ends the block.
    """

    def __init__(self, bench: Bench, note: Callable[[int, Turn, BadSample], None]) -> None:
        self._bench, self._note = bench, note

    def __call__(self, block: Block, job: WindowJob) -> Block:
        marked = _marked(block, np.full(block.rows, -1, np.int64))
        if not block.bad:
            return marked
        window = job.window.resolve()
        if self._bench.work.program.chunk is not None:
            return self._mended(marked, job, window)
        # What came of a window has been permuted: its rows are known by their ids alone.
        known = ids(self._bench.work.stream, window).reshape(window.rows, -1)
        mended = self._mended(_with_origins(marked, known), job, window)
        return _permuted(mended, self._bench.work.seed, job.turn)

    def _mended(self, block: Block, job: WindowJob, window: Window) -> Block:
        """The block with other rows in the place of its bad ones, up to the first that must stay bad."""
        # Once for all that a row became; of a zip, once for each input in which it is bad.
        bad_rows = {(bad.origin, bad.id): bad for bad in reversed(block.bad)}
        for (row, _), bad in sorted(bad_rows.items()):
            # Of a zip, a row is delivered under the id of its first input, whichever was bad.
            self._note(self._first_id(window, row), job.turn, bad)
        rows = {row: bad for (row, _), bad in sorted(bad_rows.items(), reverse=True)}
        good = np.flatnonzero(~np.isin(block.origin, list(rows)))
        made, left = [replace(block.take(good), bad=())], tuple[BadSample, ...]()
        for row, bad in sorted(rows.items()):
            found = self._replacement(row, bad, job, window)
            if isinstance(found, BadSample):
                left = (found,)
                break
            made.append(found)
        whole = concat_blocks(made)
        return replace(whole.take(np.argsort(whole.origin, kind="stable")), bad=left)

    def _first_id(self, window: Window, row: int) -> int:
        return int(ids(self._bench.work.stream, _single(window, row)).flat[0])

    def _replacement(self, bad_row: int, bad: BadSample, job: WindowJob, window: Window) -> Block | BadSample:
        """The outputs of the row that steps in; or the bad row again, with the error that ends the run."""
        key = key_of(self._bench.work.seed, job.turn, "replace")
        as_ids = ids(self._bench.work.stream, _single(window, bad_row)).ravel()
        tried = {bad_row}  # what a row gives once it gives again
        for candidate in range(CANDIDATES):
            word = int(draws(key, np.array([bad.id]), 1, candidate)[0, 0])
            row = word * window.rows >> 32
            if row in tried:
                continue
            tried.add(row)
            found = run_window(
                self._bench.work.program, self._bench.work.stream, _single(window, row), self._bench.turned(job.turn),
                as_ids=as_ids,
            )  # fmt: skip
            if found.rows and not found.bad:
                by = np.full(found.rows, self._first_id(window, row), np.int64)
                return _marked(replace(found, origin=np.full(found.rows, bad_row), owned=True), by)
        return BadSample(bad_row, bad.id, bad.operator, _irreplaceable(bad, len(tried) - 1))


def _irreplaceable(bad: BadSample, tried: int) -> DataError:
    """The error of a bad row in whose place none of the `tried` other rows of its window can stand."""
    if tried:
        others = f"none of the rows of its window that were tried ({tried}) can take its place"
        hint = "look at the quarantine file: most of this part of the data is bad"
    else:
        others = "no other row of its window was there to take its place"
        hint = "give shuffle(...) a larger window, or let the loader skip such rows with on_error='skip'"
    sample = f"{bad.id >> 40}:{bad.id & (1 << 40) - 1}"
    error = DataError(f"sample {sample} is bad, and {others}. Its own error: {text_of(bad.error)}", hint=hint)
    error.__cause__ = bad.error
    return error


def _with_origins(block: Block, known: Int64s) -> Block:
    """A block of permuted outputs and its bad rows, with the rows of the window that they came of as origins.

    `known` are the ids of the window's rows, int64 (rows, inputs).
    """
    first = block.ids if block.ids.ndim == 1 else block.ids[:, 0]
    came_of = _rows_of(known, np.array([bad.id for bad in block.bad]))
    bad = tuple(replace(sample, origin=row) for sample, row in zip(block.bad, came_of.tolist(), strict=True))
    return replace(block, origin=_rows_of(known[:, :1], first), bad=bad)


def _rows_of(known: Int64s, wanted: Int64s) -> Int64s:
    """The rows of a window that have these ids, one for each."""
    flat = known.ravel()
    order = np.argsort(flat, kind="stable")
    rows: Int64s = order[np.searchsorted(flat, wanted, sorter=order)] // known.shape[1]
    return rows


def _permuted(block: Block, seed: int, turn: Turn) -> Block:
    """A block of outputs by origin in the order in which a shuffle of its window puts them."""
    if not block.rows:
        return block
    flat = block.ids.reshape(block.rows, -1)[:, : block.permuted_by]
    # What one output became behind the shuffle stays together.
    places = np.column_stack([block.origin, flat[:, 1:]])
    _, heads, output = np.unique(places, axis=0, return_index=True, return_inverse=True)
    rank = np.argsort(output_order(flat[heads], seed, turn))
    placed = block.take(np.argsort(rank[output], kind="stable"))
    return replace(placed, origin=np.zeros_like(block.origin))


def _marked(block: Block, by: npt.NDArray[np.int64]) -> Block:
    return replace(block, columns={**block.columns, REPLACED_BY: by})


def _single(window: Window, row: int) -> Window:
    """The window that has only row `row`, in delivery order, of another one."""
    place = row if window.order is None else int(window.order[row])
    positions = None if window.positions is None else window.positions[place : place + 1]
    left = place
    for span in window.spans:
        if left < span.wanted:
            source_row = span.lo + left if span.rows is None else int(span.rows[left])
            one = Span(span.leaf, span.fragment, source_row, source_row + 1, None)
            return Window(0, 1, (one,), None, positions)
        left -= span.wanted
    raise InternalError(f"a window has no row {row}.")
