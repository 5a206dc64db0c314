"""The first rank's door: all who call are heard side by side, and only ranks are let in."""

from __future__ import annotations

import selectors
import socket
import time
from collections.abc import Callable
from typing import NamedTuple

from dataflow.errors import RankError
from loaders.handshake import ANSWER_BYTES, challenge, confirmation, rank_in
from loaders.waiting import Waiting

__all__ = ["STRANGERS", "let_in"]

# How many may be heard at once beside the ranks, and how long each of them.
STRANGERS = 128
_HEARD_S = 10.0
# The system has no file for a connection that waits: without a pause this would spin until it has.
_PAUSE_S = 0.05
# One question to the store each time.
_LOOK_S = 1.0


class _Caller(NamedTuple):
    """Someone who has been challenged."""

    connection: socket.socket
    challenged: bytes
    deadline: float
    heard: bytearray


def let_in(
    listener: socket.socket, key: bytes, size: int, deadline: float, look: Callable[[], None]
) -> dict[int, socket.socket]:
    """A connection to each of the other ranks, which do not block.

    Args:
        deadline: on the monotonic clock.
        look: called every second; raises where a rank will not come.

    Raises:
        RankError: not all ranks come by the deadline.
    """
    door, waiting = _Door(listener, key, size), Waiting(deadline)
    try:
        while missing := [rank for rank in range(1, size) if rank not in door.ranks]:
            if time.monotonic() >= deadline:
                raise RankError(
                    f"ranks {missing} have not made this loader.",
                    hint="make it on all ranks; look at their logs",
                )
            look()
            waiting.say(f"ranks {missing} have")
            door.serve(min(deadline, time.monotonic() + _LOOK_S))
    except BaseException:
        for connection in door.ranks.values():
            connection.close()
        raise
    finally:
        door.shut()
    return door.ranks


class _Door:
    """Those who have been let in, by rank, and those who still have to answer, the oldest first."""

    def __init__(self, listener: socket.socket, key: bytes, size: int) -> None:
        self.ranks: dict[int, socket.socket] = {}
        self._callers: dict[int, _Caller] = {}
        self._listener, self._key, self._size = listener, key, size
        self._selector = selectors.DefaultSelector()
        listener.setblocking(False)
        self._selector.register(listener, selectors.EVENT_READ)

    def serve(self, deadline: float) -> None:
        """Wait for whoever says something first, and hear all who do; the deadline of a caller ends it, too."""
        first = next((caller.deadline for caller in self._callers.values()), deadline)
        for key, _ in self._selector.select(max(0.0, min(first, deadline) - time.monotonic())):
            if key.fileobj is self._listener:
                self._accept()
            elif (caller := self._callers.get(key.fd)) is not None:
                self._hear(caller)
        now = time.monotonic()
        for caller in [caller for caller in self._callers.values() if caller.deadline <= now]:
            self._turn_away(caller)

    def _accept(self) -> None:
        try:
            connection, _ = self._listener.accept()
        except (BlockingIOError, ConnectionAbortedError):
            return
        except OSError:
            # A lack of files, or a fault of the caller's network, which Linux reports here (accept(2)): both pass.
            time.sleep(_PAUSE_S)
            return
        if len(self._callers) >= STRANGERS + self._size:
            # A rank answers within milliseconds: the oldest is the likeliest stranger.
            self._turn_away(next(iter(self._callers.values())))
        self._challenge(connection)

    def _challenge(self, connection: socket.socket) -> None:
        connection.setblocking(False)
        caller = _Caller(connection, challenge(), time.monotonic() + _HEARD_S, bytearray())
        self._callers[connection.fileno()] = caller
        self._selector.register(connection, selectors.EVENT_READ)
        if not _sent(connection, caller.challenged):
            self._turn_away(caller)

    def _hear(self, caller: _Caller) -> None:
        try:
            piece = caller.connection.recv(ANSWER_BYTES - len(caller.heard))
        except BlockingIOError:
            return
        except OSError:
            piece = b""
        caller.heard.extend(piece)
        if not piece:
            self._turn_away(caller)
        elif len(caller.heard) == ANSWER_BYTES:
            self._judge(caller, bytes(caller.heard))

    def _judge(self, caller: _Caller, answered: bytes) -> None:
        rank = rank_in(self._key, caller.challenged, answered, self._size)
        confirmed = confirmation(self._key, caller.challenged, answered, self._size)
        if rank is None or not _sent(caller.connection, confirmed):
            self._turn_away(caller)
            return
        self._forget(caller)
        if rank in self.ranks:
            self.ranks[rank].close()  # it gave that one up, and calls again
        self.ranks[rank] = caller.connection

    def _turn_away(self, caller: _Caller) -> None:
        self._forget(caller)
        caller.connection.close()

    def _forget(self, caller: _Caller) -> None:
        self._selector.unregister(caller.connection)
        del self._callers[caller.connection.fileno()]

    def shut(self) -> None:
        """Turn away all who have not been let in."""
        for caller in list(self._callers.values()):
            self._turn_away(caller)
        self._selector.close()


def _sent(connection: socket.socket, words: bytes) -> bool:
    """Whether a new connection has taken a few bytes, as any does that has not ended."""
    try:
        return connection.send(words) == len(words)
    except OSError:
        return False
