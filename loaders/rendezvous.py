"""How ranks find each other: the first one listens, and says where in the store of torch.distributed."""

from __future__ import annotations

import contextlib
import hashlib
import json
import secrets
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch.distributed as dist
from torch.distributed.distributed_c10d import PrefixStore, _get_default_store

from dataflow.errors import PlanError, RankError
from dataflow.options import World
from loaders.exchange import Exchange

__all__ = ["connect", "open_exchange"]

Store = Any
Group = Any
# How long all ranks have to come; to reach one address; and to answer there, which a stranger may never do.
_COMING_S = 600.0
_REACHING_S = 5.0
_ANSWER_S = 30.0
_LONGEST_PAUSE_S = 0.5
_KEY_BYTES = 16
_RANK_BYTES = 8


def open_exchange(world: World, group: Group | None = None) -> Exchange:
    """What the ranks of `group` (default: all) tell each other over; every one of them must call this.

    Nothing of it belongs to torch.distributed, whose groups may be destroyed while this goes on.

    Raises:
        PlanError: `world` is not the group's.
        RankError: not all ranks come in time, or the first cannot be reached.
    """
    rank, size = dist.get_rank(group), dist.get_world_size(group)
    if (world.rank, world.size) != (rank, size):
        raise PlanError(
            f"rank={world.rank} of world_size={world.size}, and the process group has this as rank {rank} of {size}.",
            hint="pass the group= or mesh= of the ranks that get different rows, or call counted() on the pipeline",
        )
    ranks = range(size) if group is None else dist.get_process_group_ranks(group)
    name = hashlib.sha256(json.dumps(list(ranks)).encode()).hexdigest()[:16]
    store = PrefixStore(f"dataflow/{name}", _get_default_store())
    try:
        return Exchange(rank, connect(store, rank, size))
    except RankError:
        raise
    except (RuntimeError, OSError) as error:
        raise RankError(
            f"the ranks cannot be connected: {error}", hint="look at the logs: a rank is gone"
        ) from error


def connect(store: Store, rank: int, size: int, coming_s: float = _COMING_S) -> dict[int, socket.socket]:
    """Connections of the first of `size` ranks to all others, of another rank to the first.

    Every rank calls this as often as the others, on the same store.

    Raises:
        RankError: not all ranks come within `coming_s`, or the first cannot be reached.
    """
    turn = store.add(f"turn of {rank}", 1)
    place = f"place {turn}"
    deadline = time.monotonic() + coming_s
    if rank:
        return {0: _reach(store, place, rank, deadline)}
    with _listening(size) as listener:
        ask, answer = secrets.token_bytes(_KEY_BYTES), secrets.token_bytes(_KEY_BYTES)
        where = {"addresses": _addresses(store), "port": listener.getsockname()[1]}
        store.set(place, json.dumps(where | {"ask": ask.hex(), "answer": answer.hex()}))
        return _received(listener, size, ask, answer, deadline)


# ---- the first rank


@contextmanager
def _listening(size: int) -> Iterator[socket.socket]:
    dual = socket.has_dualstack_ipv6()
    family = socket.AF_INET6 if dual else socket.AF_INET
    with socket.create_server(("", 0), family=family, backlog=size, dualstack_ipv6=dual) as listener:
        yield listener


def _addresses(store: Store) -> list[str]:
    """Where this machine may be reached: as the ranks reach their store, by its name, and on itself."""
    found: list[str] = []
    while isinstance(store, PrefixStore):
        store = store.underlying_store
    master = getattr(store, "host", None)
    if master:
        # No packet is sent: this asks the system from which address it would send one.
        with contextlib.suppress(OSError):
            family, kind, *_, address = socket.getaddrinfo(master, 9, type=socket.SOCK_DGRAM)[0]
            with socket.socket(family, kind) as probe:
                probe.connect(address)
                found.append(probe.getsockname()[0])
    with contextlib.suppress(OSError):
        named = socket.getaddrinfo(socket.gethostname(), None, type=socket.SOCK_STREAM)
        found.extend(str(address[0]) for *_, address in named)
    return list(dict.fromkeys([*found, "127.0.0.1", "::1"]))


def _received(
    listener: socket.socket, size: int, ask: bytes, answer: bytes, deadline: float
) -> dict[int, socket.socket]:
    """A connection to each other rank. Whoever else calls at the port does not know what to ask."""
    found: dict[int, socket.socket] = {}
    try:
        while len(found) < size - 1:
            listener.settimeout(_left(deadline))
            connection, _ = listener.accept()
            rank = _asked(connection, ask, answer)
            if rank is None or not 0 < rank < size:
                connection.close()
                continue
            if rank in found:
                found[rank].close()  # it tried another way
            found[rank] = connection
        return found
    except BaseException as error:
        for connection in found.values():
            connection.close()
        if isinstance(error, TimeoutError):
            missing = [rank for rank in range(1, size) if rank not in found]
            raise RankError(
                f"ranks {missing} have not made this loader.", hint="make it on all ranks; look at their logs"
            ) from None
        raise


def _asked(connection: socket.socket, ask: bytes, answer: bytes) -> int | None:
    """The rank at the other end, which has been answered; None for a stranger."""
    try:
        connection.settimeout(_REACHING_S)
        words = _read(connection, _KEY_BYTES + _RANK_BYTES)
        if not secrets.compare_digest(words[:_KEY_BYTES], ask):
            return None
        connection.sendall(answer)
    except OSError:
        return None
    return int.from_bytes(words[_KEY_BYTES:], "little")


# ---- the others


def _reach(store: Store, place: str, rank: int, deadline: float) -> socket.socket:
    """A connection to the first rank."""
    where = json.loads(_published(store, place, deadline))
    tried: list[str] = []
    for address in where["addresses"]:
        try:
            connection = socket.create_connection((address, where["port"]), _REACHING_S)
        except OSError as error:
            tried.append(f"{address}: {error}")
            continue
        try:
            connection.sendall(bytes.fromhex(where["ask"]) + rank.to_bytes(_RANK_BYTES, "little"))
            connection.settimeout(_ANSWER_S)
            if secrets.compare_digest(_read(connection, _KEY_BYTES), bytes.fromhex(where["answer"])):
                return connection
            tried.append(f"{address}: another program answers")
        except OSError as error:
            tried.append(f"{address}: {error}")
        connection.close()
    raise RankError(
        f"rank 0 cannot be reached at port {where['port']} of {'; '.join(tried)}.",
        hint="let the nodes reach each other's ports, or call counted() on the pipeline",
    )


def _published(store: Store, place: str, deadline: float) -> bytes:
    pause_s = 0.005
    while not store.check([place]):
        try:
            time.sleep(min(pause_s, _left(deadline)))
        except TimeoutError:
            raise RankError(
                "rank 0 has not made this loader.", hint="make it on all ranks; look at its log"
            ) from None
        pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)
    found: bytes = store.get(place)
    return found


# ---- both


def _left(deadline: float) -> float:
    left_s = deadline - time.monotonic()
    if left_s <= 0:
        raise TimeoutError
    return left_s


def _read(connection: socket.socket, count: int) -> bytes:
    """Exactly `count` bytes."""
    found = b""
    while len(found) < count:
        piece = connection.recv(count - len(found))
        if not piece:
            raise ConnectionError("the connection was ended")
        found += piece
    return found
