"""The thread that works ahead: what it handed out before an error is delivered, however long it takes."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Generator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import count

import pytest

from dataflow.errors import LoaderClosed
from dataflow.execute.ahead import Ahead
from dataflow.execute.assemble import HostBatch
from dataflow.execute.made import Made


def test_batches_in_the_making_in_front_of_an_error_are_finished_before_the_pools_end() -> None:
    pool, gate, ended = ThreadPoolExecutor(1), threading.Event(), threading.Event()

    def end() -> None:
        ended.set()
        pool.shutdown(cancel_futures=True)

    def driver() -> Generator[Made, None, None]:
        pool.submit(gate.wait)
        for step in range(2):
            future: Future[list[HostBatch]] = pool.submit(list)
            yield Made(0, step, future)
        raise ValueError("bad row")

    ahead = Ahead(driver(), end)
    made = [ahead.get(), ahead.get()]
    with pytest.raises(ValueError, match="bad row"):
        ahead.get()
    assert not ended.is_set()
    gate.set()
    for one in made:
        assert isinstance(one.batches, Future)
        assert one.batches.result() == []
    ahead.join()
    assert ended.is_set()


def test_a_loader_that_is_closed_meanwhile_waits_for_none_of_them() -> None:
    pool, gate, raised = ThreadPoolExecutor(1), threading.Event(), threading.Event()

    def driver() -> Generator[Made, None, None]:
        pool.submit(gate.wait)
        future: Future[list[HostBatch]] = pool.submit(list)
        yield Made(0, 0, future)
        raised.set()
        raise ValueError("bad row")

    ahead = Ahead(driver(), lambda: None)
    made = ahead.get()
    assert raised.wait(60)
    ahead.abandon()
    pool.shutdown(wait=False, cancel_futures=True)
    ahead.join()
    assert isinstance(made.batches, Future)
    assert made.batches.cancelled()
    gate.set()
    pool.shutdown()


class _Batches(list[HostBatch]):
    """A list that can be referred to weakly."""


def test_batches_that_were_taken_are_kept_by_nobody_while_later_ones_are_made() -> None:
    making, go_on = threading.Event(), threading.Event()

    def driver() -> Generator[Made, None, None]:
        future: Future[list[HostBatch]] = Future()
        yield Made(0, 0, future)
        future.set_result(_Batches())
        del future
        making.set()
        go_on.wait(60)

    ahead = Ahead(driver(), lambda: None)
    made = ahead.get()
    assert isinstance(made.batches, Future)
    batches = made.batches.result(60)
    assert isinstance(batches, _Batches)
    gone = weakref.ref(batches)
    assert making.wait(60)
    del made, batches
    assert gone() is None
    go_on.set()
    ahead.join()


def test_a_driver_that_fails_to_close_keeps_nothing_from_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    reported: list[BaseException | None] = []
    monkeypatch.setattr(threading, "excepthook", lambda args: reported.append(args.exc_value))
    broken, ended = OSError("the driver did not close"), threading.Event()

    def driver() -> Generator[Made, None, None]:
        try:
            for step in count():
                yield Made(0, step, [])
        finally:
            raise broken

    ahead = Ahead(driver(), ended.set)
    ahead.get()
    ahead.abandon()
    ahead.join()
    assert ended.is_set()
    assert reported == [broken]
    with pytest.raises(LoaderClosed):
        ahead.get()
