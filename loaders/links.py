"""Connections between ranks: frames of whole numbers over sockets that never block."""

from __future__ import annotations

import contextlib
import os
import selectors
import socket
import struct
import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence

__all__ = ["Links"]

_PIECE_BYTES = 1 << 16
_WORD_BYTES = 8
# A node that lost its power or its network says nothing: its silence is noticed within about a minute.
_OPTIONS: tuple[tuple[int, str, int], ...] = (
    (socket.SOL_SOCKET, "SO_KEEPALIVE", 1),
    (socket.IPPROTO_TCP, "TCP_KEEPIDLE", 20),
    (socket.IPPROTO_TCP, "TCP_KEEPINTVL", 10),
    (socket.IPPROTO_TCP, "TCP_KEEPCNT", 4),
    (socket.IPPROTO_TCP, "TCP_USER_TIMEOUT", 60_000),
    (socket.IPPROTO_TCP, "TCP_NODELAY", 1),
)


class Links:
    """The connections of one rank, by the other's rank. One thread at a time uses them; any may `ring`.

    What is sent waits in memory until the other rank takes it, so that no rank waits for one that is busy.
    """

    def __init__(self, connections: Mapping[int, socket.socket]) -> None:
        self._links = {rank: _Link(connection) for rank, connection in connections.items()}
        self._pid = os.getpid()
        self._selector = selectors.DefaultSelector()
        self._ear, self._bell = socket.socketpair()
        for end in (self._ear, self._bell):
            end.setblocking(False)
        self._selector.register(self._ear, selectors.EVENT_READ)
        for rank, link in self._links.items():
            self._selector.register(link.connection, selectors.EVENT_READ, rank)

    def __iter__(self) -> Iterator[int]:
        """The other ranks."""
        return iter(self._links)

    def __len__(self) -> int:
        return len(self._links)

    def received(self, rank: int) -> deque[list[int]]:
        """The frames that have come from a rank, the oldest first: whoever reads one takes it out."""
        return self._links[rank].frames

    def gone(self, rank: int) -> bool:
        """Whether the connection has ended: nothing comes behind what was received."""
        return self._links[rank].gone

    def unsent(self, rank: int) -> bool:
        """Whether a part of what was sent to a rank still waits here."""
        return bool(self._links[rank].unsent)

    def send(self, ranks: Iterable[int], frame: Sequence[int]) -> None:
        """Send one frame to each of `ranks`; those that are gone miss it."""
        packed = struct.pack(f"<{1 + len(frame)}q", len(frame), *frame)
        for rank in ranks:
            link = self._links[rank]
            link.send(packed)
            self._watch(rank, link)

    def wait(self, timeout_s: float) -> list[int]:
        """The ranks from which something has come, or that are gone; none where the time is over or the bell rang."""
        heard = []
        for key, events in self._selector.select(timeout_s):
            if key.fileobj is self._ear:
                with contextlib.suppress(OSError):
                    self._ear.recv(_PIECE_BYTES)
                continue
            link = self._links[key.data]
            if events & selectors.EVENT_READ:
                link.receive()
                heard.append(key.data)
            if events & selectors.EVENT_WRITE:
                link.flush()
            self._watch(key.data, link)
        return heard

    def flush(self, timeout_s: float) -> None:
        """Wait until all that was sent has gone, or the time is over."""
        deadline = time.monotonic() + timeout_s
        while any(link.unsent for link in self._links.values()) and time.monotonic() < deadline:
            self.wait(deadline - time.monotonic())

    def _watch(self, rank: int, link: _Link) -> None:
        """Wait for what the link needs next."""
        if link.connection not in self._selector.get_map():
            return
        if link.gone:
            self._selector.unregister(link.connection)
        else:
            writes = selectors.EVENT_WRITE if link.unsent else 0
            self._selector.modify(link.connection, selectors.EVENT_READ | writes, rank)

    def ring(self) -> None:
        """Let `wait` return, now or at its next call. Takes no lock, so that a finalizer may call it."""
        with contextlib.suppress(OSError):
            self._bell.send(b"\0")

    @property
    def inherited(self) -> bool:
        """Whether this is a forked child, and the connections are its parent's."""
        return os.getpid() != self._pid

    def close(self) -> None:
        """End all connections, but in a forked child; may be called twice."""
        for link in self._links.values():
            if not self.inherited:
                link.end()
            link.connection.close()
        self._selector.close()
        self._ear.close()
        self._bell.close()


class _Link:
    """One connection: the frames that have come, and the bytes that have not gone yet."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self.frames: deque[list[int]] = deque()
        self.gone = False
        self._incoming, self.unsent = bytearray(), bytearray()
        connection.setblocking(False)
        for level, name, value in _OPTIONS:
            # Not every system has all of them, nor every kind of socket.
            with contextlib.suppress(AttributeError, OSError):
                connection.setsockopt(level, getattr(socket, name), value)

    def send(self, packed: bytes) -> None:
        if not self.gone:
            self.unsent += packed
            self.flush()

    def flush(self) -> None:
        """Send what can be sent at once."""
        try:
            while self.unsent:
                del self.unsent[: self.connection.send(self.unsent)]
        except BlockingIOError:
            return
        except OSError:
            # The other rank may have said why before it went.
            self.receive()
            self._end()

    def receive(self) -> None:
        """Take in what has come."""
        try:
            while piece := self.connection.recv(_PIECE_BYTES):
                self._incoming += piece
            self._end()
        except BlockingIOError:
            pass
        except OSError:
            self._end()
        self._unpack()

    def _end(self) -> None:
        self.gone = True
        self.unsent.clear()

    def _unpack(self) -> None:
        at = 0
        while len(self._incoming) - at >= _WORD_BYTES:
            (count,) = struct.unpack_from("<q", self._incoming, at)
            behind = at + _WORD_BYTES * (1 + count)
            if len(self._incoming) < behind:
                break
            self.frames.append(list(struct.unpack_from(f"<{count}q", self._incoming, at + _WORD_BYTES)))
            at = behind
        del self._incoming[:at]

    def end(self) -> None:
        """Tell the other rank that nothing more comes."""
        with contextlib.suppress(OSError):
            # What lies unread would make the kernel drop what is still under way to it.
            self.receive()
            self.connection.shutdown(socket.SHUT_WR)
