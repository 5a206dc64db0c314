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
            if isinstance(self.fs, MemoryFileSystem):
                # It hands the same file object, with one cursor, to everyone who opens a path.
                return pa.BufferReader(self.fs.cat_file(path))
            handle: Any = self.fs.open(path, "rb")
            return pa.PythonFile(handle, mode="r")
        except FileNotFoundError as error:
            raise ConnectorError(f"{path} does not exist.", hint="check the path and the scheme") from error
        except OSError as error:
            raise ConnectorError(f"{path} cannot be opened: {error}") from error

    def read(self, path: str, offset: int = 0, length: int | None = None) -> pa.Buffer:
        """Read `length` bytes at `offset` (to the end by default); fewer where the file ends earlier."""
        with self.open(path) as file:
            try:
                if offset:
                    file.seek(offset)
                return file.read_buffer(length)
            except OSError as error:
                raise ConnectorError(f"{path} cannot be read at byte {offset}: {error}") from error
