"""What passes have found, kept as long as the pipeline is: each is run once for all that is made of it.

The steps of a pipeline are frozen, and those that follow on one another share what is below them. So what a pass has
found belongs to the step as the user wrote it, and to the files that were there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import Lock, RLock
from weakref import WeakKeyDictionary

from dataflow.errors import PlanError
from dataflow.graph.node import Kept, Node
from dataflow.index.index import Index

__all__ = ["found_once"]


class _Findings:
    """What the passes of one step have found, by the indexes of its sources."""

    def __init__(self) -> None:
        # Another lock would let a condition that asks its own pipeline wait for itself.
        self._lock = RLock()
        self._finding = False
        self._found: dict[tuple[str | Index, ...], Kept] = {}

    def get(self, indexes: Sequence[Index], find: Callable[[], Kept]) -> Kept:
        # Files are the same where their stamp is; what is in memory has no stamp, and is the same where the index is.
        files = tuple(index.stamp if index.persistent else index for index in indexes)
        with self._lock:
            if files not in self._found:
                self._found[files] = self._first(find)
            return self._found[files]

    def _first(self, find: Callable[[], Kept]) -> Kept:
        if self._finding:
            raise PlanError(
                "a condition asks for the rows that it is to decide about.",
                hint="let it look at its row alone",
            )
        self._finding = True
        try:
            return find()
        finally:
            self._finding = False


_FINDINGS: WeakKeyDictionary[Node, _Findings] = WeakKeyDictionary()
_LOCK = Lock()


def found_once(step: Node, indexes: Sequence[Index], find: Callable[[], Kept]) -> Kept:
    """What a step of the user's pipeline keeps of the rows in `indexes`, from `find` when it is first asked for.

    Threads that ask at the same time wait for one of them. What `find` raises is passed on, and found out again.
    """
    with _LOCK:
        findings = _FINDINGS.setdefault(step, _Findings())
    return findings.get(indexes, find)
