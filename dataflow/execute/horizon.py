"""Which epochs may be read: those that were begun, and those of which it is likely that they will be."""

from __future__ import annotations

__all__ = ["Horizon"]

# Most loops have one epoch, and reading ahead behind it may cost as much as that; a loop that has two has further ones.
_LIKELY = 2


class Horizon:
    """How far ahead of the training loop epochs are read; asked on one thread, told on another.

    Args:
        begun: the epoch that the training loop is in.
        epochs: those that it has in all, numbered from 0; None where that is not known.
        until: the epoch that is never read, because another setup runs it; None where none is.
        alone: no other rank waits for what this one reads; else a rank that is late to begin an epoch, because it saves
            a state, would keep the others from theirs.
    """

    def __init__(self, begun: int, epochs: int | None, until: int | None, *, alone: bool = True) -> None:
        self._begun, self._epochs, self._until = begun, epochs, until
        self._first_likely = _LIKELY if alone else 0

    def begin(self, epoch: int) -> None:
        """Take notice that the training loop is in an epoch."""
        self._begun = epoch

    def reaches(self, epoch: int) -> bool:
        """Whether an epoch may be read now."""
        if epoch == self._until:
            return False
        likely = epoch >= self._first_likely if self._epochs is None else epoch < self._epochs
        return likely or epoch <= self._begun
