"""`made_once`: one process of a node makes what the others wait for.

It holds `<cache>/locks/<key>.lock` meanwhile, which the system frees when a process dies.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterator
from typing import TypeVar

from filelock import FileLock, Timeout

from dataflow.index.cache import cache_folder

__all__ = ["made_once"]

logger = logging.getLogger("dataflow.index")

T = TypeVar("T")

# After this long a maker is taken to hang, and the one that waited makes the file for itself.
LOCK_TIMEOUT_S = 3600.0


def made_once(
    key: str,
    what: str,
    find: Callable[[], T | None],
    make: Callable[[], T],
    *,
    timeout_s: float = LOCK_TIMEOUT_S,
) -> T:
    """What `find` finds; else what `make` makes, in one process of this node while the others wait."""
    found = find()
    if found is not None:
        return found
    with _lock(key, what, timeout_s):
        found = find()
        return make() if found is None else found


@contextlib.contextmanager
def _lock(key: str, what: str, timeout_s: float) -> Iterator[None]:
    folder = cache_folder() / "locks"
    lock = FileLock(folder / f"{key}.lock")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        try:
            lock.acquire(timeout=0)
        except Timeout:
            logger.info("waiting for another process that is making %s", what)
            lock.acquire(timeout=timeout_s)
    except Timeout:
        logger.warning("another process has been making %s for %.0f s; no longer waiting", what, timeout_s)
    except (OSError, NotImplementedError) as error:
        # Without a lock several processes do the same work, and the last rename wins.
        logger.debug("no lock in %s: %s", folder, error)
    try:
        yield
    finally:
        lock.release()
