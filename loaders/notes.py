"""What ranks that exchange nothing leave for each other in their store: it is read at once, whoever has come."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

__all__ = ["Found", "Notes"]

Store = Any


class Found(NamedTuple):
    """What a rank reads: whether `all_alike`, and where some that have come differ, the notes of those by rank."""

    all_alike: bool
    notes: Mapping[int, bytes]


class Notes:
    """The notes of one begin of one loader, a short text of each rank; no call waits for another rank.

    Ranks are counted, all of them and those of one text, so that a look is two numbers on any number of ranks.

    Args:
        store: gives the store of the ranks, which may be another one, or gone, at each call.
        name: the same on all ranks for the same begin, and for no other one.
        ranks: those that may leave a note; `rank` is this one of them.
        order: a hash of what the loader runs, wherever it begins.
    """

    def __init__(
        self, store: Callable[[], Store], name: str, ranks: Sequence[int], rank: int, order: str, text: bytes
    ) -> None:  # fmt: skip
        self._store, self._name, self._ranks, self._rank = store, name, ranks, rank
        self._order, self._text = order, text
        self._posted = False

    def look(self) -> Found:
        """Leave the own note, at the first call, and read how it goes with those of the others.

        Raises:
            RuntimeError, ValueError: the store is gone.
        """
        store = self._store()
        if not self._posted:
            self._post(store)
        come = store.add(self._key("come"), 0)
        # Read behind it: of those that had come, none that is alike is missing here.
        alike = store.add(self._key(_digest(self._text)), 0)
        if alike < come:
            notes = self._read(store)
            return Found(False, notes if len(set(notes.values())) > 1 else {})
        if come < len(self._ranks):
            return Found(False, {})
        # Nobody asks for it any more, and a long run begins often.
        store.delete_key(self._key(self._rank))
        return Found(True, {})

    def _post(self, store: Store) -> None:
        """Last what is counted first: of a rank that has come, all is there."""
        store.set(_mark(self._order, self._rank), "1")
        store.set(self._key(self._rank), f"{self._order}\n".encode() + self._text)
        store.add(self._key(_digest(self._text)), 1)
        store.add(self._key("come"), 1)
        self._posted = True

    def _read(self, store: Store) -> dict[int, bytes]:
        notes = {}
        for rank in self._ranks:
            # `get` of a key that is not there would wait for it.
            if store.check([self._key(rank)]):
                order, _, text = bytes(store.get(self._key(rank))).partition(b"\n")
                if not self._runs_elsewhere(store, rank, order.decode()):
                    notes[rank] = text
        return notes

    def _runs_elsewhere(self, store: Store, rank: int, order: str) -> bool:
        """Whether that rank runs this order too, or this one its: one of the two has a loader more."""
        marks = (_mark(self._order, rank), _mark(order, self._rank))
        return order != self._order and any(store.check([mark]) for mark in marks)

    def _key(self, what: object) -> str:
        return f"{self._name}/{what}"


def _digest(text: bytes) -> str:
    return hashlib.sha256(text).hexdigest()[:16]


def _mark(order: str, rank: int) -> str:
    return f"{order} of {rank}"
