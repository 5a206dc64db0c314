"""How many lanes every rank reads: what it costs that ranks share lanes."""

from __future__ import annotations

from dataflow.order.batches import Batching, Steps

__all__ = ["lane_reads"]


def lane_reads(batching: Batching, world: int) -> tuple[int, ...]:
    """For every rank, the lanes of which it takes rows at a step to which each lane gives B / lanes rows.

    They add up to world + lanes - gcd(world, lanes) where B is a multiple of both. Each rank decodes its lanes whole,
    so that what exceeds `lanes` is decoded more than once.
    """
    steps = Steps(batching, None)
    shares = (steps.plan_run(0, 1, rank, world) for rank in range(world))
    return tuple(sum(part.rows > 0 for part in parts) for parts in shares)
