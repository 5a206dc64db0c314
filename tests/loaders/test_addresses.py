"""A machine says where others reach it, whatever its own /etc/hosts makes of its name."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from typing import Any

import pytest

from loaders.addresses import ADDRESS, announced, machine, to_try

# As on Debian: the machine is the store's host, and knows itself by a loopback address.
DEBIAN = {"node0": ["127.0.1.1"]}


def _network(
    monkeypatch: pytest.MonkeyPatch, names: Mapping[str, list[str]], ways: Mapping[str, str]
) -> None:
    """A machine that is called node0, with these names, and the address from which it reaches each other."""

    def look_up(host: str, *_: object, **__: object) -> list[Any]:
        if host not in names and not host[0].isdigit() and ":" not in host:
            raise socket.gaierror(host)
        return [(None, None, None, "", (address, 0)) for address in names.get(host, [host])]

    class Probe:
        def __init__(self, *_: object) -> None:
            self._own = ""

        def __enter__(self) -> Probe:
            return self

        def __exit__(self, *_: object) -> None:
            pass

        def connect(self, address: tuple[str, int]) -> None:
            if address[0] not in ways:
                raise OSError("Network is unreachable")
            self._own = ways[address[0]]

        def getsockname(self) -> tuple[str, int]:
            return self._own, 0

    monkeypatch.delenv(ADDRESS, raising=False)
    monkeypatch.setattr(socket, "gethostname", lambda: "node0")
    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    monkeypatch.setattr(socket, "socket", Probe)


def test_a_machine_that_knows_itself_by_a_loopback_address_announces_those_by_which_it_goes_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ways = {"127.0.1.1": "127.0.0.1", "192.0.2.1": "10.0.0.5", "2001:db8::1": "fd00::5"}
    _network(monkeypatch, DEBIAN, ways)
    assert announced("node0") == ["10.0.0.5", "fd00::5", "node0"]


def test_the_way_to_the_store_is_announced_first(monkeypatch: pytest.MonkeyPatch) -> None:
    names = {"store": ["10.1.0.1", "fd01::1"], "node0": ["10.0.0.5"]}
    ways = {"10.1.0.1": "10.1.0.7", "fd01::1": "fd01::7", "192.0.2.1": "10.0.0.5"}
    _network(monkeypatch, names, ways)
    assert announced("store") == ["10.1.0.7", "fd01::7", "10.0.0.5", "store"]


def test_addresses_that_mean_another_machine_elsewhere_are_not_announced(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _network(monkeypatch, {"node0": ["127.0.1.1", "::1", "fe80::1%eth0", "0.0.0.0", "10.0.0.5"]}, {})
    assert announced(None) == ["10.0.0.5"]


def test_a_machine_without_a_network_announces_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    _network(monkeypatch, DEBIAN, {})
    assert announced(None) == []


def test_an_environment_variable_chooses_what_is_announced(monkeypatch: pytest.MonkeyPatch) -> None:
    _network(monkeypatch, DEBIAN, {"192.0.2.1": "10.0.0.5"})
    monkeypatch.setenv(ADDRESS, "172.16.0.5, node0-ib,")
    assert announced("node0") == ["172.16.0.5", "node0-ib"]


def test_names_are_looked_up_where_they_are_tried_and_unknown_ones_passed_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _network(monkeypatch, {"node0": ["10.0.0.5", "fd00::5"]}, {})
    assert to_try(["10.0.0.5", "nobody", "node0"], here=False) == ["10.0.0.5", "fd00::5"]


def test_loopback_addresses_are_tried_on_the_same_machine_only(monkeypatch: pytest.MonkeyPatch) -> None:
    _network(monkeypatch, DEBIAN, {})
    assert to_try(["node0", "10.0.0.5"], here=False) == ["10.0.0.5"]
    assert to_try(["node0", "10.0.0.5"], here=True) == ["127.0.0.1", "::1", "127.0.1.1", "10.0.0.5"]


def test_machines_of_different_names_are_not_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    here = machine()
    assert machine() == here
    monkeypatch.setattr(socket, "gethostname", lambda: "node1")
    assert machine() != here
