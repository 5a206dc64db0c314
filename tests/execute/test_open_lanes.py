"""Lanes of other ranks are open, and read ahead, as long as this rank's share reaches into them."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from dataflow.execute.agree import Offer
from dataflow.execute.feed import LaneFeed, LanePlace
from dataflow.execute.needs import ALL_ROWS
from dataflow.execute.open_lanes import OpenLanes
from dataflow.execute.outputs import Cursor


class _Ahead:
    """Takes note of what is read ahead."""

    def __init__(self) -> None:
        self.added: list[Any] = []
        self.topped_up = 0

    def add(self, epoch: int, feeds: Sequence[Any]) -> None:
        self.added.extend((epoch, feed.lane) for feed in feeds)

    def top_up(self) -> None:
        self.topped_up += 1


class _Outputs:
    """The outputs of a lane that has any number of rows, and is its own feed."""

    def __init__(self, lane: int, cursor: Cursor) -> None:
        self.lane, self.cursor, self.feed = lane, cursor, self
        self.cancelled = False
        self.error = None

    def offer(self, cap: int, bearable: int | None) -> Offer:
        return Offer(cap, False, self.cursor.row, self.cursor.sub, False)

    def take(self, rows: int) -> list[Any]:
        self.cursor = Cursor(self.cursor.row + rows)
        return [self.lane] * rows

    def passed_bad(self) -> list[Any]:
        return [f"bad row of {self.lane}"]

    def close(self) -> None:
        self.cancelled = True


class _Made:
    """Open lanes 0 and 1 of rank 0, and what was made for them."""

    def __init__(self) -> None:
        self.ahead = _Ahead()
        self.outputs: list[_Outputs] = []
        make: Any = self._make
        ahead: Any = self.ahead
        self.lanes = OpenLanes(make, ahead, 3, range(2))

    def _make(self, lane: int, cursor: Cursor) -> _Outputs:
        self.outputs.append(_Outputs(lane, cursor))
        return self.outputs[-1]


START = [Cursor()] * 4
LATER = [Cursor(10 * lane) for lane in range(4)]


@pytest.fixture
def made() -> _Made:
    return _Made()


def test_own_lanes_are_always_open_and_only_they_are_offered(made: _Made) -> None:
    made.lanes.keep([2], START)
    made.lanes.keep([], START)
    assert [output.lane for output in made.outputs] == [0, 1, 2]
    assert [output.cancelled for output in made.outputs] == [False, False, True]
    assert len(made.lanes.offers(5)) == 2


def test_a_lane_that_is_reached_is_read_ahead_from_its_cursor_on_at_once(made: _Made) -> None:
    made.lanes.keep([], START)
    made.lanes.keep([3], LATER)
    assert made.ahead.added == [(3, 0), (3, 1), (3, 3)]
    assert made.ahead.topped_up == 2
    assert made.outputs[-1].cursor == Cursor(30)


def test_a_lane_that_stays_in_reach_goes_on_and_one_that_comes_back_is_opened_anew(made: _Made) -> None:
    made.lanes.keep([2], START)
    taken: Any = made.lanes.take([1, 0, 2, 5])
    assert taken == {0: [0], 1: [], 2: [2, 2]}
    made.lanes.keep([2], LATER)
    made.lanes.keep([], LATER)
    made.lanes.keep([2], LATER)
    assert [output.lane for output in made.outputs] == [0, 1, 2, 2]
    assert made.outputs[-1].cursor == Cursor(20)


def test_bad_rows_are_reported_by_the_owner_alone(made: _Made) -> None:
    made.lanes.keep([2, 3], START)
    passed: Any = made.lanes.passed_bad()
    assert passed == ["bad row of 0", "bad row of 1"]


def test_closing_lets_go_of_every_lane(made: _Made) -> None:
    made.lanes.keep([2], START)
    made.lanes.close()
    made.lanes.close()
    assert all(output.cancelled for output in made.outputs)


def test_a_lane_that_was_let_go_has_nothing_to_be_read_ahead() -> None:
    window = SimpleNamespace(start=0, stop=8, rows=8, pass_number=0)
    order: Any = SimpleNamespace(windows=lambda lane, row: iter([window, window]))
    # Starting a window would need a bench.
    bench: Any = None
    feed = LaneFeed(bench, order, LanePlace(0, 0, 0), ALL_ROWS, 1)
    feed.cancel()
    assert (feed.next_step, feed.next_rows) == (None, 0)
    assert feed.next_block() is None
