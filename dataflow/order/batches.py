"""Batches: which rows of which lane a rank takes at a step, where the lanes' lengths are known."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from dataflow.errors import InternalError, PlanError
from dataflow.order.deal import Deal, share
from dataflow.wording import counted

__all__ = [
    "ENDLESS",
    "Batching",
    "Part",
    "RankShare",
    "Remainder",
    "RunPart",
    "Steps",
    "check_batch",
    "check_length",
    "split",
]

Bools = npt.NDArray[np.bool_]
Int64s = npt.NDArray[np.int64]
Remainder = Literal["drop", "pad", "keep"]

# Rows of an endless lane: more than are ever read, few enough that 8,192 lanes add up to an int64.
ENDLESS = 1 << 50


@dataclass(frozen=True, kw_only=True)
class Batching:
    """How global batches are made: `batch` rows of `lanes` lanes, and what becomes of the last one."""

    batch: int
    lanes: int
    remainder: Remainder = "drop"

    def __post_init__(self) -> None:
        if self.remainder not in ("drop", "pad", "keep"):
            raise PlanError(f"remainder={self.remainder!r} is unknown.", hint="use 'drop', 'pad' or 'keep'")
        if self.lanes < 1:
            raise PlanError(f"lanes={self.lanes} is below 1.", hint="use 1 or more lanes")
        check_batch(self.batch, self.lanes, 1)


class Part(NamedTuple):
    """`rows` rows of one lane from its row `start` on."""

    lane: int
    start: int
    rows: int


class RankShare(NamedTuple):
    """What one rank takes of one global batch: the parts in lane order, one behind the other.

    In a padded batch row `slots[j]` (int64) of the parts fills slot j, and `valid[j]` is whether it does so
    for the first time in the global batch; both are None where every row fills one slot.
    """

    parts: tuple[Part, ...]
    slots: Int64s | None
    valid: Bools | None


class RunPart(NamedTuple):
    """A lane's part in a run of regular steps: step i of it takes `rows` rows from first + i * stride on."""

    lane: int
    first: int
    rows: int
    stride: int


def split(
    counts: Sequence[int] | Int64s, starts: Sequence[int] | Int64s, size: int, rank: int, world: int
) -> RankShare:
    """A rank's share of a batch for which lane l gives `counts[l]` rows from its row `starts[l]` on.

    `size` is the slots of the batch: the sum of `counts`, or B where it is padded; slot j of B then holds row
    j * m div B of the m rows sorted by lane.
    """
    ends = np.cumsum(np.asarray(counts, np.int64))
    rows = int(ends[-1])
    start, stop = share(size, rank, world)
    if start == stop or not rows:
        return RankShare((), None, None)
    if rows == size:
        return RankShare(_parts(ends, starts, start, stop), None, None)
    slot = np.arange(start, stop)
    row = slot * rows // size
    first = int(row[0])
    valid = slot == -(-row * size // rows)
    return RankShare(_parts(ends, starts, first, int(row[-1]) + 1), row - first, valid)


def _parts(ends: Int64s, starts: Sequence[int] | Int64s, start: int, stop: int) -> tuple[Part, ...]:
    """Rows start..stop of the lanes' rows one behind the other, of which lane l's end at `ends[l]`."""
    parts = []
    first = int(np.searchsorted(ends, start, "right"))
    at = int(ends[first - 1]) if first else 0
    for lane in range(first, len(ends)):
        if at >= stop:
            break
        end = int(ends[lane])
        low, high = max(start, at), min(stop, end)
        if low < high:
            parts.append(Part(lane, int(starts[lane]) + low - at, high - low))
        at = end
    return tuple(parts)


class Steps:
    """The steps of one epoch over lanes of known lengths (None: endless lanes)."""

    def __init__(self, batching: Batching, lengths: Sequence[int] | Int64s | None) -> None:
        self.batching = batching
        self.endless = lengths is None
        self._deal = Deal([ENDLESS] * batching.lanes if lengths is None else lengths)
        if len(self._deal.lengths) != batching.lanes:
            raise InternalError(f"{len(self._deal.lengths)} lane lengths for {batching.lanes} lanes")

    @property
    def rows(self) -> int:
        """Rows of all lanes."""
        return self._deal.total

    @cached_property
    def count(self) -> int:
        """Steps of the epoch."""
        whole, rest = divmod(self.rows, self.batching.batch)
        return whole + (rest > 0 and self.batching.remainder != "drop")

    @cached_property
    def regular(self) -> int:
        """The steps, from the first on, to which every lane gives B / lanes rows."""
        return int(self._deal.lengths.min()) * self.batching.lanes // self.batching.batch

    def taken(self, step: int) -> Int64s:
        """Rows that every lane has given before `step` (int64, (lanes,)): the cursors of the lanes."""
        return self._deal.taken(min(step * self.batching.batch, self.rows))

    def share(self, step: int, rank: int, world: int) -> RankShare:
        """What `rank` takes at `step`."""
        if not 0 <= step < self.count:
            raise InternalError(f"step {step} of {self.count}")
        starts = self.taken(step)
        counts = self.taken(step + 1) - starts
        padded = self.batching.remainder == "pad"
        return split(counts, starts, self.batching.batch if padded else int(counts.sum()), rank, world)

    def plan_run(self, start: int, stop: int, rank: int, world: int) -> tuple[RunPart, ...]:
        """What `rank` takes at regular steps `start` to `stop` (at most `regular`), lane by lane."""
        if not 0 <= start <= stop <= self.regular:
            raise InternalError(f"steps {start}..{stop} are not among the {self.regular} regular ones")
        stride = self.batching.batch // self.batching.lanes
        low, high = share(self.batching.batch, rank, world)
        parts = []
        for lane in range(low // stride, -(-high // stride)):
            first, end = max(low - lane * stride, 0), min(high - lane * stride, stride)
            parts.append(RunPart(lane, start * stride + first, end - first, stride))
        return tuple(parts)


def check_batch(batch: int, lanes: int, world: int) -> None:
    """Refuse a batch size with which training cannot start.

    Raises:
        PlanError: the global batch is below 1, or not a multiple of `lanes` and of `world`; names the nearest values.
    """
    unit = math.lcm(lanes, world)
    if batch < 1 or batch % unit:
        below = max(0, batch) // unit * unit
        near = [str(value) for value in (below, below + unit) if value > 0]
        raise PlanError(
            f"a global batch of {batch} is not a multiple of lanes={lanes} and world={world}.",
            hint=f"use {' or '.join(near)}",
        )


def check_length(steps: Steps, world: int) -> None:
    """Refuse a start or a restore whose epoch cannot be delivered.

    Raises:
        PlanError: a world larger than B, no batch, or (`keep`) a last batch with fewer rows than ranks.
    """
    batch, remainder = steps.batching.batch, steps.batching.remainder
    if world > batch:
        raise PlanError(
            f"world={world} is larger than the batch of {counted(batch, 'row')}.",
            hint=f"use at most {counted(batch, 'rank')}",
        )
    if not steps.count:
        hint = (
            "use remainder='pad', or a smaller batch" if steps.rows else "the data set or its filter is empty"
        )
        raise PlanError(f"{counted(steps.rows, 'row gives', 'rows give')} no batch of {batch}.", hint=hint)
    if remainder == "keep" and 0 < steps.rows % batch < world:
        raise PlanError(
            f"the last batch has {counted(steps.rows % batch, 'row')} for {world} ranks.",
            hint="use remainder='pad'",
        )
