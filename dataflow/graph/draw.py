"""Random draws that belong to a sample: the same in any batch, on any rank, after any resume."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dataflow.order.philox import Turn, key_of

__all__ = ["Draw", "Turn"]


@dataclass(frozen=True, slots=True)
class Draw:
    """The randomness of one operator in one pass: keyed by (seed, turn, operator key) and the sample id."""

    seed: int
    turn: Turn
    key: str

    def generator(self, sample_id: int, sub: int = 0) -> np.random.Generator:
        """A NumPy generator of the sample's own; `sub` tells the outputs of one sample apart.

        The bit generator is Philox4x64-10 keyed by our 64-bit key and the sample id, its counter starting at
        `sub` * 2**64: streams of different samples never meet.
        """
        low, high = key_of(self.seed, self.turn, self.key)
        key = np.array([low | high << 32, sample_id], dtype=np.uint64)
        return np.random.Generator(np.random.Philox(key=key, counter=[0, sub, 0, 0]))
