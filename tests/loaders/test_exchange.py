"""All-gathers between ranks: one table for all, and an error for all where one leaves, is gone, late or different."""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager

import pytest

from dataflow.errors import LoaderClosed, RankError
from loaders.exchange import Exchange
from loaders.links import Links

Rows = list[list[int]]
WAIT_S = 30
WORLD = 3


@contextmanager
def exchanges(
    world: int = WORLD, timeout_s: float = WAIT_S, *, hub_timeout_s: float | None = None
) -> Iterator[list[Exchange]]:
    """What each rank tells the others over, in its first run; the first rank may have a time-out of its own."""
    pairs = {rank: socket.socketpair() for rank in range(1, world)}
    ranks = [Exchange(0, {rank: pair[0] for rank, pair in pairs.items()}, hub_timeout_s or timeout_s)]
    ranks += [Exchange(rank, {0: pair[1]}, timeout_s) for rank, pair in pairs.items()]
    for rank in ranks:
        rank.begin()
    try:
        yield ranks
    finally:
        for rank in ranks:
            rank.shutdown()


@contextmanager
def gathering(ranks: Sequence[Exchange], numbers: Callable[[int], list[int]]) -> Iterator[list[Future[Rows]]]:
    """One all-gather of each of `ranks`, each on a thread."""
    with ThreadPoolExecutor(len(ranks)) as threads:
        yield [threads.submit(rank.all_gather, numbers(place)) for place, rank in enumerate(ranks)]


def together(ranks: Sequence[Exchange], numbers: Callable[[int], list[int]]) -> list[Rows]:
    with gathering(ranks, numbers) as found:
        return [future.result(WAIT_S) for future in found]


@pytest.mark.parametrize("world", [1, 2, 5])
def test_every_rank_gets_the_numbers_of_all_in_rank_order_round_after_round(world: int) -> None:
    with exchanges(world) as ranks:
        for number in range(3):
            table = [[rank, number, -(10**15)] for rank in range(world)]
            assert together(ranks, lambda rank, table=table: table[rank]) == [table] * world  # type: ignore[misc]


def test_a_table_larger_than_what_a_connection_holds_reaches_all_within_its_round() -> None:
    table = [[rank] * (1 << 18) for rank in range(2)]
    with exchanges(2) as ranks:
        assert together(ranks, lambda rank: table[rank]) == [table] * 2


def test_a_table_that_a_rank_does_not_want_any_more_keeps_nobody() -> None:
    table = [[rank] * (1 << 18) for rank in range(WORLD)]
    with exchanges() as ranks, gathering(ranks[:2], lambda rank: table[rank]) as found:
        with gathering([ranks[2]], lambda _: table[2]) as left:
            ranks[2].close()
            with contextlib.suppress(LoaderClosed, RankError):
                left[0].result(WAIT_S)
        for future in found:
            with contextlib.suppress(RankError):
                assert future.result(WAIT_S) == table


@pytest.mark.parametrize("leaver", range(WORLD))
def test_a_rank_that_leaves_ends_the_run_of_the_others_and_is_named(leaver: int) -> None:
    with exchanges() as ranks:
        others = [rank for place, rank in enumerate(ranks) if place != leaver]
        with gathering(others, lambda rank: [rank]) as found:
            ranks[leaver].close()
            for future in found:
                with pytest.raises(RankError, match=rf"ranks \[{leaver}\] have left") as caught:
                    future.result(WAIT_S)
                assert "same number of batches" in caught.value.hint


@pytest.mark.parametrize("leaver", range(WORLD))
def test_what_a_rank_gave_before_it_left_still_counts(leaver: int) -> None:
    with exchanges() as ranks:
        with gathering([ranks[leaver]], lambda _: [leaver]) as first:
            others = [place for place in range(WORLD) if place != leaver]
            rows = together([ranks[place] for place in others], lambda place: [others[place]])
            assert first[0].result(WAIT_S) == [[0], [1], [2]]
        ranks[leaver].close()
        assert rows == [[[0], [1], [2]]] * 2


@pytest.mark.parametrize("waiting", [[0], [1], [1, 2], [0, 2]])
def test_a_run_begins_clean_behind_one_in_which_some_had_already_sent_their_numbers(
    waiting: list[int],
) -> None:
    with exchanges() as ranks:
        with gathering([ranks[place] for place in waiting], lambda _: [-1]) as old:
            for rank in ranks:
                rank.close()
            for future in old:
                with pytest.raises((LoaderClosed, RankError)):
                    future.result(WAIT_S)
        for rank in ranks:
            rank.begin()
        assert together(ranks, lambda rank: [rank]) == [[[0], [1], [2]]] * WORLD


def test_a_rank_that_is_a_run_behind_hears_that_the_others_have_left() -> None:
    with exchanges() as ranks:
        for rank in (ranks[0], ranks[2]):
            rank.close()
            rank.begin()
        with pytest.raises(RankError, match=r"ranks \[0\] have left"):
            ranks[1].all_gather([1])
        ranks[1].close()
        ranks[1].begin()
        assert together(ranks, lambda rank: [rank]) == [[[0], [1], [2]]] * WORLD


@pytest.mark.parametrize("dead", range(WORLD))
def test_a_rank_whose_connections_end_without_a_word_is_gone(dead: int) -> None:
    pairs = {rank: socket.socketpair() for rank in range(1, WORLD)}
    hub_ends = {rank: pair[0] for rank, pair in pairs.items()}
    with ThreadPoolExecutor(WORLD) as threads:
        found: dict[int, Future[Rows]] = {}
        alive = []
        for rank in range(WORLD):
            mine = hub_ends if rank == 0 else {0: pairs[rank][1]}
            if rank == dead:
                for connection in mine.values():
                    connection.close()
                continue
            alive.append(Exchange(rank, mine))
            alive[-1].begin()
            found[rank] = threads.submit(alive[-1].all_gather, [rank])
        for future in found.values():
            with pytest.raises(RankError, match=rf"ranks \[{dead}\] are gone") as caught:
                future.result(WAIT_S)
            assert "last state" in caught.value.hint
    for exchange in alive:
        exchange.shutdown()


def test_every_rank_hears_which_rank_has_not_answered_in_time() -> None:
    with exchanges(hub_timeout_s=0.01) as ranks, gathering([ranks[1]], lambda _: [1]) as second:
        # The number of the second rank is there before the first one begins to wait.
        assert ranks[0]._links.wait(WAIT_S) == [1]
        with gathering([ranks[0]], lambda _: [0]) as first:
            for future, within in ((first[0], "0.01 s"), (second[0], "37.5 s")):
                with pytest.raises(RankError, match=rf"ranks \[2\] .* within {within}") as caught:
                    future.result(WAIT_S)
                assert "logs" in caught.value.hint


def test_a_rank_waits_for_the_first_one_no_longer_than_for_any() -> None:
    with exchanges(timeout_s=0.01) as ranks, pytest.raises(RankError, match=r"ranks \[0\] have not answered"):
        ranks[1].all_gather([1])


def test_ranks_that_send_more_numbers_than_the_first_are_an_error_on_all() -> None:
    with exchanges() as ranks, gathering(ranks, lambda rank: [0] * (2 + (rank == 1))) as found:
        for future in found:
            with pytest.raises(RankError, match=r"ranks \[1\] send more or fewer numbers") as caught:
                future.result(WAIT_S)
            assert "same version" in caught.value.hint


@pytest.mark.parametrize("rank", range(WORLD))
@pytest.mark.parametrize("way", [Exchange.close, Exchange.abandon, Exchange.shutdown])
def test_a_rank_that_waits_returns_when_it_is_closed(way: Callable[[Exchange], None], rank: int) -> None:
    with exchanges() as ranks, gathering([ranks[rank]], lambda _: [0]) as found:
        way(ranks[rank])
        with pytest.raises(LoaderClosed):
            found[0].result(WAIT_S)


def test_closing_twice_and_gathering_behind_it_are_harmless() -> None:
    with exchanges() as ranks:
        for way in (Exchange.close, Exchange.close, Exchange.shutdown, Exchange.shutdown):
            way(ranks[1])
        with pytest.raises(LoaderClosed):
            ranks[1].all_gather([1])


def test_a_forked_child_does_not_leave_for_its_parent(monkeypatch: pytest.MonkeyPatch) -> None:
    with exchanges() as ranks:
        with monkeypatch.context() as child:
            child.setattr(os, "getpid", lambda: -1)
            for rank in ranks:
                rank.close()
        assert together(ranks, lambda rank: [rank]) == [[[0], [1], [2]]] * WORLD


def test_sending_never_waits_for_a_rank_that_does_not_read() -> None:
    one, other = socket.socketpair()
    here, there = Links({1: one}), Links({0: other})
    frame = list(range(1 << 18))
    here.send([1], frame)
    here.send([1], [7])
    while len(there.received(0)) < 2:
        here.wait(0)
        there.wait(0)
    assert list(there.received(0)) == [frame, [7]]
    here.close()
    assert there.wait(WAIT_S) == [0]
    assert there.gone(0)
    there.close()


def test_a_word_that_was_sent_before_the_connection_ended_is_heard() -> None:
    one, other = socket.socketpair()
    here, there = Links({1: one}), Links({0: other})
    there.send([0], [1, 2])
    there.close()
    for _ in range(3):
        here.send([1], [0])
    assert list(here.received(1)) == [[1, 2]]
    assert here.gone(1)
    here.close()


def test_the_bell_wakes_whoever_waits_now_or_next() -> None:
    one, other = socket.socketpair()
    links = Links({1: one})
    links.ring()
    assert links.wait(WAIT_S) == []
    links.close()
    links.ring()
    other.close()
