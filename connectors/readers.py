"""`Readers`: what a run keeps open of its files between one fragment and the next."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol, TypeVar, cast

from connectors.file_info import FileInfo

__all__ = ["Closes", "Readers"]


class Closes(Protocol):
    """What can be kept: a reader that holds no part of a fragment when it is not being used."""

    def close(self) -> None:
        """Give back the file."""


R = TypeVar("R", bound=Closes)


class Readers:
    """Idle readers of the files of one source, for any number of threads; those longest unused are closed.

    Args:
        most: how many are kept; with 0 each is closed behind its use.
    """

    def __init__(self, most: int = 0) -> None:
        self._most = most
        self._lock = threading.Lock()
        # By the order in which they were given back: a reader is for one thread at a time.
        self._idle: OrderedDict[Closes, FileInfo] = OrderedDict()
        self._of: dict[FileInfo, list[Closes]] = {}

    @contextmanager
    def lend(self, info: FileInfo, make: Callable[[], R]) -> Iterator[R]:
        """A reader of the file, made where none is idle. One whose use raised is not used again."""
        reader = cast(R | None, self._taken(info)) or make()
        try:
            yield reader
        except BaseException:
            reader.close()
            raise
        for unused in self._returned(info, reader):
            unused.close()

    def _taken(self, info: FileInfo) -> Closes | None:
        with self._lock:
            idle = self._of.get(info)
            if not idle:
                return None
            reader = idle.pop()
            del self._idle[reader]
            return reader

    def _returned(self, info: FileInfo, reader: Closes) -> list[Closes]:
        """Keep a reader; those that are too many."""
        with self._lock:
            self._idle[reader] = info
            self._of.setdefault(info, []).append(reader)
            return self._too_many()

    def _too_many(self) -> list[Closes]:
        found = []
        while len(self._idle) > self._most:
            reader, info = self._idle.popitem(last=False)
            self._of[info].remove(reader)
            if not self._of[info]:
                del self._of[info]
            found.append(reader)
        return found

    def close(self) -> None:
        """Close those that are idle, and from now on each behind its use."""
        with self._lock:
            self._most = 0
            unused = self._too_many()
        for reader in unused:
            reader.close()
