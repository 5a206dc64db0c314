"""Ranks find each other through a store; whoever else calls is turned away, and who does not come is named."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import socket
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch.distributed as dist
from torch._C._distributed_c10d import FileStore, HashStore, PrefixStore, TCPStore

from dataflow.errors import PlanError, RankError
from dataflow.options import World
from loaders.addresses import ADDRESS, machine
from loaders.door import let_in
from loaders.exchange import Exchange
from loaders.handshake import ANSWER_BYTES, CHALLENGE_BYTES, CONFIRMATION_BYTES, answer, new_key
from loaders.meet import meet as meet_ranks
from loaders.rendezvous import connect

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


def _place(store: Any) -> dict[str, Any]:
    """Where the first rank listens, as soon as it says so."""
    store.wait(["place"])
    place: dict[str, Any] = json.loads(store.get("place"))
    return place


def _read(connection: socket.socket, count: int) -> bytes:
    return connection.recv(count, socket.MSG_WAITALL)


def _is_turned_away(connection: socket.socket) -> bool:
    """Whether the other end closes, with or without a challenge before."""
    try:
        while connection.recv(1024):
            pass
    except TimeoutError:
        return False
    except ConnectionError:
        pass
    return True


@pytest.fixture
def first() -> Iterator[tuple[HashStore, int, Callable[[], None]]]:
    """A first rank that listens: the store, its port, and what brings the others and looks that all meet."""
    store = HashStore()
    with ThreadPoolExecutor(WORLD) as threads:
        found = [threads.submit(_gathered, store, 0)]

        def meet() -> None:
            found.extend(threads.submit(_gathered, store, rank) for rank in (1, 2))
            assert [future.result(WAIT_S) for future in found] == [[[0], [1], [2]]] * WORLD

        yield store, _place(store)["port"], meet


First = tuple[HashStore, int, Callable[[], None]]


def _call(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), WAIT_S)


def test_strangers_at_the_port_are_turned_away(first: First) -> None:
    _, port, meet = first
    with _call(port) as silent, _call(port) as wrong:
        silent.shutdown(socket.SHUT_WR)
        wrong.sendall(b"GET / HTTP/1.1\r\nHost: dataflow\r\n\r\n" + bytes(ANSWER_BYTES))
        assert _is_turned_away(silent)
        assert _is_turned_away(wrong)
        meet()


def test_a_stranger_that_is_slow_keeps_no_rank_waiting(first: First, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("loaders.door._HEARD_S", 100 * WAIT_S)
    _, port, meet = first
    with _call(port) as slow:
        slow.sendall(b"G")
        meet()


def test_a_stranger_has_one_time_limit_for_all_that_it_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("loaders.door._HEARD_S", 0.05)
    store = HashStore()
    with ThreadPoolExecutor(1) as threads:
        first = threads.submit(connect, store, 0, 2, WAIT_S)
        with _call(_place(store)["port"]) as slow:
            slow.sendall(b"G")
            assert _is_turned_away(slow)
        with connect(store, 1, 2, WAIT_S)[0], first.result(WAIT_S)[1]:
            pass


def test_of_many_strangers_the_oldest_makes_room(first: First, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("loaders.door._HEARD_S", 100 * WAIT_S)
    monkeypatch.setattr("loaders.door.STRANGERS", 2)
    _, port, meet = first
    with contextlib.ExitStack() as stack:
        crowd = [stack.enter_context(_call(port)) for _ in range(4 * WORLD)]
        assert _is_turned_away(crowd[0])
        meet()


class _Hampered(socket.socket):
    """A listener whose first caller has hung up, and for which the system then has no file."""

    def __init__(self, fileno: int) -> None:
        super().__init__(fileno=fileno)
        self._faults = [errno.EMFILE, errno.ECONNABORTED]

    def accept(self) -> Any:
        if self._faults:
            number = self._faults.pop()
            raise OSError(number, os.strerror(number))
        return super().accept()


def test_the_first_rank_goes_on_behind_a_caller_that_hung_up_and_a_lack_of_files() -> None:
    key = new_key()
    with socket.create_server(("127.0.0.1", 0)) as server:
        listener = _Hampered(server.detach())
    with listener, _call(listener.getsockname()[1]) as other, ThreadPoolExecutor(1) as threads:
        first = threads.submit(let_in, listener, key, 2, time.monotonic() + WAIT_S, lambda: None)
        other.sendall(answer(key, _read(other, CHALLENGE_BYTES), 1, 2))
        assert len(_read(other, CONFIRMATION_BYTES)) == CONFIRMATION_BYTES
        first.result(WAIT_S)[1].close()


@pytest.mark.parametrize(("rank", "size"), [(0, WORLD), (WORLD, WORLD), (1, WORLD + 1)])
def test_a_rank_of_another_world_is_not_let_in(first: First, rank: int, size: int) -> None:
    store, port, meet = first
    key = bytes.fromhex(_place(store)["key"])
    with _call(port) as other:
        other.sendall(answer(key, _read(other, CHALLENGE_BYTES), rank, size))
        assert _is_turned_away(other)
    meet()


def test_a_rank_with_another_key_is_not_let_in(first: First, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("loaders.rendezvous._ROUNDS", 1)
    store, _, meet = first
    other = HashStore()
    other.set("place", json.dumps(_place(store) | {"key": new_key().hex()}))
    with pytest.raises(RankError, match=r"127.0.0.1: .*(ended|reset)"):
        connect(other, 1, WORLD, WAIT_S)
    meet()


def test_who_stands_between_ranks_hears_no_key_and_nothing_that_lets_it_in(
    first: First, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("loaders.rendezvous._ROUNDS", 1)
    store, port, meet = first
    place = _place(store)
    with socket.create_server(("127.0.0.1", 0)) as between, ThreadPoolExecutor(1) as threads:
        other = HashStore()
        other.set("place", json.dumps(place | {"port": between.getsockname()[1], "hosts": []}))
        lured = threads.submit(connect, other, 1, WORLD, WAIT_S)
        caller, _ = between.accept()
        with caller:
            caller.sendall(bytes(CHALLENGE_BYTES))
            heard = _read(caller, ANSWER_BYTES)
            assert bytes.fromhex(place["key"]) not in heard
            with _call(port) as door:
                door.sendall(heard)
                assert _is_turned_away(door)
            caller.sendall(heard[-CONFIRMATION_BYTES:])
            with pytest.raises(RankError, match=r"127\.0\.0\.1: another program answers"):
                lured.result(WAIT_S)
    meet()


def test_a_rank_passes_over_addresses_at_which_nobody_is_known(first: First) -> None:
    store, _, meet = first
    place = _place(store)
    store.set("place", json.dumps(place | {"hosts": ["no.such.host.invalid", *place["hosts"]]}))
    meet()


def test_ranks_meet_again_after_one_of_them_has_waited_in_vain() -> None:
    store = HashStore()
    for rank in (0, 1, 1, 0, 0):
        with pytest.raises(RankError, match="not made this loader"):
            connect(store, rank, WORLD, 0.01)
    with ThreadPoolExecutor(WORLD) as threads:
        found = [threads.submit(_gathered, store, rank) for rank in range(WORLD)]
        assert [future.result(WAIT_S) for future in found] == [[[0], [1], [2]]] * WORLD


def test_a_rank_that_was_let_in_before_the_first_gave_up_meets_it_at_its_next_place(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    late_s = 0.0
    clock = SimpleNamespace(monotonic=lambda: time.monotonic() + late_s)
    monkeypatch.setattr("loaders.door.time", clock)
    store = HashStore()
    with ThreadPoolExecutor(WORLD) as threads:
        first = threads.submit(connect, store, 0, WORLD, WAIT_S)
        port = _place(store)["port"]
        with connect(store, 1, WORLD, WAIT_S)[0] as entered:
            late_s = 2.0 * WAIT_S
            with _call(port), pytest.raises(RankError, match=r"ranks \[2\] have not made"):
                first.result(WAIT_S)
            assert _is_turned_away(entered)
        late_s = 0.0
        found = [threads.submit(_gathered, store, rank) for rank in (1, 2, 0)]
        assert [future.result(WAIT_S) for future in found] == [[[0], [1], [2]]] * WORLD


def test_a_rank_enters_no_place_twice() -> None:
    store = HashStore()
    with ThreadPoolExecutor(WORLD) as threads:
        first = threads.submit(connect, store, 0, WORLD, WAIT_S)
        one = connect(store, 1, WORLD, WAIT_S)
        with pytest.raises(RankError, match="rank 0 has not made this loader"):
            connect(store, 1, WORLD, 0.01)
        two = connect(store, 2, WORLD, WAIT_S)
        with one[0] as here, two[0], first.result(WAIT_S)[1] as there, first.result(WAIT_S)[2]:
            there.sendall(b"1")
            assert _read(here, 1) == b"1"


def test_a_place_is_withdrawn_when_the_first_rank_leaves_it(tmp_path: Path) -> None:
    stores = HashStore(), FileStore(str(tmp_path / "store"), 1), TCPStore("127.0.0.1", 0, is_master=True)
    for store in stores:
        connect(PrefixStore("dataflow", store), 0, 1, WAIT_S)
        with pytest.raises(RankError, match="rank 0 has not made this loader"):
            connect(PrefixStore("dataflow", store), 1, 1, 0.01)


def test_the_first_rank_names_those_that_do_not_come() -> None:
    with pytest.raises(RankError, match=r"ranks \[1, 2\] have not made this loader") as caught:
        connect(HashStore(), 0, WORLD, 0.1)
    assert "all ranks" in caught.value.hint


def test_another_rank_names_the_first_where_that_does_not_come() -> None:
    with pytest.raises(RankError, match="rank 0 has not made this loader"):
        connect(HashStore(), 1, WORLD, 0.1)


def _stale(hosts: list[str], machine: str) -> tuple[HashStore, int]:
    """A store that names a place at which nobody listens any more, and its port."""
    store = HashStore()
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    place = {"key": new_key().hex(), "port": port, "hosts": hosts, "machine": machine}
    store.set("place", json.dumps(place))
    return store, port


def test_a_first_rank_that_cannot_be_reached_is_an_error_with_what_was_tried() -> None:
    store, port = _stale(["127.0.0.1"], machine())
    with pytest.raises(RankError, match=rf"port {port} of 127.0.0.1 \(127.0.0.1: .*refused") as caught:
        connect(store, 1, WORLD, WAIT_S)
    assert "DATAFLOW_ADDRESS" in caught.value.hint
    assert "counted()" in caught.value.hint


def test_the_first_rank_hears_at_once_that_another_cannot_reach_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(ADDRESS, "no.such.host.invalid")
    monkeypatch.setattr("loaders.rendezvous.machine", iter(["here", *["there"] * WAIT_S]).__next__)
    store = HashStore()
    with ThreadPoolExecutor(1) as threads:
        first = threads.submit(connect, store, 0, WORLD, WAIT_S)
        _place(store)
        with pytest.raises(RankError, match=r"rank 0 cannot be reached at port \d+ of no.such.host.invalid"):
            connect(store, 2, WORLD, WAIT_S)
        with pytest.raises(RankError, match=r"rank 2 cannot reach this one at port \d+ of no.such") as caught:
            first.result(WAIT_S)
    assert "DATAFLOW_ADDRESS" in caught.value.hint


def test_a_first_rank_that_only_its_own_machine_reaches_is_an_error_elsewhere() -> None:
    store, _ = _stale(["127.0.0.1"], "another machine")
    with pytest.raises(RankError, match="no address of another machine") as caught:
        connect(store, 1, WORLD, WAIT_S)
    assert "DATAFLOW_ADDRESS" in caught.value.hint


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
        meet_ranks(World(rank=0, size=2), {})
    assert "group=" in caught.value.hint


def test_the_wait_for_a_rank_that_never_comes_is_as_long_as_the_store_waits() -> None:
    for rank, missing in ((0, r"ranks \[1, 2\] have"), (1, "rank 0 has")):
        store = HashStore()
        store.set_timeout(timedelta(seconds=0.05))
        with pytest.raises(RankError, match=f"{missing} not made this loader"):
            connect(PrefixStore("of loaders", store), rank, WORLD)
