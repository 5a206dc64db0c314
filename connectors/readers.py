"""`Readers`: what a run keeps open of its files between one fragment and the next."""

from __future__ import annotations

import errno
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from typing import Protocol, TypeVar, cast

from dataflow.errors import ConnectorError

__all__ = ["Closes", "Readers"]


class Closes(Protocol):
    """What can be kept: a reader that holds no part of a fragment when it is not being used."""

    def close(self) -> None:
        """Give back the file."""


R = TypeVar("R", bound=Closes)


class Readers:
    """Idle readers of files, for any number of threads; those longest unused are closed.

    Args:
        most: how many are kept; with 0 each is closed behind its use.
    """

    def __init__(self, most: int = 0) -> None:
        self._most = most
        self._lock = threading.Lock()
        # In the order in which they were given back, and by what they read.
        self._idle: OrderedDict[Closes, Hashable] = OrderedDict()
        self._of: dict[Hashable, list[Closes]] = {}

    @contextmanager
    def lend(self, key: Hashable, make: Callable[[], R], check: Callable[[], None]) -> Iterator[R]:
        """A reader for one caller at a time, made where none is idle. One whose use raised is not used again.

        Args:
            key: what it reads and how: the name of the connector, the store and the file.
            check: is called where an idle one is used again; raises where the file is not what it was.
        """
        idle = cast(R | None, self._taken(key))
        reader = idle or self._made(make)
        try:
            if idle is not None:
                check()
            yield reader
        except BaseException:
            reader.close()
            raise
        with self._lock:
            self._idle[reader] = key
            self._of.setdefault(key, []).append(reader)
        self._keep(self._most)

    def _taken(self, key: Hashable) -> Closes | None:
        with self._lock:
            if key not in self._of:
                return None
            reader = self._of[key].pop()
            self._forget(reader)
            return reader

    def _made(self, make: Callable[[], R]) -> R:
        try:
            return make()
        except ConnectorError as error:
            if getattr(error.__cause__, "errno", None) not in (errno.EMFILE, errno.ENFILE):
                raise
        # Too many files are open, of which the idle ones need not be.
        self._keep(0)
        return make()

    def _keep(self, most: int) -> None:
        """Close the idle ones that are more than `most`."""
        unused = []
        with self._lock:
            while len(self._idle) > most:
                reader = next(iter(self._idle))
                self._of[self._idle[reader]].remove(reader)
                self._forget(reader)
                unused.append(reader)
        for reader in unused:
            reader.close()

    def _forget(self, reader: Closes) -> None:
        key = self._idle.pop(reader)
        if not self._of[key]:
            del self._of[key]

    def close(self) -> None:
        """Close those that are idle, and from now on each behind its use."""
        self._most = 0
        self._keep(0)
