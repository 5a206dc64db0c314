from __future__ import annotations

import logging
import random
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from connectors.retry import Retry
from connectors.stop import end_waits_at, stop_of_thread
from dataflow.errors import ConnectorError, PlanError

NEVER = threading.Event()


class Time:
    """A clock that moves on when it is waited for; `event` is set behind so many waits."""

    def __init__(self, stops_behind: int = 1000, try_s: float = 0.0) -> None:
        self.time_s, self.waits = 0.0, list[float]()
        self._stops_behind, self._try_s = stops_behind, try_s

    def now(self) -> float:
        self.time_s += self._try_s
        return self.time_s

    def wait(self, seconds: float, stop: threading.Event) -> bool:
        self.waits.append(seconds)
        self.time_s += seconds
        return len(self.waits) >= self._stops_behind


def failing(times: int, error: Callable[[], Exception] = ConnectionResetError) -> Callable[[], int]:
    """A request that fails so many times, and then gives the number of its tries."""
    tries = 0

    def request() -> int:
        nonlocal tries
        tries += 1
        if tries <= times:
            raise error()
        return tries

    return request


def name() -> str:
    return "s3://bucket/a.tar at byte 7"


@pytest.mark.parametrize("times", range(10))
def test_a_request_that_fails_for_the_moment_is_made_until_it_succeeds(times: int) -> None:
    time = Time()
    assert Retry(clock=time).run(failing(times), name, NEVER) == times + 1
    assert len(time.waits) == times


def test_when_all_tries_have_failed_the_error_says_where_how_often_and_what_to_do() -> None:
    time = Time()
    with pytest.raises(
        ConnectorError, match=r"s3://bucket/a\.tar at byte 7 cannot be read: 4 tries in \d s"
    ) as caught:
        Retry(tries=4, clock=time).run(failing(99), name, NEVER)
    assert isinstance(caught.value.__cause__, ConnectionResetError)
    assert "ConnectionResetError" in str(caught.value)
    assert "network" in caught.value.hint
    assert len(time.waits) == 3


def test_no_try_begins_behind_the_limit() -> None:
    time = Time()
    with pytest.raises(ConnectorError, match="tries in"):
        Retry(tries=10**6, limit_s=100, clock=time).run(failing(10**9), name, NEVER)
    assert 80 <= time.time_s <= 100


def test_a_first_try_that_hangs_for_long_is_followed_by_another() -> None:
    slow = Time(try_s=300)
    with pytest.raises(ConnectorError, match=r"2 tries in 6\d\d s"):
        Retry(clock=slow).run(failing(10**9), name, NEVER)


def test_waits_double_up_to_the_longest_and_each_is_shortened_by_chance() -> None:
    retry = Retry(first_wait_s=1, longest_wait_s=8)
    for failures, longest in enumerate([1, 2, 4, 8, 8, 8], start=1):
        waits = [retry.wait_s(failures) for _ in range(100)]
        assert longest / 2 <= min(waits) < max(waits) <= longest
    assert retry.wait_s(10**6) <= 8


def test_chance_is_not_taken_from_the_generators_of_the_program() -> None:
    before = random.getstate(), repr(np.random.get_state())
    Retry(clock=Time()).run(failing(5), name, NEVER)
    assert (random.getstate(), repr(np.random.get_state())) == before


@pytest.mark.parametrize("error", [FileNotFoundError, PermissionError, ValueError, KeyboardInterrupt])
def test_a_permanent_failure_is_passed_on_after_one_try(error: Any) -> None:
    time, request = Time(), failing(1, error)
    with pytest.raises(error):
        Retry(clock=time).run(request, name, NEVER)
    assert time.waits == []
    assert request() == 2


def test_each_further_try_is_one_warning_that_says_where(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        Retry(clock=Time()).run(failing(3, lambda: TimeoutError("too long")), name, NEVER)
    assert [record.levelname for record in caplog.records] == ["WARNING"] * 3
    for number, record in enumerate(caplog.records, start=2):
        assert "s3://bucket/a.tar at byte 7" in record.getMessage()
        assert "TimeoutError: too long" in record.getMessage()
        assert f"try {number} of 10" in record.getMessage()


def test_nothing_is_asked_again_once_nobody_wants_it() -> None:
    time, request = Time(stops_behind=2), failing(99)
    with pytest.raises(ConnectorError, match="at byte 7") as caught:
        Retry(clock=time).run(request, name, NEVER)
    assert "closed" in caught.value.hint
    assert isinstance(caught.value.__cause__, ConnectionResetError)
    assert len(time.waits) == 2


def test_nothing_is_asked_for_the_first_time_once_nobody_wants_it() -> None:
    stop, asked = threading.Event(), list[int]()
    stop.set()
    with pytest.raises(ConnectorError, match="at byte 7 was not read") as caught:
        Retry(clock=Time()).run(lambda: asked.append(1), name, stop)
    assert "closed" in caught.value.hint
    assert asked == []


def test_the_systems_clock_does_not_wait_for_what_has_been_stopped() -> None:
    stop = threading.Event()

    def closed_meanwhile() -> None:
        stop.set()
        raise ConnectionResetError

    with pytest.raises(ConnectorError, match="ConnectionResetError"):
        Retry(first_wait_s=10**6, longest_wait_s=10**6, limit_s=10**9).run(closed_meanwhile, name, stop)


def test_a_thread_has_the_event_that_it_was_given_and_no_other_one() -> None:
    found: list[threading.Event] = []
    mine = threading.Event()

    def work() -> None:
        end_waits_at(mine)
        found.append(stop_of_thread())

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found == [mine]
    assert stop_of_thread() is not mine
    assert not stop_of_thread().is_set()


@pytest.mark.parametrize(
    ("options", "hint"),
    [
        ({"tries": 0}, "1 to try once"),
        ({"first_wait_s": -1}, "seconds"),
        ({"longest_wait_s": -1}, "seconds"),
        ({"limit_s": -1}, "seconds"),
    ],
)
def test_a_wrong_option_fails_at_once(options: dict[str, Any], hint: str) -> None:
    with pytest.raises(PlanError) as caught:
        Retry(**options)
    assert hint in caught.value.hint
