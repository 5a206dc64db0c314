"""The order of one epoch: for every lane its windows, from any row on, in any order of asking."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dataflow.errors import InternalError
from dataflow.order.borders import Borders
from dataflow.order.lanes import below, borders, pass_of
from dataflow.order.philox import Turn
from dataflow.order.sequence import PassOrder, pass_orders
from dataflow.order.stream import Stream
from dataflow.order.windows import Window

__all__ = ["EpochOrder", "HeldPass", "LaneWindow"]

Int64s = npt.NDArray[np.int64]

# A pass and the one that its faster lanes have begun.
_PASSES_ALIVE = 2


@dataclass(frozen=True, slots=True)
class LaneWindow:
    """A window of a lane, cheap to hold: its rows are worked out by `resolve`, in any thread.

    `start` is the lane's row number (over all passes) of its first row; `pass_number` and `first` (the row
    within the lane's pass) are its place.
    """

    epoch: EpochOrder
    lane: int
    pass_number: int
    first: int
    start: int
    rows: int

    @property
    def stop(self) -> int:
        """The lane's row number behind its last row."""
        return self.start + self.rows

    def resolve(self) -> Window:
        """Spans, order and, of a zip, positions."""
        held = self.epoch.in_pass(self.pass_number)
        start = held.start(self.lane) + self.first
        return held.order.window(self.first, start, start + self.rows)


class HeldPass:
    """One pass as the lanes share it: its order, the lanes' runs, and the window borders asked for."""

    def __init__(self, order: PassOrder, runs: Int64s) -> None:
        self.order = order
        self._runs = runs
        self._borders: dict[int, Borders] = {}

    def start(self, lane: int) -> int:
        """The row of the sequence at which the lane's run begins."""
        return int(self._runs[lane])

    def borders(self, lane: int) -> Borders:
        """The windows of a lane."""
        if lane not in self._borders:
            run = self.start(lane), self.start(lane + 1)
            self._borders[lane] = self.order.borders(*run, lane, len(self._runs) - 1)
        return self._borders[lane]


class EpochOrder:
    """The windows of all lanes of one epoch. Safe to ask from several threads.

    Args:
        stream: what is delivered.
        seed: of the pipeline.
        lanes: how many lanes.
        turn: the epoch; or the turn of a pass, for a source of a mixture `lambda p: [epoch, p]`.
        chunk_rows: rows of a window where the stream has no window of its own (unshuffled, "full"); the order
            does not depend on it.
        endless: go on behind the last pass, as a source of a mixture does.
    """

    def __init__(
        self,
        stream: Stream,
        *,
        seed: int,
        lanes: int,
        turn: int | Callable[[int], Turn],
        chunk_rows: int,
        endless: bool = False,
    ) -> None:
        if lanes < 1 or chunk_rows < 1:
            raise InternalError(f"an epoch order with lanes={lanes}, chunk_rows={chunk_rows}")
        self.stream, self.lanes, self.chunk_rows = stream, lanes, chunk_rows
        self._seed, self._turn, self._endless = seed, turn, endless
        passes = stream.passes
        turn_of = (lambda p: turn * passes + p) if isinstance(turn, int) else turn
        self._make = pass_orders(stream, seed, turn_of, chunk_rows)
        self._held: OrderedDict[int, HeldPass] = OrderedDict()
        self._lock = threading.Lock()

    def in_chunks(self, chunk_rows: int) -> EpochOrder:
        """The same order in windows of other sizes, where the stream has no window of its own."""
        return EpochOrder(
            self.stream, seed=self._seed, lanes=self.lanes, turn=self._turn, chunk_rows=chunk_rows,
            endless=self._endless,
        )  # fmt: skip

    def lane_rows(self, lane: int) -> int:
        """Rows of a lane over all passes of the stream."""
        return below(self.stream.total, lane, self.lanes)

    def windows(self, lane: int, row: int = 0) -> Iterator[LaneWindow]:
        """The windows of a lane from the one on that holds lane row `row`, over all passes."""
        while self.stream.n and (self._endless or row < self.lane_rows(lane)):
            window = self.window_at(lane, row)
            yield window
            row = window.stop

    def window_at(self, lane: int, row: int) -> LaneWindow:
        """The window that holds lane row `row`: logarithmic once the lane has been asked in that pass."""
        if not (0 <= lane < self.lanes and row >= 0 and (self._endless or row < self.lane_rows(lane))):
            raise InternalError(f"lane {lane} of {self.lanes} has no row {row}")
        number, inside = pass_of(row, lane, self.lanes, self.stream.n)
        lane_borders = self.in_pass(number).borders(lane)
        index = lane_borders.find(inside)
        first = lane_borders.first(index)
        rows = lane_borders.first(index + 1) - first
        return LaneWindow(self, lane, number, first, row - inside + first, rows)

    def in_pass(self, number: int) -> HeldPass:
        """The pass of that number, worked out unless it is one of the two asked for last."""
        with self._lock:
            held = self._held.get(number)
            if held is None:
                held = HeldPass(self._make(number), borders(self.stream.n, number, self.lanes))
                self._held[number] = held
            self._held.move_to_end(number)
            while len(self._held) > _PASSES_ALIVE:
                self._held.popitem(last=False)
            return held
