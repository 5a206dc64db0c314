"""Bad rows that were replaced: noted on one thread while another one looks for those of a batch."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator

import numpy as np
import pytest
from recipes import fragments

from dataflow.execute.assemble import HostBatch
from dataflow.execute.compile import compile_plan
from dataflow.execute.mended import Mended
from dataflow.graph.block import BadSample


@pytest.fixture
def hasty() -> Iterator[None]:
    """Threads that take turns as often as the interpreter can."""
    interval_s = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval_s)


def _bad(sample: int) -> BadSample:
    return BadSample(sample, sample, "map", ValueError("bad"))


def _batch(sample: int) -> HostBatch:
    return HostBatch({}, np.array([sample]), owned=True, replaced=np.array([sample + 1]))


def _mended() -> Mended:
    return Mended(compile_plan(fragments((8,)).node, 0).stream)


@pytest.mark.usefixtures("hasty")
def test_rows_may_be_noted_while_those_of_a_batch_are_looked_for() -> None:
    mended, bad, early, all_of_them = _mended(), _bad(3), range(1, 3000), range(1, 9000)
    for epoch in early:
        mended.note(3, epoch, bad)

    def note_the_rest() -> None:
        for epoch in all_of_them[len(early) :]:
            mended.note(3, epoch, bad)

    noting = threading.Thread(target=note_the_rest)
    noting.start()
    while noting.is_alive():
        # So many are kept that the other thread gets its turn while they are gone through.
        assert mended.found_in(0, _batch(3)) == []
    noting.join()
    assert all(mended.found_in(epoch, _batch(3)) == [bad] for epoch in (1, 3000, 8999))


def test_the_rows_of_earlier_epochs_are_forgotten() -> None:
    mended = _mended()
    for epoch in (0, 1, 2):
        mended.note(3, epoch, _bad(3))
    assert len(mended.found_in(1, _batch(3))) == 1
    assert mended.found_in(0, _batch(3)) == []
    assert len(mended.found_in(2, _batch(3))) == 1
