"""Which epochs may be read: those that were begun, and the next one where it may still come."""

from __future__ import annotations

__all__ = ["Horizon"]


class Horizon:
    """How far ahead of the training loop epochs are read; asked on one thread, told on another.

    Args:
        begun: the epoch that the training loop is in.
        epochs: those that it has in all, numbered from 0; None where that is not known.
        until: the epoch that is never read, because another setup runs it; None where none is.
    """

    def __init__(self, begun: int, epochs: int | None, until: int | None) -> None:
        self._begun, self._epochs, self._until = begun, epochs, until

    def begin(self, epoch: int) -> None:
        """Take notice that the training loop is in an epoch."""
        self._begun = epoch

    def reaches(self, epoch: int) -> bool:
        """Whether an epoch may be read now."""
        if epoch == self._until:
            return False
        return self._epochs is None or epoch < self._epochs or epoch <= self._begun
