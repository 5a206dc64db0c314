"""Global batches, lanes, and how many lanes every rank reads."""

from __future__ import annotations

from dataclasses import dataclass

from dataflow.errors import PlanError
from dataflow.execute.outline.wording import between
from dataflow.graph.node import BatchSizes
from dataflow.order.batches import Batching, check_batch
from dataflow.order.reads import lane_reads
from dataflow.wording import counted

__all__ = ["Ranks", "ranks_of"]


@dataclass(frozen=True, kw_only=True)
class Ranks:
    """Who reads what of a global batch of `global_batch` rows.

    `lane_reads` counts the lanes that each rank reads in a whole step, added up; of one rank they are `fewest_reads`
    to `most_reads`. `refusal` says why no run can begin on these ranks; lane reads are then those of one that began
    on others with this B and these lanes, or None where there can be no such run.
    """

    world_size: int
    global_batch: int
    lanes: int
    lanes_asked: bool
    refusal: str | None
    lane_reads: int | None
    fewest_reads: int | None
    most_reads: int | None

    def lines(self) -> list[str]:
        """One fact a line."""
        world, batch = self.world_size, self.global_batch
        return [
            f"world: {world:,}",
            f"B: {counted(batch, 'row')}, {between(batch // world, -(-batch // world))} a rank",
            f"lanes: {self.lanes:,}" + ("" if self.lanes_asked else ", the world size at the first start"),
            *(
                []
                if self.refusal is None
                else [f"no run can begin on {counted(world, 'rank')}: {self.refusal}"]
            ),
            *self._read_lines(),
        ]

    def _read_lines(self) -> list[str]:
        if self.lane_reads is None or self.fewest_reads is None or self.most_reads is None:
            return []
        each = between(self.fewest_reads, self.most_reads)
        of = "" if self.refusal is None else ", of a run that began on others"
        lines = [f"lane reads: {self.lane_reads:,} in all, {each} a rank{of}"]
        more = self.lane_reads - self.lanes
        if more:
            lines.append(f"{more:,} more than lanes: each rank decodes what it shares")
        return lines


def ranks_of(sizes: BatchSizes, world: int) -> Ranks:
    """How global batches are shared out among `world` ranks."""
    batch, lanes = sizes.begun_on(world)
    refusal = _refusal(batch, lanes, world)
    reads: tuple[int, ...] = ()
    if batch % lanes == 0 and world <= batch:
        reads = lane_reads(Batching(batch=batch, lanes=lanes, remainder=sizes.remainder), world)
    return Ranks(
        world_size=world,
        global_batch=batch,
        lanes=lanes,
        lanes_asked=sizes.lanes is not None,
        refusal=refusal,
        lane_reads=sum(reads) if reads else None,
        fewest_reads=min(reads, default=None),
        most_reads=max(reads, default=None),
    )


def _refusal(batch: int, lanes: int, world: int) -> str | None:
    try:
        check_batch(batch, lanes, world)
    except PlanError as error:
        return f"{error.message.rstrip('.')}; {error.hint}"
    return None
