"""Which lane starts its next window: the one that a step needs first, as long as memory allows."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from dataflow.execute.budget import Pace
from dataflow.execute.read_ahead import ReadAhead
from dataflow.execute.room import Room

ROW_BYTES = 1 << 20


class Feed:
    """A lane whose windows all have so many rows; window k is needed first in step k * `every`."""

    def __init__(self, lane: str, rows: int, windows: int, every: int, started: list[str]) -> None:
        self.lane, self.next_rows, self.windows, self._every = lane, rows, windows, every
        self._started, self._number, self.ahead = started, 0, 0
        self.epoch, self.goes_on = 0, False

    @property
    def next_step(self) -> int | None:
        return None if self._number == self.windows else self._number * self._every

    @property
    def is_over(self) -> bool:
        return self._number == self.windows and not self.ahead

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


def ahead_of(
    limit_rows: int, ahead_rows: int, *, leased_bytes: int = 0, room: Room | None = None
) -> ReadAhead:
    memory = SimpleNamespace(
        buffers=SimpleNamespace(leased_bytes=leased_bytes),
        arrow=SimpleNamespace(bytes=0),
        room=room or Room(row_bytes=ROW_BYTES),
    )
    bench: Any = SimpleNamespace(memory=memory)
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


def test_rows_that_were_read_and_are_larger_than_estimated_leave_less_room() -> None:
    started: list[str] = []
    room = Room(row_bytes=ROW_BYTES)
    share = room.share(4)
    ahead = ahead_of(20, 1_000, room=room)
    feed = Feed("a", 4, 9, 1, started)
    share.took(12 * ROW_BYTES, 4)
    added(ahead, feed)
    # There is room for 20 rows: 8 is what is held beyond the estimate, 4 is a0, and a1 would take as much as 12.
    assert started == ["a0"]
    share.release()
    ahead.top_up()
    assert started == ["a0", "a1", "a2"]


def test_a_lane_that_begins_again_with_smaller_windows_is_read_ahead_again() -> None:
    started: list[str] = []
    ahead = ahead_of(1_000, 0)
    feed = Feed("a", 4, 1, 1, started)
    added(ahead, feed)
    assert ahead.exhausted
    feed.goes_on, feed.windows = True, 3
    ahead.top_up()
    assert started == ["a0", "a1"]
    assert not feed.goes_on
