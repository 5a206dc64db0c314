"""What ranks tell each other one batch ahead, where the length of lanes is not known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from dataflow.errors import RankError

__all__ = ["Alone", "Gathers", "Offer", "Ranks", "Together", "lanes_of"]


class Offer(NamedTuple):
    """What one lane can give: `rows` now; whether it has `ended` behind them; its cursor behind the rows dealt so
    far; and whether what comes behind `rows` is an error."""

    rows: int
    ended: bool
    row: int
    sub: int
    failed: bool


class Ranks(Protocol):
    """How the ranks of one loader agree."""

    def exchange(self, offers: Sequence[Offer]) -> list[Offer]:
        """The offers of all lanes in lane order, given those of this rank's own lanes.

        Raises:
            RankError: the ranks do not answer in time, or are gone.
        """

    def abandon(self) -> None:
        """Let a waiting `exchange` return within a second or so; takes no lock."""

    def close(self) -> None:
        """Let a waiting `exchange` return; may be called twice."""


def lanes_of(rank: int, world: int, lanes: int) -> range:
    """The lanes that `rank` runs: those l with l * world // lanes == rank."""
    return range(-(-rank * lanes // world), -(-(rank + 1) * lanes // world))


class Alone:
    """One rank that runs all lanes."""

    def exchange(self, offers: Sequence[Offer]) -> list[Offer]:
        return list(offers)

    def abandon(self) -> None:
        return None

    def close(self) -> None:
        return None


class Gathers(Protocol):
    """One all-gather of equally long lists of whole numbers between the ranks."""

    def begin(self) -> None:
        """Begin a new run of rounds: what is still under way belongs to an old one."""

    def all_gather(self, numbers: Sequence[int]) -> list[list[int]]:
        """Every rank's numbers, in rank order.

        Raises:
            RankError: a rank does not answer in time, or is gone.
        """

    def abandon(self) -> None:
        """Let a waiting `all_gather` return within a second or so; takes no lock."""

    def close(self) -> None:
        """Let a waiting `all_gather` return; may be called twice."""

    def shutdown(self) -> None:
        """Let go of what the exchange runs over, for good; may be called twice."""


@dataclass(frozen=True)
class Together:
    """Ranks that exchange their offers in one all-gather a round."""

    gathers: Gathers
    world: int
    lanes: int

    def __post_init__(self) -> None:
        self.gathers.begin()

    def exchange(self, offers: Sequence[Offer]) -> list[Offer]:
        width = len(Offer._fields)
        most = -(-self.lanes // self.world)
        numbers = [int(value) for offer in offers for value in offer]
        everyone = self.gathers.all_gather(numbers + [0] * (most * width - len(numbers)))
        found: list[Offer] = []
        for rank, row in enumerate(everyone):
            for place in range(len(lanes_of(rank, self.world, self.lanes))):
                rows, ended, at, sub, failed = row[place * width : (place + 1) * width]
                found.append(Offer(rows, bool(ended), at, sub, bool(failed)))
        if len(found) != self.lanes:
            raise RankError(
                f"the ranks offered {len(found)} lanes, not {self.lanes}.", hint="start all ranks alike"
            )
        return found

    def abandon(self) -> None:
        self.gathers.abandon()

    def close(self) -> None:
        self.gathers.close()
