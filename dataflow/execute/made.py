"""`Made`: what every driver hands on, consecutive batches of one epoch."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import dataclass

from connectors.contract import Json
from dataflow.execute.assemble import HostBatch
from dataflow.graph.block import BadSample

__all__ = ["Made"]


@dataclass(frozen=True, slots=True)
class Made:
    """Consecutive batches of one epoch from step `step` on, made or in the making; none at the epoch's end."""

    epoch: int
    step: int
    batches: list[HostBatch] | Future[list[HostBatch]]
    ends_epoch: bool = False
    last: bool | None = None  # whether the last of them is the epoch's last; None: the number of steps tells
    after: Mapping[str, Json] | None = (
        None  # what a state keeps behind the last of them, beside epoch and step
    )
    left_bad: tuple[BadSample, ...] = ()  # bad rows of an epoch that has no batch
