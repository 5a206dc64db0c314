"""Rows of lanes side by side: what one rank takes of consecutive steps becomes batches.

With one lane a batch is a view of its window's memory. With several, one copy a lane and column fills the
batches of the whole run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from connectors.arrow_types import Arrow
from dataflow.execute.buffers import BufferPool
from dataflow.execute.segment import Segment
from dataflow.graph.block import BadSample, Block, Column, concat_blocks, joined, memory_axes

__all__ = ["HostBatch", "LaneRows", "assemble", "padded"]

Int64s = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class HostBatch:
    """One rank's rows of one step in host memory.

    `columns`: NumPy (rows, *shape) or Arrow, as in a block. `ids` is int64 (rows,) or (rows, k). `valid` is bool
    (rows,), None where all are; `replaced` is int64 (rows,), the id of the row that stands in for a bad one, else
    -1; None where none was. `owned` says that dense columns may be written to.
    """

    columns: dict[str, Column]
    ids: Int64s
    owned: bool
    valid: Bools | None = None
    replaced: Int64s | None = None
    bad: tuple[BadSample, ...] = ()

    @property
    def rows(self) -> int:
        return len(self.ids)

    def with_bad(self, bad: Sequence[BadSample]) -> HostBatch:
        """The same rows, with the bad ones that were left out in front of or among them."""
        return replace(self, bad=tuple(bad))


@dataclass(frozen=True, slots=True)
class LaneRows:
    """What one lane gives to each step of a run: `count` rows a step, in `segments`, one behind the other."""

    count: int
    segments: Sequence[Segment]

    def followed_by(self, behind: LaneRows) -> LaneRows:
        """These steps and those that come next; rows that lie together in a block stay together."""
        segments = list(self.segments)
        for segment in behind.segments:
            last = segments[-1]
            if segment.block is last.block and segment.start == last.stop:
                segments[-1] = replace(last, stop=segment.stop)
            else:
                segments.append(segment)
        return LaneRows(self.count, segments)


def assemble(lanes: Sequence[LaneRows], steps: int, memory: BufferPool) -> list[HostBatch]:
    """The batches of `steps` consecutive steps to which each lane gives the same number of rows every time."""
    if len(lanes) == 1:
        return _views(lanes[0], steps)
    rows = sum(lane.count for lane in lanes)
    names = list(lanes[0].segments[0].block.columns)
    blocks = [segment.block for lane in lanes for segment in lane.segments]
    columns: dict[str, Column] = {}
    for name in names:
        if all(isinstance(block.columns[name], np.ndarray) for block in blocks):
            columns[name] = _side_by_side(lanes, name, steps, rows, memory)
        else:
            columns[name] = _interleaved(lanes, name, steps, rows)
    sample = blocks[0].ids
    ids = np.empty((steps, rows, *sample.shape[1:]), np.int64)
    at = 0
    for lane in lanes:
        parts = [segment.block.ids[segment.start : segment.stop] for segment in lane.segments]
        ids[:, at : at + lane.count] = np.concatenate(parts).reshape(steps, lane.count, *sample.shape[1:])
        at += lane.count
    return [
        HostBatch(
            {name: _step(column, step, rows) for name, column in columns.items()}, ids[step], owned=True
        )
        for step in range(steps)
    ]


def _step(column: Column, step: int, rows: int) -> Column:
    return column[step] if isinstance(column, np.ndarray) else column.slice(step * rows, rows)


def _views(lane: LaneRows, steps: int) -> list[HostBatch]:
    """One lane: slices of blocks; a batch across two blocks is copied."""
    batches: list[HostBatch] = []
    segments = iter(lane.segments)
    segment = next(segments)
    at = segment.start
    for _ in range(steps):
        left, parts = lane.count, []
        while left:
            if at == segment.stop:
                segment = next(segments)
                at = segment.start
            stop = min(segment.stop, at + left)
            parts.append(
                segment.block if (at, stop) == (0, segment.block.rows) else segment.block.slice(at, stop)
            )
            left -= stop - at
            at = stop
        block = concat_blocks(parts)
        batches.append(HostBatch(dict(block.columns), block.ids, owned=block.owned))
    return batches


def _side_by_side(
    lanes: Sequence[LaneRows], name: str, steps: int, rows: int, memory: BufferPool
) -> npt.NDArray[np.generic]:
    first = lanes[0].segments[0].block.columns[name]
    assert isinstance(first, np.ndarray)
    axes = memory_axes(first)
    whole = memory.empty((steps, rows, *(first.shape[axis] for axis in axes[1:])), first.dtype)
    out = whole.transpose(0, *(np.argsort(axes) + 1))
    at = 0
    for lane in lanes:
        target = out[:, at : at + lane.count]
        done = 0
        for segment in lane.segments:
            _fill(target, done, segment, name)
            done += segment.stop - segment.start
        at += lane.count
    return out


def _rows(segment: Segment, name: str) -> Column:
    """A column's rows of a segment."""
    return segment.block.columns[name][segment.start : segment.stop]


def _fill(target: npt.NDArray[np.generic], done: int, segment: Segment, name: str) -> None:
    """Write a segment's rows to rows `done` and on of `target` (steps, count, *shape), counted through the steps."""
    source = _rows(segment, name)
    count = target.shape[1]
    step, inside = divmod(done, count)
    if inside:
        head = min(count - inside, len(source))
        target[step, inside : inside + head] = source[:head]
        source, step = source[head:], step + 1
    whole = len(source) // count
    if whole:
        target[step : step + whole] = source[: whole * count].reshape(whole, count, *source.shape[1:])
    if len(source) > whole * count:
        target[step + whole, : len(source) - whole * count] = source[whole * count :]


def _interleaved(lanes: Sequence[LaneRows], name: str, steps: int, rows: int) -> Arrow:
    """One gather for the run: the lanes' rows one lane behind the other, then in the order of the steps."""
    parts = [_rows(segment, name) for lane in lanes for segment in lane.segments]
    index = np.empty((steps, rows), np.int64)
    at = 0
    for lane in lanes:
        index[:, at : at + lane.count] = (np.arange(steps * lane.count) + at * steps).reshape(
            steps, lane.count
        )
        at += lane.count
    whole: Arrow = joined(parts)
    return whole.take(pa.array(index.ravel()))


def padded(batch: HostBatch, slots: Int64s, valid: Bools) -> HostBatch:
    """The batch in which row `slots[j]` of `batch` fills slot j."""
    block = Block(batch.columns, batch.ids, np.arange(batch.rows)).take(slots)
    return HostBatch(dict(block.columns), block.ids, owned=True, valid=valid)
