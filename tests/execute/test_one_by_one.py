"""Tasks one at a time on a pool: in order, and told of its end."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest

from dataflow.execute.one_by_one import OneByOne


def test_one_task_runs_at_a_time_in_the_order_in_which_they_came() -> None:
    running, most = [0], [0]
    order: list[int] = []
    done = threading.Event()

    def task(number: int) -> Callable[[], int]:
        def work() -> int:
            running[0] += 1
            most[0] = max(most[0], running[0])
            order.append(number)
            running[0] -= 1
            return number

        return work

    def ended(future: Future[Any]) -> None:
        if future.result() == 49:
            done.set()

    with ThreadPoolExecutor(4) as pool:
        one_by_one = OneByOne(pool.submit)
        for number in range(50):
            one_by_one.run(task(number), ended)
        assert done.wait(60)
    assert (order, most) == (list(range(50)), [1])


def test_a_task_that_fails_does_not_keep_back_the_next_one() -> None:
    results: list[Future[Any]] = []
    done = threading.Event()
    with ThreadPoolExecutor(1) as pool:
        one_by_one = OneByOne(pool.submit)
        one_by_one.run(lambda: 1 // 0, results.append)
        one_by_one.run(lambda: 7, results.append)
        one_by_one.run(lambda: 8, lambda _: done.set())
        assert done.wait(60)
    assert isinstance(results[0].exception(), ZeroDivisionError)
    assert results[1].result() == 7


@pytest.mark.parametrize("late", [0, 3])
def test_tasks_behind_the_end_of_the_pool_are_cancelled_and_not_forgotten(late: int) -> None:
    pool, gate = ThreadPoolExecutor(1), threading.Event()
    pool.submit(gate.wait)
    ended: list[Future[Any]] = []
    one_by_one = OneByOne(pool.submit)
    for _ in range(4):
        one_by_one.run(lambda: 1, ended.append)
    pool.shutdown(wait=False, cancel_futures=True)
    for _ in range(late):
        one_by_one.run(lambda: 1, ended.append)
    gate.set()
    pool.shutdown()
    assert [future.cancelled() for future in ended] == [True] * (4 + late)


def test_a_pool_that_takes_no_task_gives_its_error_to_one_and_the_others_are_cancelled() -> None:
    pool = ThreadPoolExecutor(1)
    pool.shutdown()
    ended: list[Future[Any]] = []
    one_by_one = OneByOne(pool.submit)
    for _ in range(3):
        one_by_one.run(lambda: 1, ended.append)
    assert isinstance(ended[0].exception(), RuntimeError)
    assert [future.cancelled() for future in ended] == [False, True, True]


def test_a_pool_that_takes_no_task_is_asked_once_and_all_that_wait_are_told() -> None:
    asked: list[Any] = []
    waiting: list[Future[Any]] = []
    told: list[Future[Any]] = []

    def submit(task: Callable[[], Any]) -> Future[Any]:
        asked.append(task)
        if len(asked) > 1:
            raise RuntimeError("it is shut down")
        waiting.append(Future())
        return waiting[0]

    one_by_one = OneByOne(submit)
    for _ in range(5_000):
        one_by_one.run(lambda: None, told.append)
    waiting[0].set_result(None)
    assert len(asked) == 2
    assert len(told) == 5_000
    assert isinstance(told[1].exception(), RuntimeError)
    assert all(future.cancelled() for future in told[2:])
