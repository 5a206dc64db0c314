"""Memory that Arrow freed goes back to the system where there is no room for it, and only there."""

from __future__ import annotations

from typing import Any

import pytest

from dataflow.execute import arrow_use
from dataflow.execute.arrow_use import ArrowUse

MB = 1 << 20


class Process:
    """A process whose memory the test sets: `live` of Arrow's, `kept` by its allocator, `other` that is neither."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.live, self.kept, self.other, self.released = 0, 0, 100 * MB, 0
        patch.setattr(arrow_use, "_anonymous_bytes", lambda: self.live + self.kept + self.other)
        patch.setattr(arrow_use, "pa", self)

    def total_allocated_bytes(self) -> int:
        return self.live

    def default_memory_pool(self) -> Process:
        return self

    def release_unused(self) -> None:
        self.released += 1
        self.kept = 0


@pytest.fixture
def process(monkeypatch: pytest.MonkeyPatch) -> Process:
    return Process(monkeypatch)


def test_nothing_is_given_back_while_there_is_room(process: Process) -> None:
    arrow = ArrowUse(0, 64 * MB)
    process.live, process.kept = 30 * MB, 30 * MB
    arrow.took(8 * MB)
    assert process.released == 0


def test_what_was_freed_is_given_back_where_there_is_no_room(process: Process) -> None:
    arrow = ArrowUse(0, 64 * MB)
    process.live, process.kept = 30 * MB, 40 * MB
    arrow.took(8 * MB)
    assert (process.released, process.kept) == (1, 0)


def test_memory_is_looked_at_only_when_enough_was_taken(process: Process) -> None:
    arrow = ArrowUse(0, 64 * MB)
    process.kept = 100 * MB
    arrow.took(MB // 2)
    assert process.released == 0
    arrow.took(MB // 2)
    assert process.released == 1


def test_little_is_not_given_back_again_and_again(process: Process) -> None:
    arrow = ArrowUse(0, 64 * MB)
    process.live = 70 * MB  # more than there is room for, and in use
    for _ in range(10):
        process.kept += 3 * MB
        arrow.took(MB)
    assert 1 <= process.released < 6


def test_memory_that_something_else_took_is_not_held_against_arrow(process: Process) -> None:
    arrow = ArrowUse(0, 64 * MB)
    process.other += 500 * MB
    for _ in range(10):
        process.kept = min(process.kept + 10 * MB, 50 * MB)
        arrow.took(MB)
    assert process.released == 1


def test_memory_that_something_else_gave_back_is_no_more_room(process: Process) -> None:
    arrow = ArrowUse(0, 64 * MB)
    process.other -= 90 * MB
    arrow.took(MB)
    process.kept = 80 * MB
    arrow.took(MB)
    assert process.released == 1


def test_without_bounds_and_where_the_system_tells_nothing_nothing_is_given_back(
    process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    process.kept = 500 * MB
    ArrowUse(0).took(100 * MB)
    monkeypatch.setattr(arrow_use, "_anonymous_bytes", lambda: 0)
    silent = ArrowUse(0, 64 * MB)
    process.live = 500 * MB
    silent.took(100 * MB)
    assert process.released == 0


def test_a_system_that_does_not_tell_is_no_error(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrow_use, "_PAGES", tmp_path / "none")
    assert arrow_use._anonymous_bytes() == 0
