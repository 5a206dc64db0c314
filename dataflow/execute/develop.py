"""What makes images of assembled batches, as the engine sees it: begun a little ahead, taken in order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from dataflow.execute.assemble import HostBatch
from dataflow.execute.compile import Plan
from dataflow.execute.metrics import Meters
from dataflow.graph.block import BadSample
from dataflow.ops.images.backend import ImageBackend

__all__ = ["DEVELOPING", "ByKernel", "Developer", "Developing", "Development"]

# Batches in the making at once: one that is waited for, and one that follows.
DEVELOPING: Final = 2


class Developing(Protocol):
    """A batch of which the images are in the making."""

    def result(self) -> HostBatch | BadSample:
        """The batch with its images; waits for them. Or the first of its rows that has none."""


class Developer(Protocol):
    """Makes images of batches, one behind the other."""

    @property
    def depth(self) -> int:
        """How many batches may be in the making at once."""

    def begin(self, batch: HostBatch) -> Developing:
        """Begin with a batch; returns soon."""

    def close(self) -> None:
        """End threads, and let go of all memory; may be called twice."""


class Development(Protocol):
    """A backend for images, and what it makes them with."""

    @property
    def backend(self) -> ImageBackend | None:
        """What it can make; None: nothing, so that the CPU kernel makes all."""

    @property
    def says(self) -> Sequence[str]:
        """What makes the images of the pipeline, and why, one fact a line; nothing where it has none."""

    def open(self, plan: Plan, rows: int, threads: int, meters: Meters) -> Developer | None:
        """What makes the images of batches of at most `rows` rows, and counts its time as stage "develop"; None where
        batches are whole as assembled."""


@dataclass(frozen=True, kw_only=True)
class ByKernel:
    """A `Development` of none: the CPU kernel makes all images."""

    says: Sequence[str] = ()
    backend: None = None

    def open(self, plan: Plan, rows: int, threads: int, meters: Meters) -> None:
        return None
