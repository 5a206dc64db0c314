"""Random words as numbers of a range, one for each image."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

__all__ = ["below", "between", "chance"]

Floats = npt.NDArray[np.float64]


def between(words: npt.NDArray[np.uint32], low: float, high: float) -> Floats:
    """Evenly from [low, high), a step of 2**-32 of it apart."""
    return np.asarray(low + words * ((high - low) / 2.0**32), np.float64)


def below(words: npt.NDArray[np.uint32], limits: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Whole numbers from 0 to limits - 1; limits are below 2**31."""
    return np.asarray((words.astype(np.int64) * limits) >> 32, np.int64)


def chance(words: npt.NDArray[np.uint32], p: float) -> npt.NDArray[np.bool_]:
    """True with probability `p`."""
    return words < p * 2.0**32
