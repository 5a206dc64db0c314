"""`Kept`: what was read last of files, bounded in bytes, for any number of threads."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

from connectors.contract import FileInfo
from connectors.store import Store

__all__ = ["Kept"]

V = TypeVar("V")


class Kept(Generic[V]):
    """One value a file, forgotten in the order of last use when all together weigh more than `max_bytes`.

    A copy, also in another process, begins empty. Two threads that miss at once both make the value.
    """

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self._lock = threading.Lock()
        self._values: OrderedDict[tuple[Store, FileInfo], tuple[V, int]] = OrderedDict()
        self._bytes = 0

    def __reduce__(self) -> tuple[type[Kept[V]], tuple[int]]:
        return Kept, (self.max_bytes,)

    def get(self, store: Store, info: FileInfo, make: Callable[[], tuple[V, int]]) -> V:
        """The value of a file; `make` gives it, with its weight in bytes, where it is not kept."""
        key = (store, info)
        with self._lock:
            if key in self._values:
                self._values.move_to_end(key)
                return self._values[key][0]
        made, weight = make()
        with self._lock:
            if key not in self._values:
                self._values[key] = (made, weight)
                self._bytes += weight
            while self._bytes > self.max_bytes and len(self._values) > 1:
                self._bytes -= self._values.popitem(last=False)[1][1]
        return made
