"""Room for windows: who waits where it is full, what is cut, and what is far too large."""

from __future__ import annotations

import threading
from concurrent.futures import CancelledError

import pytest

from dataflow.errors import PlanError
from dataflow.execute.room import CutWindow, Room

MB = 1_000_000


def _waits(share_wait: object) -> threading.Thread:
    thread = threading.Thread(target=share_wait, daemon=True)  # type: ignore[arg-type]
    thread.start()
    return thread


def test_a_window_that_nobody_waits_for_waits_until_there_is_room() -> None:
    used = [100 * MB]
    room = Room(10 * MB, in_use=lambda: used[0])
    thread = _waits(room.share(8).wait)
    assert thread.is_alive()
    used[0] = 0
    thread.join(20)
    assert not thread.is_alive()


def test_a_window_that_is_needed_never_waits_and_those_in_front_of_it_do_not_either() -> None:
    room = Room(10 * MB, in_use=lambda: 100 * MB)
    first, second, third = (room.share(8) for _ in range(3))
    waiting = [_waits(share.wait) for share in (first, second, third)]
    second.need()
    for thread in waiting[:2]:
        thread.join(20)
    assert [thread.is_alive() for thread in waiting] == [False, False, True]
    third.release()
    waiting[2].join(20)
    assert not waiting[2].is_alive()


def test_there_must_be_room_for_the_copy_of_a_window_too() -> None:
    room = Room(10 * MB, in_use=lambda: 6 * MB)
    share = room.share(8)
    full = [room.is_full]
    share.took(5 * MB, 4)
    assert [*full, room.is_full] == [False, True]
    share.release()
    assert room.held_bytes == 0


def test_a_window_far_larger_than_the_limit_is_an_error_with_the_figures() -> None:
    share = Room(limit_bytes=100 * MB).share(2_000)
    share.took(90 * MB, 1_000)  # with its copy over the limit, but not far
    with pytest.raises(PlanError, match=r"a window of 2,?000 rows takes 110 MB so far.* is 100 MB") as caught:
        share.took(20 * MB, 500)
    assert "memory_limit" in caught.value.hint
    assert "shuffle(window=...)" in caught.value.hint


def test_windows_that_are_needed_at_once_count_together() -> None:
    room = Room(limit_bytes=100 * MB)
    first, second = room.share(8), room.share(8)
    first.took(90 * MB, 8)
    second.took(50 * MB, 4)
    second.need()
    with pytest.raises(PlanError, match="beside 90 MB of other windows"):
        second.took(10 * MB, 4)


def test_a_window_that_may_end_anywhere_is_cut_by_its_largest_rows() -> None:
    share = Room(limit_bytes=100 * MB, cut_bytes=4 * MB).share(1_000, may_cut=True)
    share.took(1_000, 100)
    with pytest.raises(CutWindow) as caught:
        share.took(5 * MB, 50)
    assert caught.value.row_bytes == 5 * MB / 50


def test_what_nobody_wants_any_more_is_not_read_on() -> None:
    share = Room().share(8)
    share.release()
    with pytest.raises(CancelledError):
        share.took(1, 1)


def test_what_windows_hold_beyond_the_estimate_is_counted_until_they_hold_nothing() -> None:
    room = Room(row_bytes=1_000)
    small, large = room.share(100), room.share(100)
    small.took(60_000, 50)
    assert (room.beyond_bytes, room.row_bytes) == (0, 1_000)
    large.took(60_000, 50)
    large.took(90_000, 50)
    assert (room.beyond_bytes, room.row_bytes) == (50_000, 1_500)
    large.release()
    assert (room.beyond_bytes, room.row_bytes) == (0, 1_500)
    small.release()
    assert room.row_bytes == 1_000
