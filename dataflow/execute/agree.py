"""What ranks tell each other one batch ahead, where the length of lanes is not known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol, cast

from connectors.contract import Json
from dataflow.execute.alike import check_alike

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
    """What one rank says in a round: the epoch and step of the batch that is to be settled, which all have alike,
    whether it has `failed` to make its share of the one before, and the offers of its lanes in lane order."""

    epoch: int
    step: int
    failed: bool
    offers: tuple[Offer, ...]


class Ranks(Protocol):
    """How the ranks of one loader agree."""

    def exchange(self, word: Word) -> list[Word]:
        """Every rank's word, in rank order.

        Raises:
            RankError: the ranks do not answer in time, are gone, or did not begin alike.
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


_WIDTH = len(Offer._fields)


class Together:
    """Ranks that exchange their words in one all-gather a round; in the first one they look that they begin alike.

    Args:
        state: where this rank begins: what its state holds beside epoch and step, which the first word has.
    """

    def __init__(self, gathers: Gathers, world: int, state: Mapping[str, Json]) -> None:
        self._gathers, self._world, self._state = gathers, world, state
        self._lanes = cast(int, state["lanes"])
        self._alike = False
        gathers.begin()

    def exchange(self, word: Word) -> list[Word]:
        if not self._alike:
            self._check_alike(word)
        most = -(-self._lanes // self._world)
        numbers = [int(word.failed), *(int(value) for offer in word.offers for value in offer)]
        rows = self._gathers.all_gather(numbers + [0] * (1 + most * _WIDTH - len(numbers)))
        return [
            _word(word, row, len(lanes_of(rank, self._world, self._lanes))) for rank, row in enumerate(rows)
        ]

    def _check_alike(self, word: Word) -> None:
        check_alike(
            self._gathers.all_gather,
            {**self._state, "epoch": word.epoch, "step": word.step},
            hint="restore the same state on all ranks, or on none, and let all take the same number of batches",
        )
        self._alike = True

    def abandon(self) -> None:
        self._gathers.abandon()

    def close(self) -> None:
        self._gathers.close()


def _word(own: Word, row: Sequence[int], lanes: int) -> Word:
    """What a rank has said: from one beginning on, all stand at the same step in the same round."""
    failed, *values = row
    offers = []
    for at in range(0, lanes * _WIDTH, _WIDTH):
        rows, ended, lane_row, sub, bad = values[at : at + _WIDTH]
        offers.append(Offer(rows, bool(ended), lane_row, sub, bool(bad)))
    return Word(own.epoch, own.step, bool(failed), tuple(offers))
