"""What an operator writes into memory that it is given is the batch: nothing is copied behind it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest
from recipes import fragments

import dataflow as flow
from dataflow.execute.buffers import BufferPool
from dataflow.execute.due import Due
from dataflow.execute.operate import RangeRun
from dataflow.execute.slots import Slots
from dataflow.graph.block import Block, joined
from dataflow.graph.draw import Draw
from dataflow.graph.node import Node, Traits

WIDTH = 20_000  # one row is larger than what NumPy keeps itself
ROWS = 60


@dataclass(frozen=True, kw_only=True, eq=False)
class _Widen(Node):
    """`wide` has the value of `x` WIDTH times; `filled` notes where it was written."""

    kind: ClassVar[str] = "widen"
    filled: list[int] = field(default_factory=list)

    @property
    def traits(self) -> Traits:
        wide = frozenset({"wide"})
        return Traits(kernel=True, reads=frozenset({"x"}), writes=wide, fills=wide)

    def infer(self, schemas: Sequence[pa.Schema | None]) -> pa.Schema | None:
        return schemas[0] and schemas[0].append(pa.field("wide", pa.list_(pa.int64(), WIDTH)))

    def apply(self, block: Block, draw: Draw) -> Block:
        return self.fill(block, draw, {"wide": np.empty((block.rows, WIDTH), np.int64)})

    def fill(self, block: Block, draw: Draw, into: Mapping[str, npt.NDArray[Any]]) -> Block:
        into["wide"][:] = block.columns["x"][:, None]
        self.filled.append(into["wide"].ctypes.data)
        return block.with_columns({**block.columns, "wide": into["wide"]}, owned=True)


def _batches(pipe: flow.Pipeline, threads: int, **more: Any) -> list[npt.NDArray[Any]]:
    with pipe.loader(output="numpy", threads=threads, **more) as loader:
        return [batch["wide"] for batch in loader]


@pytest.mark.parametrize("threads", [1, 3])
def test_batches_are_the_memory_that_the_operator_wrote(threads: int) -> None:
    step = _Widen()
    batches = _batches(fragments([ROWS]).then(step).batch(12), threads)
    assert [batch[:, 0].tolist() for batch in batches] == np.arange(ROWS).reshape(-1, 12).tolist()
    assert {batch.ctypes.data for batch in batches} <= set(step.filled)


@pytest.mark.parametrize("pipe", [
    fragments([7, 30, 23]).shuffle(16).seed(2).then(_Widen()).batch(9, remainder="keep"),
    fragments([7, 30, 23]).shuffle(16).seed(2).then(_Widen()).batch(global_size=12, lanes=3),
    fragments([7, 30, 23]).filter(lambda row: row["x"] % 3 != 1).then(_Widen()).batch(8, remainder="pad"),
])  # fmt: skip
def test_batches_are_right_where_rows_do_not_lie_side_by_side(pipe: flow.Pipeline) -> None:
    with pipe.loader(output="numpy", threads=3) as loader:
        for batch in loader:
            assert (batch["wide"] == batch["x"][:, None]).all()


def test_rows_of_one_batch_get_slots_side_by_side_however_they_are_asked_for() -> None:
    slots = Slots(BufferPool(1 << 20), {"x": pa.list_(pa.int64(), 3)}, Due(0, 5, 8), 2, 20)
    # Row r of the window is row 5 + r of the lane: batches are rows 3 to 11 and 11 to 19 of the window.
    second = slots.slot(7, 11)["x"]
    first = slots.slot(3, 7)["x"]
    assert second.ctypes.data == first.ctypes.data + first.nbytes
    assert slots.slot(2, 3)["x"].shape == (1, 3), "rows in front of the first whole batch"
    assert slots.slot(19, 20)["x"].shape == (1, 3), "and those behind the last one"


def test_ranges_that_are_written_into_a_batch_have_rows_enough_and_none_of_the_next_one() -> None:
    def ranges(*, by_batch: bool) -> list[tuple[int, int]]:
        run = RangeRun(lambda *_: _none(), Due(0, 5, 40), 0, 60, 1, by_batch=by_batch)
        return [run.cut(2, 16) for _ in range(4)]

    assert ranges(by_batch=True) == [(0, 16), (16, 32), (32, 35), (35, 51)]
    assert ranges(by_batch=False) == [(0, 2), (2, 4), (4, 6), (6, 8)]


def _none() -> Block:
    raise AssertionError("no range is run")


def test_rows_with_channels_last_in_memory_are_one_view_as_well() -> None:
    kind = pa.fixed_shape_tensor(pa.float32(), [64, 64, 3], permutation=[2, 0, 1])
    slots = Slots(BufferPool(1 << 22), {"x": kind}, Due(0, 0, 8), 0, 8)
    parts = [slots.slot(0, 3)["x"], slots.slot(3, 8)["x"]]
    for number, part in enumerate(parts):
        part[...] = number
    whole = joined(parts, in_place=True)
    assert whole.shape == (8, 3, 64, 64)
    assert np.shares_memory(whole, parts[0])
    assert np.shares_memory(whole, parts[1])
    assert whole.strides == parts[0].strides
    assert whole[:, 2, 63, 63].tolist() == [0] * 3 + [1] * 5
