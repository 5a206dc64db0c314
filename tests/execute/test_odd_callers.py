"""Who asks a loader for batches in a way that could only wait for ever, or share them out wrongly, is told so."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import dataflow as flow
from dataflow.errors import DataflowError, PlanError


def _rows(count: int = 400) -> flow.Pipeline:
    return flow.from_columns({"x": np.arange(count)})


def test_a_second_thread_that_asks_an_iterator_meanwhile_is_refused() -> None:
    inside, go_on = threading.Event(), threading.Event()

    def held(row: dict[str, Any]) -> dict[str, Any]:
        inside.set()
        go_on.wait(60)
        return row

    with _rows().map(held, schema={"x": "int64"}).batch(8).loader(output="numpy") as loader:
        running = iter(loader)
        taken: list[Any] = []
        first = threading.Thread(target=lambda: taken.append(next(running)))
        first.start()
        assert inside.wait(60)
        with pytest.raises(PlanError, match="another thread") as caught:
            next(running)
        assert "one thread" in caught.value.hint
        go_on.set()
        first.join()
        assert [batch["x"].tolist() for batch in taken] == [list(range(8))]


@pytest.mark.parametrize("way", ["next", "iter"])
def test_a_function_that_iterates_the_loader_that_runs_it_is_an_error(way: str) -> None:
    held: list[Iterator[Any]] = []

    def greedy(row: dict[str, Any]) -> dict[str, Any]:
        next(held[0] if way == "next" else iter(loader))
        return row

    loader = _rows().map(greedy, schema={"x": "int64"}).batch(8).loader(output="numpy")
    with loader:
        held.append(iter(loader))
        with pytest.raises(DataflowError, match="iterates the loader that runs it"):
            next(held[0])
