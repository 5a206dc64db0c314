"""The next epoch is read ahead, and nothing is read beyond the last one where it is known."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
from recipes import Row, fragments

import dataflow as flow
from dataflow.errors import PlanError
from dataflow.execute.horizon import Horizon

ROWS = 40
_PATIENCE_S = 60


class _Calls:
    """Counts the rows that a function has seen, and waits until it has seen so many."""

    def __init__(self) -> None:
        self.count = 0
        self._more = threading.Condition()

    def __call__(self) -> None:
        with self._more:
            self.count += 1
            self._more.notify_all()

    def reach(self, count: int) -> bool:
        with self._more:
            return self._more.wait_for(lambda: self.count >= count, _PATIENCE_S)


def _known(calls: _Calls) -> flow.Pipeline:
    def seen(row: Row) -> Row:
        calls()
        return row

    return fragments([8] * 5).map(seen, schema={"x": "int64"}).batch(4)


def _dealt(calls: _Calls) -> flow.Pipeline:
    def seen(row: Row) -> bool:
        calls()
        return True

    return fragments([8] * 5).filter(seen).batch(4)


_PIPES = pytest.mark.parametrize("make", [_known, _dealt])
Make = Callable[[_Calls], flow.Pipeline]


def _loader(make: Make, calls: _Calls, epochs: int | None) -> Any:
    return make(calls).loader(output="numpy", epochs=epochs)


@_PIPES
def test_a_loop_of_one_epoch_reads_nothing_beyond_it(make: Make) -> None:
    calls = _Calls()
    with _loader(make, calls, 1) as loader:
        assert len(list(loader)) == ROWS // 4
    assert calls.count == ROWS


@_PIPES
def test_nothing_is_read_beyond_the_last_epoch_where_it_is_known(make: Make) -> None:
    calls = _Calls()
    with _loader(make, calls, 3) as loader:
        for epoch in range(3):
            assert len(list(loader)) == ROWS // 4
            if epoch < 2:
                assert calls.reach(ROWS * (epoch + 1) + 1), "the next epoch is not read ahead"
    assert calls.count == 3 * ROWS


@_PIPES
def test_where_it_is_not_known_how_many_epochs_there_are_the_next_one_is_read_ahead(make: Make) -> None:
    calls = _Calls()
    with _loader(make, calls, None) as loader:
        assert len(list(loader)) == ROWS // 4
        assert calls.reach(ROWS + 1)


@_PIPES
def test_epochs_that_were_not_expected_are_as_they_would_be(make: Make) -> None:
    calls = _Calls()
    with _loader(make, calls, 1) as loader, _loader(make, calls, None) as other:
        for _ in range(3):
            assert [batch["x"].tolist() for batch in loader] == [batch["x"].tolist() for batch in other]


def test_an_epoch_of_another_setup_is_never_read() -> None:
    horizon = Horizon(0, 9, until=2)
    assert [horizon.reaches(epoch) for epoch in range(4)] == [True, True, False, True]
    horizon.begin(2)
    assert not horizon.reaches(2)


@pytest.mark.parametrize("epochs", [0, -1, 1.5, True, "3"])
def test_epochs_that_are_no_number_of_epochs_are_an_error(epochs: Any) -> None:
    with pytest.raises(PlanError, match="epochs=") as caught:
        fragments([8]).batch(4).loader(epochs=epochs)
    assert "leave it out" in caught.value.hint
