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
    not move. `note` is told of each bad row. Every block gets a column `__replaced_by__`: the id of the row that
    stepped in, else -1.
    """

    def __init__(self, bench: Bench, note: Callable[[int, Turn, BadSample], None]) -> None:
        self._bench, self._note = bench, note

    def __call__(self, block: Block, job: WindowJob) -> Block:
        marked = _marked(block, np.full(block.rows, -1, np.int64))
        if not block.bad:
            return marked
        window = job.window.resolve()
        for bad in block.bad:
            # Of a zip, a row is delivered under the id of its first input, whichever was bad.
            self._note(self._first_id(window, bad.origin), job.turn, bad)
        # A row that failed in several inputs of a zip is replaced once.
        rows = {bad.origin: bad for bad in block.bad}
        mended = [self._replacement(bad, job, window) for bad in rows.values()]
        whole = concat_blocks([marked, *mended])
        ordered = whole.take(np.argsort(whole.origin, kind="stable"))
        return Block(ordered.columns, ordered.ids, ordered.origin, owned=True, bad=block.bad)

    def _first_id(self, window: Window, row: int) -> int:
        return int(ids(self._bench.stream, _single(window, row)).flat[0])

    def _replacement(self, bad: BadSample, job: WindowJob, window: Window) -> Block:
        key = key_of(self._bench.seed, job.turn, "replace")
        for candidate in range(CANDIDATES):
            word = int(draws(key, np.array([bad.id]), 1, candidate)[0, 0])
            row = word * window.rows >> 32
            if row == bad.origin:
                continue
            stepping_in = _single(window, row)
            found = run_window(
                self._bench.program, self._bench.stream, stepping_in, self._bench.turned(job.turn),
                as_ids=ids(self._bench.stream, _single(window, bad.origin)).ravel(),
            )  # fmt: skip
            if found.rows and not found.bad:
                by = np.full(found.rows, self._first_id(window, row), np.int64)
                origin = np.full(found.rows, bad.origin)
                return _marked(Block(found.columns, found.ids, origin, owned=True), by)
        error = DataError(
            f"sample {bad.id >> 40}:{bad.id & (1 << 40) - 1} is bad, and so are {CANDIDATES} rows of its window "
            f"that were to take its place. Its own error: {bad.error}",
            hint="look at the quarantine file: most of this part of the data is bad",
        )
        raise self._bench.ends_with(BadSample(bad.origin, bad.id, bad.operator, error)) from bad.error


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
