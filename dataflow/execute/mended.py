"""Bad rows that were replaced, from then until the batch with the rows in their place is delivered."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Sequence
from typing import cast

from dataflow.execute.assemble import HostBatch
from dataflow.graph.block import BadSample
from dataflow.graph.draw import Turn
from dataflow.order.stream import Stream

__all__ = ["Mended"]


class Mended:
    """Bad rows by the epoch and the sample in whose place another row stands.

    The driver's thread notes them, the consumer's finds them.
    """

    def __init__(self, stream: Stream) -> None:
        self._passes, self._zipped = stream.passes, len(stream.inputs)
        self._noted: dict[int, dict[int, deque[BadSample]]] = {}
        self._lock = threading.Lock()

    def note(self, sample: int, turn: Turn, bad: BadSample) -> None:
        """A row stands in for `bad`, and is delivered under the id `sample`."""
        epoch = cast(int, turn) // self._passes
        with self._lock:
            self._noted.setdefault(epoch, {}).setdefault(sample, deque()).append(bad)

    def found_in(self, epoch: int, batch: HostBatch) -> list[BadSample]:
        """The bad rows in whose place others stand in a batch; of the rows that one row became, the first tells."""
        if batch.replaced is None:
            return []
        real = batch.replaced >= 0
        if batch.valid is not None:
            real &= batch.valid
        flat = batch.ids.reshape(batch.rows, -1)
        real &= (flat[:, self._zipped :] == 0).all(axis=1)
        with self._lock:
            return self._taken(epoch, flat[real, 0].tolist())

    def _taken(self, epoch: int, samples: Sequence[int]) -> list[BadSample]:
        """The bad rows of these samples, which are forgotten with those of all epochs before."""
        for past in [number for number in self._noted if number < epoch]:
            # Rows that other ranks delivered, or nobody: an operator or the remainder left them out.
            del self._noted[past]
        noted = self._noted.get(epoch, {})
        found: list[BadSample] = []
        for sample in samples:
            # A row is bad again in every pass, and may be so in every input of a zip: each was noted.
            waiting = noted.get(sample)
            if waiting:
                first = waiting.popleft()
                found.append(first)
                while waiting and waiting[0].origin == first.origin and waiting[0].id != first.id:
                    found.append(waiting.popleft())
        return found
