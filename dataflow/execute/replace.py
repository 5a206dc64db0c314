"""Bad rows replaced: another row of the same window in their place, drawn by sample id."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from dataflow.errors import DataError, InternalError
from dataflow.execute.job import Bench, WindowJob
from dataflow.execute.sample import run_window
from dataflow.graph.block import BadSample, Block, concat_blocks
from dataflow.graph.draw import Turn
from dataflow.order.philox import draws, key_of
from dataflow.order.windows import Span, Window, ids

__all__ = ["CANDIDATES", "REPLACED_BY", "Replacer"]

CANDIDATES = 16
REPLACED_BY = "__replaced_by__"


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
        # Once for all that a row became; of a zip, once for each input in which it is bad.
        bad_rows = {(row, bad.id): bad for bad in reversed(block.bad) for row in [self._row_of(bad, window)]}
        for (row, _), bad in sorted(bad_rows.items()):
            # Of a zip, a row is delivered under the id of its first input, whichever was bad.
            self._note(self._first_id(window, row), job.turn, bad)
        rows = {row: bad for (row, _), bad in sorted(bad_rows.items(), reverse=True)}
        good = marked.take(np.flatnonzero(~self._come_of(block, window, list(rows))))
        made, left = [good], tuple[BadSample, ...]()
        for row, bad in sorted(rows.items()):
            found = self._replacement(row, bad, job, window)
            if isinstance(found, BadSample):
                left = (found,)
                break
            made.append(found)
        whole = concat_blocks(made)
        ordered = whole.take(np.argsort(whole.origin, kind="stable"))
        return Block(ordered.columns, ordered.ids, ordered.origin, owned=True, bad=left)

    @property
    def _permuted(self) -> bool:
        """Whether what came of a window has been permuted, so that its rows are known by their ids alone."""
        return self._bench.program.chunk is None

    def _row_of(self, bad: BadSample, window: Window) -> int:
        """The row of the window that a bad one is, or came of."""
        if not self._permuted:
            return bad.origin
        known = ids(self._bench.stream, window).reshape(window.rows, -1)
        return int(np.flatnonzero((known == bad.id).any(axis=1))[0])

    def _come_of(self, block: Block, window: Window, rows: list[int]) -> npt.NDArray[np.bool_]:
        """Which rows of a block came of these rows of the window, bool (rows,)."""
        if not self._permuted:
            return np.isin(block.origin, rows)
        gone = [self._first_id(window, row) for row in rows]
        return np.isin(block.ids if block.ids.ndim == 1 else block.ids[:, 0], gone)

    def _first_id(self, window: Window, row: int) -> int:
        return int(ids(self._bench.stream, _single(window, row)).flat[0])

    def _replacement(self, bad_row: int, bad: BadSample, job: WindowJob, window: Window) -> Block | BadSample:
        """The outputs of the row that steps in; or the bad row again, with the error that ends the run."""
        key = key_of(self._bench.seed, job.turn, "replace")
        for candidate in range(CANDIDATES):
            word = int(draws(key, np.array([bad.id]), 1, candidate)[0, 0])
            row = word * window.rows >> 32
            if row == bad_row:
                continue
            stepping_in = _single(window, row)
            found = run_window(
                self._bench.program, self._bench.stream, stepping_in, self._bench.turned(job.turn),
                as_ids=ids(self._bench.stream, _single(window, bad_row)).ravel(),
            )  # fmt: skip
            if found.rows and not found.bad:
                by = np.full(found.rows, self._first_id(window, row), np.int64)
                origin = np.full(found.rows, bad_row)
                return _marked(Block(found.columns, found.ids, origin, owned=True), by)
        error = DataError(
            f"sample {bad.id >> 40}:{bad.id & (1 << 40) - 1} is bad, and so are {CANDIDATES} rows of its window "
            f"that were to take its place. Its own error: {bad.error}",
            hint="look at the quarantine file: most of this part of the data is bad",
        )
        error.__cause__ = bad.error
        return BadSample(bad_row, bad.id, bad.operator, error)


def _marked(block: Block, by: npt.NDArray[np.int64]) -> Block:
    return Block({**block.columns, REPLACED_BY: by}, block.ids, block.origin, block.owned, block.bad)


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
