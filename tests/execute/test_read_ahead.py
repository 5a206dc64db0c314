"""Which lane starts its next window: the one that a step needs first, as long as memory allows."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from dataflow.execute.budget import Pace
from dataflow.execute.read_ahead import ReadAhead

ROW_BYTES = 10


class Feed:
    """A lane whose windows all have so many rows; window k is needed first in step k * `every`."""

    def __init__(self, lane: str, rows: int, windows: int, every: int, started: list[str]) -> None:
        self.lane, self.next_rows, self._left, self._every = lane, rows, windows, every
        self._started, self._number, self.ahead = started, 0, 0

    @property
    def next_step(self) -> int | None:
        return None if self.all_started else self._number * self._every

    @property
    def all_started(self) -> bool:
        return self._number == self._left

    @property
    def ahead_rows(self) -> int:
        return self.ahead * self.next_rows

    @property
    def held_rows(self) -> int:
        return self.ahead_rows

    def start_next(self) -> None:
        self._started.append(f"{self.lane}{self._number}")
        self._number += 1
        self.ahead += 1

    def take(self) -> None:
        self.ahead -= 1


def ahead_of(limit_rows: int, ahead_rows: int, *, leased_bytes: int = 0) -> ReadAhead:
    bench: Any = SimpleNamespace(
        memory=SimpleNamespace(leased_bytes=leased_bytes), arrow=SimpleNamespace(bytes=0)
    )
    pace = Pace(1, 0, ROW_BYTES, limit_rows * ROW_BYTES, ahead_rows * ROW_BYTES)
    return ReadAhead(bench, pace)


def added(ahead: ReadAhead, *feeds: Feed, epoch: int = 0) -> None:
    lanes: Any = feeds
    ahead.add(epoch, lanes)
    ahead.top_up()


def test_windows_start_in_the_order_in_which_steps_need_them() -> None:
    started: list[str] = []
    added(ahead_of(1_000, 1_000), Feed("a", 4, 3, 2, started), Feed("b", 4, 3, 1, started))
    assert started == ["a0", "b0", "b1", "a1", "b2", "a2"]


def test_the_lanes_of_a_later_epoch_come_behind_all_of_an_earlier_one() -> None:
    started: list[str] = []
    ahead = ahead_of(1_000, 1_000)
    lanes: Any = [Feed("late ", 4, 1, 1, started)]
    ahead.add(1, lanes)
    added(ahead, Feed("early ", 4, 2, 9, started))
    assert started == ["early 0", "early 1", "late 0"]
    assert ahead.exhausted


def test_no_window_starts_that_does_not_fit_in_memory() -> None:
    started: list[str] = []
    feed = Feed("a", 4, 9, 1, started)
    ahead = ahead_of(11, 1_000)
    added(ahead, feed)
    assert started == ["a0", "a1"]
    feed.take()
    ahead.top_up()
    assert started == ["a0", "a1", "a2"]


def test_memory_that_batches_still_show_counts() -> None:
    started: list[str] = []
    added(ahead_of(11, 1_000, leased_bytes=8 * ROW_BYTES), Feed("a", 4, 9, 1, started))
    assert started == []


def test_two_windows_are_worth_reading_ahead_and_more_as_far_as_asked_for() -> None:
    started: list[str] = []
    added(ahead_of(1_000, 0), Feed("a", 4, 9, 1, started))
    assert started == ["a0", "a1"]
    more: list[str] = []
    added(ahead_of(1_000, 13), Feed("a", 4, 9, 1, more))
    assert more == ["a0", "a1", "a2", "a3"]
