"""`RemoteFile`: a file of a store that goes on where it was when a connection breaks."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from functools import partial
from typing import Any, Final, TypeAlias, TypeVar

import fsspec
from fsspec.caching import BaseCache, BytesCache, ReadAheadCache

from connectors.faults import changed
from connectors.file_info import FileInfo, listed
from connectors.retry import Retry
from connectors.stop import stop_of_thread
from connectors.transient import ShortRead
from dataflow.errors import ConnectorError, DataError, DataflowError
from dataflow.wording import counted

__all__ = ["RemoteFile"]

Handle: TypeAlias = Any  # what fsspec opens has no type

T = TypeVar("T")

# The most that is asked for at once behind a failure, so that a large range gets through where connections often break.
_PIECE_BYTES: Final = 8 << 20


class RemoteFile:
    """One file, read by one caller at a time: what Arrow needs of a Python file.

    A read that fails for the moment is made again for the bytes that are still missing, as `retry` says. The file is
    opened anew for that, since what fsspec's caches hold behind a failure is not to be relied on, and must still be
    of the same version.

    Args:
        file: as its listing had it; of a path alone the version is asked for, which costs a request.
        read_ahead: fsspec may read on behind a range, as much as the store's block size.

    Raises:
        ConnectorError: no try was successful.
        DataError: the store has a file of another size than the listing had.
        Exception: what the store raises where another try would not help.
    """

    def __init__(
        self, fs: fsspec.AbstractFileSystem, file: FileInfo | str, retry: Retry, *, read_ahead: bool = True
    ) -> None:
        self.closed = False
        self._fs, self._retry, self._stop = fs, retry, stop_of_thread()
        self._read_ahead = read_ahead
        self._path = file if isinstance(file, str) else file.path
        self._handle: Handle = None
        self._at = 0  # where the handle stands
        self._position = 0
        # Something failed behind the last bytes that came: by now the file may be another one.
        self._doubtful = False
        self._version = self._run(self._look) if isinstance(file, str) else file
        self._run(self._begin)

    def read(self, size: int = -1) -> bytes:
        """The next `size` bytes, fewer only at the end of the file; all that are left where it is negative.

        Raises:
            ConnectorError: the store cannot be read.
            DataError: the file was changed between two tries.
        """
        missing = size if size >= 0 else self._ask(self._end) - self._position
        parts = []
        while missing > 0:
            part = self._ask(partial(self._next, missing))
            if not part:
                break
            self._position += len(part)
            parts.append(part)
            missing -= len(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def seek(self, place: int, whence: int = 0) -> int:
        """Move to `place`, counted from the start, from here, or from the end of the file; nothing is read.

        Raises:
            ConnectorError: the store cannot be asked where the end is.
        """
        start = (0, self._position)[whence] if whence < 2 else self._ask(self._end)
        self._position = start + place
        return self._position

    def tell(self) -> int:
        return self._position

    def close(self) -> None:
        self.closed = True
        self._drop()

    def _ask(self, request: Callable[[], T]) -> T:
        try:
            return self._run(request)
        except DataflowError:
            raise
        except Exception as error:
            # Stores have exceptions of their own that are no OSError.
            raise ConnectorError(
                f"{self._where()} cannot be read: {type(error).__name__}: {error}",
                hint="check the connection and the rights to the store",
            ) from error

    def _run(self, request: Callable[[], T]) -> T:
        return self._retry.run(partial(self._attempt, request), self._where, self._stop)

    def _attempt(self, request: Callable[[], T]) -> T:
        try:
            return request()
        except Exception:
            self._doubtful = True
            self._drop()
            raise

    def _where(self) -> str:
        return f"{self._fs.unstrip_protocol(self._path)} at byte {self._position}"

    def _begin(self) -> None:
        length = _length(self._opened())
        now = self._version if length is None else self._version._replace(size=length)
        difference = self._version.difference(now)
        if difference:
            raise changed(self._path, difference)

    def _next(self, size: int) -> bytes:
        """At most `size` bytes from the position on; none only at the end of the file."""
        handle, was_doubtful = self._opened(), self._doubtful
        if self._at != self._position:
            self._at = handle.seek(self._position)
        wanted = min(size, _PIECE_BYTES) if was_doubtful else size
        found: bytes = handle.read(wanted)
        self._at += len(found)
        if was_doubtful:
            # Only now: a version that is there still was there when the bytes were read.
            self._check_version()
        if not found and self._position < self._version.size:
            raise ShortRead(f"no byte came, and the file has {self._version.size}; is a copy of it cut off?")
        if len(found) > wanted:
            # Arrow would write them behind the end of its buffer.
            raise _too_much(self._where(), len(found), wanted)
        self._doubtful = False
        return found

    def _end(self) -> int:
        handle = self._opened()
        length = _length(handle)
        if length is None:
            length = self._at = handle.seek(0, 2)
        return length

    def _opened(self) -> Handle:
        if self._handle is None:
            if self._doubtful:
                self._forget_listing()
            self._handle, self._at = self._fs.open(self._path, "rb"), 0
            _restrain(self._handle, self._fs.unstrip_protocol(self._path), read_ahead=self._read_ahead)
        return self._handle

    def _drop(self) -> None:
        handle, self._handle = self._handle, None
        if handle is not None:
            # On a broken connection that may fail too.
            with contextlib.suppress(Exception):
                handle.close()

    def _forget_listing(self) -> None:
        """Have fsspec ask the store how large the file is, which it may have kept from before a change."""
        self._fs.invalidate_cache(self._path)

    def _look(self) -> FileInfo:
        return listed(self._fs.info(self._path), self._path)

    def _check_version(self) -> None:
        """Raise unless the file is what it was when the read began."""
        self._forget_listing()
        difference = self._version.difference(self._look())
        if difference:
            raise DataError(
                f"it was changed while it was read: {difference}.",
                file=self._path,
                offset=self._position,
                hint="leave the files of a run as they are; what was changed is indexed again at the next start",
            )


def _length(handle: Handle) -> int | None:
    """The bytes of an open file; None where only a seek to its end would tell."""
    length: int | None = getattr(handle, "size", None)
    return length


def _restrain(handle: Handle, url: str, *, read_ahead: bool) -> None:
    """Let the cache of one of fsspec's own files take no range that is not whole, and without `read_ahead` no other one
    than is asked for.

    Some caches join ranges, and would hand out what follows a short one in the place of what is missing.
    """
    cache, length = getattr(handle, "cache", None), _length(handle)
    # Caches from elsewhere call their fetcher in ways of their own.
    if not isinstance(cache, BaseCache) or type(cache).__module__ != BaseCache.__module__ or length is None:
        return
    fetch = cache.fetcher

    def fetch_whole(start: int, end: int) -> bytes:
        found: bytes = fetch(start, end)
        wanted = max(0, min(end, length) - start)
        if len(found) < wanted:
            raise ShortRead(f"the store gave {len(found)} of {counted(wanted, 'byte')} from byte {start} on")
        if len(found) > wanted:
            raise _too_much(f"{url} at byte {start}", len(found), wanted)
        return found

    cache.fetcher = fetch_whole
    # Another kind may be what the user has chosen, as one on the disk that outlives the file.
    if not read_ahead and isinstance(cache, ReadAheadCache | BytesCache):
        handle.cache = BaseCache(cache.blocksize, fetch_whole, length)


def _too_much(where: str, found: int, wanted: int) -> ConnectorError:
    return ConnectorError(
        f"{where}: the store gave {counted(found, 'byte')} where {wanted} were asked for.",
        hint="the file has grown, or the store knows no byte ranges: download it first",
    )
