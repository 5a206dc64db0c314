"""What the driver of dealt batches keeps in memory."""

from __future__ import annotations

import weakref
from contextlib import closing
from typing import Any

import numpy as np
import pytest
from recipes import Recipe

from dataflow.execute import dealt
from dataflow.execute.agree import Alone
from dataflow.execute.arrow_use import ArrowUse
from dataflow.execute.assemble import assemble
from dataflow.execute.buffers import BufferPool
from dataflow.execute.dealt import DealtDriver, DealtPlace
from dataflow.execute.last_bad import LastBad
from dataflow.execute.memory import Memory
from dataflow.execute.metrics import Meters
from dataflow.execute.one_by_one import OneByOne
from dataflow.execute.operate import Operators
from dataflow.execute.row_names import place_finder
from dataflow.execute.row_work import RowWork
from dataflow.execute.setup import make_setup
from dataflow.execute.streams import OpenStreams
from dataflow.execute.thread_pools import ThreadPools
from dataflow.execute.workbench import Bench
from dataflow.options import LoaderOptions, World


def test_a_batch_that_was_taken_is_not_held_while_the_next_one_is_made(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pipe = Recipe(parts=((60,),), window=16, batch=4, lanes=2, function="filter").pipe()
    setup = make_setup(pipe.node, 0, LoaderOptions(memory_limit=10**9, threads=1), World())
    plan, pools = setup.plan, ThreadPools(1, remote=False)
    bench = Bench(
        work=RowWork(plan.program, plan.stream, seed=0, tolerant=False), pools=pools,
        operators=Operators(pools, 1 << 20, most_rows=8), arranging=OneByOne(pools.compute),
        streams=OpenStreams(1 << 20, limit=4), memory=Memory(BufferPool(1 << 20), ArrowUse(0)), meters=Meters(),
        last=LastBad(place_finder(plan.indexes)),
    )  # fmt: skip
    taken: list[weakref.ref[Any]] = []
    held: list[int] = []

    def watched(*args: Any) -> Any:
        held.append(sum(array() is not None for array in taken))
        return assemble(*args)

    monkeypatch.setattr(dealt, "assemble", watched)
    driver = DealtDriver(setup, bench, None, Alone())
    with closing(driver.run(0, 0, DealtPlace.start(2))) as running:
        for _ in range(3):
            made = next(running)
            assert isinstance(made.batches, list)
            (array,) = [np.asarray(batch.columns["x"]) for batch in made.batches]
            taken.append(weakref.ref(array))
            del made, array
    pools.close()
    assert held == [0, 0, 0]
