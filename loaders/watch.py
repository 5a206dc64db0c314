"""Whether the other ranks run what this one runs: looked after beside the training, without waiting for any of them."""

from __future__ import annotations

from threading import Thread

from dataflow.errors import RankError
from dataflow.execute.alike import differences
from loaders.notes import Notes

__all__ = ["Watch"]

_HINT = (
    "make it of the same pipeline, seed and arguments on all ranks, for each takes its own share of the rows, and load "
    "the same state on all or on none; where a rank has a loader of its own, pass rank=0, world_size=1"
)


class Watch:
    """Looks at the batches 1, 2, 4, 8, ... behind each begin, on a thread beside, until all ranks were seen.

    A store can be slow, and is shared with whatever waits in it: the training loop does not ask it.
    """

    def __init__(self) -> None:
        self._notes: Notes | None = None
        self._settled: Notes | None = None
        self._batch, self._next_look = 0, 1
        self._unlike: RankError | None = None
        self._thread: Thread | None = None

    def begin(self, notes: Notes) -> None:
        """Look from here on at other notes; what a look that is under way finds is still told."""
        self._notes = notes
        self._batch, self._next_look = 0, 1

    def pass_batch(self) -> None:
        """Take notice of a batch.

        Raises:
            RankError: a rank was seen that runs another order, or began at another place: says, once, what differs.
        """
        if self._unlike is not None:
            unlike, self._unlike = self._unlike, None
            raise unlike
        if self._notes is self._settled:
            return
        self._batch += 1
        if self._batch >= self._next_look and not self._looks:
            self._next_look = 2 * self._batch
            # No daemon: a store's own code does not bear that a thread in it ends with the interpreter.
            self._thread = Thread(target=self._look, args=(self._notes,), name="dataflow-watch")
            self._thread.start()

    @property
    def _looks(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def _look(self, notes: Notes) -> None:
        try:
            found = notes.look()
        except (RuntimeError, ValueError):
            # The group was destroyed, or the rank that has the store has ended.
            self._settled = notes
            return
        if found.all_alike:
            self._settled = notes
        if found.notes:
            self._unlike = RankError(differences(found.notes), hint=_HINT)

    def close(self) -> None:
        """Wait for a look that is under way; may be called twice."""
        if self._thread is not None:
            self._thread.join()
