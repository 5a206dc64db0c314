"""How ranks find each other: the first one listens, and says where in the store of torch.distributed."""

from __future__ import annotations

import contextlib
import json
import socket
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple

from torch.distributed.distributed_c10d import PrefixStore

from dataflow.errors import RankError
from loaders.addresses import ADDRESS, announced, machine, to_try
from loaders.door import STRANGERS, let_in
from loaders.handshake import CHALLENGE_BYTES, CONFIRMATION_BYTES, answer, is_confirmation, new_key
from loaders.waiting import Waiting

__all__ = ["connect"]

Store = Any
# How long, at most, all ranks have to come; to reach one address; and to be let in there, where a stranger may say
# nothing.
_COMING_S = 600.0
_REACHING_S = 5.0
_ENTERING_S = 10.0
_LONGEST_PAUSE_S = 0.5
_REACHING_HINT = (
    f"let the nodes reach each other's ports, or set {ADDRESS} on rank 0 to an address that they reach, "
    "or call counted() on the pipeline"
)
# A crowd of strangers may push a rank out of the door: it tries all addresses once more.
_ROUNDS = 3
_ROUND_PAUSE_S = 0.1
# The key under which the first rank says where it listens now; it holds nothing while it does not.
_PLACE = "place"
# That under which a rank says that it cannot reach a place.
_UNREACHED = "unreached"


def connect(store: Store, rank: int, size: int, coming_s: float | None = None) -> dict[int, socket.socket]:
    """Connections of the first of `size` ranks to all others, of another rank to the first.

    Every rank calls this as often as the others, on the same store. If it fails on some, all may call it again: a
    rank goes where the first one listens now, and to no place twice.

    Args:
        coming_s: how long all ranks have to come. By default it is as long as the store waits for a rank, which is the
            `timeout` of `init_process_group`, and at most ten minutes.

    Raises:
        RankError: not all ranks come in that time, or one cannot reach the first: on both of them.
    """
    if coming_s is None:
        coming_s = min(_COMING_S, store.timeout.total_seconds())
    deadline = time.monotonic() + coming_s
    if rank:
        return {0: _enter(store, rank, size, deadline)}
    with _listening(size) as listener:
        key = new_key()
        port: int = listener.getsockname()[1]
        with _published(store, _Place(key.hex(), port, announced(_host(store)), machine())):
            return let_in(listener, key, size, deadline, partial(_check_reached, store, key.hex()))


class _Place(NamedTuple):
    """Where the first rank listens, and the key that it expects: no two places have the same."""

    key: str
    port: int
    hosts: list[str]
    machine: str


# ---- the first rank


@contextmanager
def _listening(size: int) -> Iterator[socket.socket]:
    dual = socket.has_dualstack_ipv6()
    family = socket.AF_INET6 if dual else socket.AF_INET
    with socket.create_server(
        ("", 0), family=family, backlog=size + STRANGERS, dualstack_ipv6=dual
    ) as listener:
        yield listener


def _host(store: Store) -> str | None:
    """The name by which the ranks reach their store, if it is reached over the network."""
    while isinstance(store, PrefixStore):
        store = store.underlying_store
    return getattr(store, "host", None)


@contextmanager
def _published(store: Store, place: _Place) -> Iterator[None]:
    """Let the place stand in the store, and withdraw it before the door is shut.

    The key stays: `get` of one that was deleted behind `check` would wait for as long as the store allows.
    """
    store.set(_PLACE, json.dumps(place._asdict()))
    try:
        yield
    finally:
        # A store that is gone shows nobody the way.
        with contextlib.suppress(RuntimeError):
            store.set(_PLACE, "")


def _check_reached(store: Store, key: str) -> None:
    """No rank has said that it cannot reach the place with this key.

    Raises:
        RankError: one has.
    """
    held = _held(store, _UNREACHED)
    if held and (said := json.loads(held))["key"] == key:
        raise RankError(f"rank {said['rank']} cannot reach this one at {said['where']}.", hint=_REACHING_HINT)


# ---- the others


def _enter(store: Store, rank: int, size: int, deadline: float) -> socket.socket:
    """A connection to the first rank, wherever it listens now."""
    entered = f"entered by {rank}"
    last = _held(store, entered).decode()
    rounds: Counter[str] = Counter()
    while True:
        place = _found(store, last, deadline)
        tried: list[str] = []
        for address in to_try(place.hosts, here=place.machine == machine()):
            try:
                connection = _called(
                    address, place, rank, size, min(deadline, time.monotonic() + _ENTERING_S)
                )
            except OSError as error:
                tried.append(f"{address}: {error}")
                continue
            store.set(entered, place.key)
            return connection
        rounds[place.key] += 1
        if rounds[place.key] == _ROUNDS:
            where = _where(place, tried)
            store.set(_UNREACHED, json.dumps({"key": place.key, "rank": rank, "where": where}))
            raise RankError(f"rank 0 cannot be reached at {where}.", hint=_REACHING_HINT)
        time.sleep(_ROUND_PAUSE_S)


def _called(address: str, place: _Place, rank: int, size: int, deadline: float) -> socket.socket:
    """A connection to the first rank at one address, which has let this rank in.

    Raises:
        OSError: nobody is there, or someone else, or nobody answers by the deadline.
    """
    key = bytes.fromhex(place.key)
    connection = socket.create_connection((address, place.port), min(_REACHING_S, _left(deadline)))
    try:
        challenged = _read(connection, CHALLENGE_BYTES, deadline)
        answered = answer(key, challenged, rank, size)
        connection.sendall(answered)
        heard = _read(connection, CONFIRMATION_BYTES, deadline)
        if not is_confirmation(key, challenged, answered, size, heard):
            raise ConnectionError("another program answers")
    except BaseException:
        connection.close()
        raise
    return connection


def _where(place: _Place, tried: list[str]) -> str:
    """The port and hosts of a place, and what came of each address."""
    hosts, what = ", ".join(place.hosts), "; ".join(tried)
    return f"port {place.port} of {hosts or 'its own machine'} ({what or 'no address of another machine'})"


def _found(store: Store, last: str, deadline: float) -> _Place:
    """Where the first rank listens, unless this rank has entered there before: it waits for the next place."""
    pause_s, waiting = 0.005, Waiting(deadline)
    while True:
        held = _held(store, _PLACE)
        if held and (place := _Place(**json.loads(held))).key != last:
            return place
        waiting.say("rank 0 has")
        try:
            time.sleep(min(pause_s, _left(deadline)))
        except TimeoutError:
            raise RankError(
                "rank 0 has not made this loader.", hint="make it on all ranks; look at its log"
            ) from None
        pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)


def _held(store: Store, name: str) -> bytes:
    """What the store holds, at once; nothing if it never held any."""
    held: bytes = store.get(name) if store.check([name]) else b""
    return held


def _left(deadline: float) -> float:
    left_s = deadline - time.monotonic()
    if left_s <= 0:
        raise TimeoutError("timed out")
    return left_s


def _read(connection: socket.socket, count: int, deadline: float) -> bytes:
    """Exactly `count` bytes."""
    found = b""
    while len(found) < count:
        connection.settimeout(_left(deadline))
        piece = connection.recv(count - len(found))
        if not piece:
            raise ConnectionError("the connection was ended")
        found += piece
    return found
