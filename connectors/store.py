"""A store is a filesystem opened for reading: local paths go to Arrow's own files, the rest to fsspec."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import fsspec
import pyarrow as pa
from fsspec.implementations.local import LocalFileSystem
from fsspec.implementations.memory import MemoryFileSystem

from dataflow.errors import ConnectorError

__all__ = ["Store"]


_RETRY = "check the connection and the rights to the store"


class _Named:
    """A store's file whose errors name it, whatever the store's library raises."""

    def __init__(self, handle: Any, path: str) -> None:
        self._handle, self._path = handle, path

    @property
    def closed(self) -> bool:
        return bool(self._handle.closed)

    def read(self, size: int = -1) -> bytes:
        return self._named(self._handle.read, size)  # type: ignore[no-any-return]

    def seek(self, place: int, whence: int = 0) -> int:
        return self._named(self._handle.seek, place, whence)  # type: ignore[no-any-return]

    def tell(self) -> int:
        return self._named(self._handle.tell)  # type: ignore[no-any-return]

    def close(self) -> None:
        self._handle.close()

    def _named(self, method: Any, *arguments: int) -> Any:
        try:
            return method(*arguments)
        except Exception as error:
            raise ConnectorError(f"{self._path} cannot be read: {error}", hint=_RETRY) from error


@dataclass(frozen=True)
class Store:
    """One fsspec filesystem. Paths are full paths inside it, taken literally."""

    fs: fsspec.AbstractFileSystem = field(default_factory=LocalFileSystem)

    @property
    def is_local(self) -> bool:
        return isinstance(self.fs, LocalFileSystem)

    def open(self, path: str, *, memory_map: bool = False) -> pa.NativeFile:
        """Open a file for random reads; `memory_map` is honoured on the local disk.

        Raises:
            ConnectorError: the file is missing or cannot be read.
        """
        try:
            if self.is_local:
                # Arrow's files read without the GIL; fsspec's would call back into Python for every read.
                mapped = memory_map and Path(path).stat().st_size
                return pa.memory_map(path) if mapped else pa.OSFile(path, "r")
            if type(self.fs) is MemoryFileSystem:
                # It hands the same file object, with one cursor, to everyone who opens a path.
                return pa.BufferReader(self.fs.cat_file(path))
            handle: Any = _Named(self.fs.open(path, "rb"), path)
            return pa.PythonFile(handle, mode="r")
        except FileNotFoundError as error:
            raise ConnectorError(f"{path} does not exist.", hint="check the path and the scheme") from error
        except Exception as error:
            # Stores have exceptions of their own that are no OSError.
            raise ConnectorError(f"{path} cannot be opened: {error}", hint=_RETRY) from error

    def read(self, path: str, offset: int = 0, length: int | None = None) -> pa.Buffer:
        """Read `length` bytes at `offset` (to the end by default); fewer where the file ends earlier."""
        with self.open(path) as file:
            try:
                if offset:
                    file.seek(offset)
                return file.read_buffer(length)
            except OSError as error:
                raise ConnectorError(f"{path} cannot be read at byte {offset}: {error}") from error
