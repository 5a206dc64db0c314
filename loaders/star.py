"""One round between ranks: the first rank, the hub, gathers the numbers of all, and sends everyone the table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import IntEnum
from typing import Protocol

from loaders.links import Links

__all__ = ["HUB", "Broken", "Hub", "Kind", "Spoke", "Star"]

HUB = 0
Wait = Callable[[], Sequence[int]]


class Kind(IntEnum):
    """What a frame is: it begins with its kind and its run. Behind that, those that break the run name ranks."""

    NUMBERS = 0  # to the hub: those of one rank
    TABLE = 1  # from the hub: those of all ranks, one behind the other
    LEFT = 2  # ranks that take no part in the run any more
    GONE = 3  # ranks whose connection has ended
    LATE = 4  # ranks that have not answered in time
    UNLIKE = 5  # ranks that sent more or fewer numbers than the hub


class Broken(Exception):
    """No all-gather of this run will succeed, for the fault of `ranks`."""

    def __init__(self, kind: Kind, ranks: list[int]) -> None:
        super().__init__(kind, ranks)
        self.kind, self.ranks = kind, ranks


class Star(Protocol):
    """One rank's part in the all-gathers."""

    def gather(self, run: int, numbers: Sequence[int], wait: Wait) -> list[list[int]]:
        """Every rank's numbers. `wait` gives the ranks from which something has come; TimeoutError if late.

        Raises:
            Broken: a rank cannot give its numbers, or does not.
        """

    def leave(self, run: int) -> None:
        """Tell the others that this rank gives no further numbers in `run`."""


class Hub:
    """The first rank: gathers the numbers, and tells everyone what came of it."""

    def __init__(self, links: Links) -> None:
        self._links = links

    def gather(self, run: int, numbers: Sequence[int], wait: Wait) -> list[list[int]]:
        try:
            rows = self._collected(run, numbers, wait)
            self._tell(Kind.TABLE, run, [number for row in rows for number in row])
            self._hand_over(wait)
        except Broken as broken:
            self._tell(broken.kind, run, broken.ranks)
            raise
        return rows

    def _collected(self, run: int, numbers: Sequence[int], wait: Wait) -> list[list[int]]:
        table = {HUB: list(numbers)}
        heard: Sequence[int] = list(self._links)
        while True:
            for rank in heard:
                if rank not in table and (given := _next(self._links, rank, run)) is not None:
                    table[rank] = given
            if len(table) == 1 + len(self._links):
                break
            try:
                heard = wait()
            except TimeoutError:
                raise Broken(Kind.LATE, [rank for rank in self._links if rank not in table]) from None
        unlike = [rank for rank, row in table.items() if len(row) != len(numbers)]
        if unlike:
            raise Broken(Kind.UNLIKE, unlike)
        return [table[rank] for rank in sorted(table)]

    def _hand_over(self, wait: Wait) -> None:
        """Wait until every rank that still wants the table has all of it: it would else lie here to the next round."""
        while slow := [r for r in self._links if self._links.unsent(r) and not self._links.received(r)]:
            try:
                wait()
            except TimeoutError:
                raise Broken(Kind.LATE, slow) from None

    def leave(self, run: int) -> None:
        self._tell(Kind.LEFT, run, [HUB])

    def _tell(self, kind: Kind, run: int, numbers: Sequence[int]) -> None:
        self._links.send(self._links, [kind, run, *numbers])


class Spoke:
    """Any other rank: hands its numbers to the hub and waits for the table."""

    def __init__(self, links: Links, rank: int) -> None:
        self._links, self._rank = links, rank

    def gather(self, run: int, numbers: Sequence[int], wait: Wait) -> list[list[int]]:
        self._links.send([HUB], [Kind.NUMBERS, run, *numbers])
        while (table := _next(self._links, HUB, run)) is None:
            try:
                wait()
            except TimeoutError:
                raise Broken(Kind.LATE, [HUB]) from None
        width = len(numbers)
        return [table[at : at + width] for at in range(0, len(table), width)]

    def leave(self, run: int) -> None:
        self._links.send([HUB], [Kind.LEFT, run, self._rank])


def _next(links: Links, rank: int, run: int) -> list[int] | None:
    """The numbers that a rank has sent next in a run; None where they have not come yet.

    Raises:
        Broken: none will come.
    """
    frames = links.received(rank)
    while frames and frames[0][1] < run:
        frames.popleft()  # of a run that this rank has left
    if not frames:
        if links.gone(rank):
            raise Broken(Kind.GONE, [rank])
        return None
    kind, of, *numbers = frames[0]
    if of > run:
        raise Broken(Kind.LEFT, [rank])
    frames.popleft()
    if kind not in (Kind.NUMBERS, Kind.TABLE):
        raise Broken(Kind(kind), numbers)
    return numbers
