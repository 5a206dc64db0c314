"""The ranks of one loader meet, and look whether they are that."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch.distributed as dist

from connectors.contract import Json
from dataflow.errors import PlanError, RankError
from dataflow.execute.alike import check_alike
from dataflow.options import World
from loaders.exchange import Exchange
from loaders.group_store import group_store
from loaders.rendezvous import connect

__all__ = ["meet"]

Group = Any


def meet(world: World, state: Mapping[str, Json], group: Group | None = None) -> Exchange:
    """What the ranks of `group` (default: all) tell each other over; every one of them must call this.

    Nothing of it belongs to torch.distributed, whose groups may be destroyed while this goes on.

    Args:
        state: what the loader of this rank has in all its states; those of the others must have the same.

    Raises:
        PlanError: `world` is not the group's.
        RankError: not all ranks come in time, the first cannot be reached, or their loaders are not alike.
    """
    rank, size = dist.get_rank(group), dist.get_world_size(group)
    if (world.rank, world.size) != (rank, size):
        raise PlanError(
            f"rank={world.rank} of world_size={world.size}, and the process group has this as rank {rank} of {size}.",
            hint="pass the group= or mesh= of the ranks that get different rows, or call counted() on the pipeline",
        )
    ranks = range(size) if group is None else dist.get_process_group_ranks(group)
    try:
        return _checked(Exchange(rank, connect(group_store(ranks), rank, size)), state)
    except RankError:
        raise
    except (RuntimeError, OSError) as error:
        raise RankError(
            f"the ranks cannot be connected: {error}", hint="look at the logs: a rank is gone"
        ) from error


def _checked(exchange: Exchange, state: Mapping[str, Json]) -> Exchange:
    """The exchange, if those that have met are the ranks of one loader: those of two may have met crosswise.

    Raises:
        RankError: they are not; on all of them.
    """
    try:
        exchange.begin()
        check_alike(
            exchange.all_gather,
            state,
            hint="make the same loaders in the same order on all ranks, of the same pipeline, with the same arguments",
        )
    except BaseException:
        exchange.shutdown()
        raise
    return exchange
