"""Ranks of one process that agree as real ones do, over connections within it."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from functools import partial
from typing import Any

import dataflow as flow
from dataflow.execute.loader import Loader
from dataflow.options import ErrorPolicy, LoaderOptions, World
from loaders.exchange import Exchange
from loaders.plain import to_numpy_batch

__all__ = ["meeting_loaders"]

_TIMEOUT_S = 60


def _exchanges(world: int) -> list[Exchange]:
    pairs = {rank: socket.socketpair() for rank in range(1, world)}
    hub = Exchange(0, {rank: pair[0] for rank, pair in pairs.items()}, _TIMEOUT_S)
    return [hub, *(Exchange(rank, {0: pair[1]}, _TIMEOUT_S) for rank, pair in pairs.items())]


def meeting_loaders(
    pipe: flow.Pipeline | Sequence[flow.Pipeline],
    world: int,
    state: dict[str, Any] | None = None,
    errors: Sequence[ErrorPolicy] | None = None,
) -> list[Loader[Any]]:
    """A loader for each rank of a process group, of `pipe` or of its own one; batches are NumPy arrays with ids."""
    pipes = [pipe] * world if isinstance(pipe, flow.Pipeline) else pipe
    made = []
    for rank, (own, exchange) in enumerate(zip(pipes, _exchanges(world), strict=True)):
        options = LoaderOptions(
            memory_limit=10**9, threads=1 + rank % 2, ids=True,
            errors=errors[rank] if errors is not None else ErrorPolicy(),
        )  # fmt: skip
        loader: Loader[Any] = Loader(
            own.node, own.seed_value or 0, options, World(rank=rank, size=world),
            partial(to_numpy_batch, ids=True), partial(_given, exchange),
        )  # fmt: skip
        if state is not None:
            loader.load_state_dict(state)
        made.append(loader)
    return made


def _given(exchange: Exchange, _: object) -> Exchange:
    return exchange
