"""Slot: a pipeline of DALI's with at most one batch in the making."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from loaders.dali.graph import FILES, input_name

__all__ = ["BatchFailed", "Fed", "Slot"]

# A DALI pipeline, and what comes out of one: it has no types.
Pipeline = Any
Images = Any


class Fed(NamedTuple):
    """What a pipeline gets of a batch: the bytes of each file, and each input of numbers, an array (rows, ...)."""

    files: Sequence[npt.NDArray[np.uint8]]
    numbers: Sequence[npt.NDArray[np.generic]]

    def some(self, start: int, stop: int) -> Fed:
        """Of these rows."""
        return Fed(self.files[start:stop], [each[start:stop] for each in self.numbers])


class BatchFailed(Exception):
    """DALI could not make one of the images of a batch; which, it does not say reliably."""


class Slot:
    """Runs batches one by one. A run that fails breaks the pipeline, and the next one gets another.

    Args:
        build: makes a pipeline.
    """

    def __init__(self, build: Callable[[], Pipeline]) -> None:
        self._build = build
        self._pipeline: Pipeline | None = None
        # DALI reads the files where they are until the run is over.
        self._fed: Fed | None = None

    def begin(self, fed: Fed) -> None:
        """Begin with a batch; what is wrong with it is raised by `take`."""
        pipeline = self._build() if self._pipeline is None else self._pipeline
        self._pipeline, self._fed = pipeline, fed
        try:
            pipeline.feed_input(FILES, list(fed.files))
            for place, numbers in enumerate(fed.numbers):
                pipeline.feed_input(input_name(place), numbers)
            pipeline.schedule_run()
        except RuntimeError:
            self.close()

    def take(self, stream: object = None) -> Images:
        """The images of the batch, in a DALI `TensorList` that is valid as long as it is held.

        Without a `stream`, waits until they are there; with one (of CUDA), what runs on it waits instead.

        Raises:
            BatchFailed: there are none.
        """
        pipeline = self._pipeline
        if pipeline is None:
            raise BatchFailed
        try:
            (images,) = pipeline.share_outputs(stream)
            pipeline.release_outputs()
        except RuntimeError as error:
            self.close()
            raise BatchFailed from error
        self._fed = None
        return images

    def close(self) -> None:
        """Let go of the pipeline, and with it end its threads."""
        self._pipeline, self._fed = None, None
