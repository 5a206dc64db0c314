"""How many copies of a column there are while a window is read and brought into order."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dataflow as flow
from dataflow.execute.arrow_use import ArrowUse
from dataflow.execute.buffers import BufferPool
from dataflow.execute.gather import gathers_of
from dataflow.execute.metrics import Meters
from dataflow.execute.setup import make_setup
from dataflow.execute.streams import OpenStreams
from dataflow.options import LoaderOptions, World

ROWS, GROUP_ROWS, TEXT_BYTES = 4_000, 500, 2_000


class Watched(ArrowUse):
    """Notes what Arrow has in use whenever it is told that memory was taken."""

    def __init__(self) -> None:
        super().__init__(0)
        self.in_use: list[int] = []

    def took(self, nbytes: int) -> None:
        self.in_use.append(self.bytes)


@pytest.fixture
def watched(tmp_path: Path) -> Watched:
    """One window of two columns of text, 8 MB each, that was read and brought into order."""
    texts = {name: [name * TEXT_BYTES] * ROWS for name in "ab"}
    pq.write_table(pa.table(texts), tmp_path / "a.parquet", row_group_size=GROUP_ROWS)
    pipe = flow.read(tmp_path / "a.parquet").shuffle(ROWS).batch(10)
    setup = make_setup(pipe.node, 0, LoaderOptions(memory_limit=10**9, threads=1), World())
    window = next(setup.order(0).windows(0, 0)).resolve()
    streams, watched = OpenStreams(1 << 20, limit=1), Watched()
    (gather,) = gathers_of(setup.plan.program, setup.plan.stream, window, None, BufferPool(0), watched)
    for number in range(len(gather.spans)):
        gather.read_span(number, streams, Meters())
    block = gather.block()
    streams.close()
    assert sorted(block.columns) == ["a", "b"]
    assert np.all(np.diff(np.sort(block.ids)) == 1)
    return watched


def test_the_pieces_of_a_column_are_let_go_of_before_it_is_brought_into_order(watched: Watched) -> None:
    column = ROWS * TEXT_BYTES
    read, joined = watched.in_use[:-2], watched.in_use[-2:]
    assert len(read) >= ROWS // GROUP_ROWS
    # Behind each joining there are as many columns as were read: the pieces have gone.
    assert max(joined) < 2.5 * column
    assert max(read) < 2.5 * column
