"""What ranks tell each other one batch ahead, where the length of lanes is not known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from dataflow.errors import RankError

__all__ = ["Alone", "Gathers", "Offer", "Ranks", "Together", "Word", "lanes_of"]


class Offer(NamedTuple):
    """What one lane can give: `rows` now; whether it has `ended` behind them; its cursor behind the rows dealt so
    far; and whether what comes behind `rows` is an error."""

    rows: int
    ended: bool
    row: int
    sub: int
    failed: bool


class Word(NamedTuple):
    """What one rank says in a round: the epoch and step of the batch that is to be settled, whether it has `failed`
    to make its share of the one before, and the offers of its lanes in lane order."""

    epoch: int
    step: int
    failed: bool
    offers: tuple[Offer, ...]


class Ranks(Protocol):
    """How the ranks of one loader agree."""

    def exchange(self, word: Word) -> list[Word]:
        """Every rank's word, in rank order.

        Raises:
            RankError: the ranks do not answer in time, are gone, or do not stand at the same step.
        """

    def abandon(self) -> None:
        """Let a waiting `exchange` return; takes no lock, so that a finalizer may call it."""

    def close(self) -> None:
        """Take no part any more: a waiting `exchange` returns, here and on the others. May be called twice."""


def lanes_of(rank: int, world: int, lanes: int) -> range:
    """The lanes that `rank` runs: those l with l * world // lanes == rank."""
    return range(-(-rank * lanes // world), -(-(rank + 1) * lanes // world))


class Alone:
    """One rank that runs all lanes."""

    def exchange(self, word: Word) -> list[Word]:
        return [word]

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
            RankError: a rank does not answer in time, is gone, or has left this run.
        """

    def abandon(self) -> None:
        """Let a waiting `all_gather` return; takes no lock, so that a finalizer may call it."""

    def close(self) -> None:
        """Leave the run: a waiting `all_gather` returns, here and on the others. May be called twice."""

    def shutdown(self) -> None:
        """Let go of what the exchange runs over, for good; may be called twice."""


_HEAD = 3
_WIDTH = len(Offer._fields)


@dataclass(frozen=True)
class Together:
    """Ranks that exchange their words in one all-gather a round."""

    gathers: Gathers
    world: int
    lanes: int

    def __post_init__(self) -> None:
        self.gathers.begin()

    def exchange(self, word: Word) -> list[Word]:
        numbers = [word.epoch, word.step, int(word.failed)]
        numbers += [int(value) for offer in word.offers for value in offer]
        most = -(-self.lanes // self.world)
        rows = self.gathers.all_gather(numbers + [0] * (_HEAD + most * _WIDTH - len(numbers)))
        words = [_word(row, len(lanes_of(rank, self.world, self.lanes))) for rank, row in enumerate(rows)]
        _check_places(words)
        return words

    def abandon(self) -> None:
        self.gathers.abandon()

    def close(self) -> None:
        self.gathers.close()


def _word(row: Sequence[int], lanes: int) -> Word:
    epoch, step, failed = row[:_HEAD]
    offers = []
    for at in range(_HEAD, _HEAD + lanes * _WIDTH, _WIDTH):
        rows, ended, lane_row, sub, bad = row[at : at + _WIDTH]
        offers.append(Offer(rows, bool(ended), lane_row, sub, bool(bad)))
    return Word(epoch, step, bool(failed), tuple(offers))


def _check_places(words: Sequence[Word]) -> None:
    places: dict[tuple[int, int], list[int]] = {}
    for rank, word in enumerate(words):
        places.setdefault((word.epoch, word.step), []).append(rank)
    if len(places) > 1:
        stands = [f"ranks {ranks} at epoch {e}, step {s}" for (e, s), ranks in sorted(places.items())]
        raise RankError(
            f"the ranks do not stand at the same step: {'; '.join(stands)}.",
            hint="restore the same state on all ranks, and let all take the same number of batches",
        )
