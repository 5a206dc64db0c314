"""The steps behind `batch`, over one rank's rows of a step: on the threads that assemble, not on the trainer's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import cast

import numpy as np
import numpy.typing as npt

from dataflow.execute.assemble import HostBatch
from dataflow.execute.metrics import Meters
from dataflow.execute.replace import REPLACED_BY
from dataflow.graph.block import Block
from dataflow.graph.draw import Draw
from dataflow.graph.node import Node

__all__ = ["Finish"]


class Finish:
    """Makes of assembled rows what is delivered.

    Args:
        steps: those behind `batch`, of which each knows what comes to it.
    """

    def __init__(self, steps: Sequence[Node], seed: int, meters: Meters) -> None:
        self._steps, self._seed, self._meters = steps, seed, meters

    @property
    def works(self) -> bool:
        """Whether it takes time, and may fail."""
        return any(step.traits.combines for step in self._steps)

    def __call__(self, batch: HostBatch, epoch: int) -> HostBatch:
        """The batch behind all steps.

        Raises:
            DataError: a row is none that can be mixed.
        """
        batch = _split_off(batch)
        if not self._steps:
            return batch
        block = Block(batch.columns, batch.ids, np.arange(batch.rows), batch.owned)
        real = np.arange(batch.rows) if batch.valid is None else np.flatnonzero(batch.valid)
        for step in self._steps:
            draw = Draw(self._seed, epoch, step.key or step.kind)
            if not step.traits.combines:
                block = step.apply(block, draw)
                continue
            with self._meters.busy(step.kind) as stage:
                block = step.combine(block, real, draw)
                stage.rows, stage.bytes = block.rows, block.nbytes
        return replace(batch, columns=dict(block.columns), owned=block.owned)


def _split_off(batch: HostBatch) -> HostBatch:
    """The column that says which rows were replaced, as a field of the batch."""
    if REPLACED_BY not in batch.columns:
        return batch
    columns = dict(batch.columns)
    replaced = cast(npt.NDArray[np.int64], columns.pop(REPLACED_BY))
    return replace(batch, columns=columns, replaced=replaced)
