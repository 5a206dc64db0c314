"""Ranks find each other through a store; whoever else calls is turned away, and who does not come is named."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import torch.distributed as dist
from torch._C._distributed_c10d import HashStore

from dataflow.errors import PlanError, RankError
from dataflow.options import World
from loaders.exchange import Exchange
from loaders.rendezvous import connect, open_exchange

WAIT_S = 30
WORLD = 3


def _gathered(store: Any, rank: int) -> list[list[int]]:
    exchange = Exchange(rank, connect(store, rank, WORLD, WAIT_S))
    exchange.begin()
    try:
        return exchange.all_gather([rank])
    finally:
        exchange.shutdown()


def test_ranks_that_come_in_any_order_are_connected_as_often_as_they_ask() -> None:
    store = HashStore()
    with ThreadPoolExecutor(WORLD) as threads:
        for _ in range(2):
            found = [threads.submit(_gathered, store, rank) for rank in reversed(range(WORLD))]
            assert [future.result(WAIT_S) for future in found] == [[[0], [1], [2]]] * WORLD


def test_strangers_at_the_port_are_turned_away() -> None:
    store = HashStore()
    with ThreadPoolExecutor(WORLD) as threads:
        first = threads.submit(_gathered, store, 0)
        store.wait(["place 1"])
        address = "127.0.0.1", json.loads(store.get("place 1"))["port"]
        with (
            socket.create_connection(address, WAIT_S) as silent,
            socket.create_connection(address, WAIT_S) as wrong,
        ):
            silent.shutdown(socket.SHUT_WR)
            wrong.sendall(b"GET / HTTP/1.1\r\nHost: dataflow\r\n\r\n")
            others = [threads.submit(_gathered, store, rank) for rank in (1, 2)]
            for future in (first, *others):
                assert future.result(WAIT_S) == [[0], [1], [2]]


def test_a_rank_passes_over_addresses_at_which_another_program_listens_or_none() -> None:
    store = HashStore()
    with ThreadPoolExecutor(WORLD) as threads:
        first = threads.submit(_gathered, store, 0)
        store.wait(["place 1"])
        where = json.loads(store.get("place 1"))
        store.set("place 1", json.dumps(where | {"addresses": ["no.such.host.invalid", *where["addresses"]]}))
        others = [threads.submit(_gathered, store, rank) for rank in (1, 2)]
        for future in (first, *others):
            assert future.result(WAIT_S) == [[0], [1], [2]]


def test_the_first_rank_names_those_that_do_not_come() -> None:
    with pytest.raises(RankError, match=r"ranks \[1, 2\] have not made this loader") as caught:
        connect(HashStore(), 0, WORLD, 0.1)
    assert "all ranks" in caught.value.hint


def test_another_rank_names_the_first_where_that_does_not_come() -> None:
    with pytest.raises(RankError, match="rank 0 has not made this loader"):
        connect(HashStore(), 1, WORLD, 0.1)


def test_a_first_rank_that_cannot_be_reached_is_an_error_with_what_was_tried() -> None:
    store = HashStore()
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    store.set("place 1", json.dumps({"addresses": ["127.0.0.1"], "port": port, "ask": "", "answer": ""}))
    with pytest.raises(RankError, match=rf"port {port} of 127.0.0.1: .*refused") as caught:
        connect(store, 1, WORLD, WAIT_S)
    assert "counted()" in caught.value.hint


@pytest.fixture
def one_rank() -> Iterator[None]:
    dist.init_process_group("gloo", store=HashStore(), rank=0, world_size=1)
    yield
    dist.destroy_process_group()


@pytest.mark.usefixtures("one_rank")
def test_a_world_that_is_not_that_of_the_process_group_is_an_error() -> None:
    with pytest.raises(
        PlanError, match="rank=0 of world_size=2, and the process group has this as rank 0 of 1"
    ) as caught:
        open_exchange(World(rank=0, size=2))
    assert "group=" in caught.value.hint
