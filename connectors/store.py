"""A store is a filesystem opened for reading: local paths go to Arrow's own files, the rest to fsspec."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import fsspec
import pyarrow as pa
from fsspec.implementations.local import LocalFileSystem
from fsspec.implementations.memory import MemoryFileSystem

from connectors.faults import changed
from connectors.file_info import FileInfo, listed
from connectors.remote_file import RemoteFile
from connectors.retry import Retry
from connectors.stop import stop_of_thread
from connectors.transient import ShortRead, transient_cause
from dataflow.errors import ConnectorError, DataflowError
from dataflow.wording import counted

__all__ = ["Store"]


@dataclass(frozen=True)
class Store:
    """One fsspec filesystem. Paths are full paths inside it, taken literally.

    Fields:
        retry: how often a store that fails for the moment is asked again; the local disk is asked once.
    """

    fs: fsspec.AbstractFileSystem = field(default_factory=LocalFileSystem)
    retry: Retry = field(default=Retry(), repr=False, compare=False)

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        # fsspec works it out anew each time, and what is kept of files is looked up by store and file.
        return hash(self.fs)

    @cached_property
    def is_local(self) -> bool:
        return isinstance(self.fs, LocalFileSystem)

    def open(
        self, file: FileInfo | str, *, memory_map: bool = False, read_ahead: bool = True
    ) -> pa.NativeFile:
        """Open a file for random reads; `memory_map` is honoured on the local disk, `read_ahead` elsewhere.

        Args:
            file: as the index has it, so that a read that is tried again can tell whether it is still the same
                version; a path alone costs a request more.
            read_ahead: more may be read than is asked for, 5 to 50 MB with most stores. It helps whoever reads on;
                for whoever knows the ranges it is lost.

        Raises:
            ConnectorError: the file is missing or cannot be read.
            DataError: it is not as the index has it: on the local disk its size or time, on other stores its size. The
                rest is seen there where a read fails.
        """
        path = file if isinstance(file, str) else file.path
        try:
            if self.is_local:
                return self._open_local(file, path, memory_map=memory_map)
            if type(self.fs) is MemoryFileSystem:
                # It hands the same file object, with one cursor, to everyone who opens a path.
                content = self.fs.cat_file(path)
                _refuse(file, FileInfo(path, len(content)))
                return pa.BufferReader(content)
            handle: Any = RemoteFile(self.fs, file, self.retry, read_ahead=read_ahead)
            return pa.PythonFile(handle, mode="r")
        except DataflowError:
            raise
        except FileNotFoundError as error:
            raise _missing(path) from error
        except Exception as error:
            # Stores have exceptions of their own that are no OSError.
            raise ConnectorError(
                f"{path} cannot be opened: {error}", hint="check the connection and the rights to the store"
            ) from error

    def _open_local(self, file: FileInfo | str, path: str, *, memory_map: bool) -> pa.NativeFile:
        self.refuse_changed(file)
        # Arrow's files read without the GIL; fsspec's would call back into Python for every read.
        mapped = memory_map and Path(path).stat().st_size
        opened = pa.memory_map(path) if mapped else pa.OSFile(path, "r")
        try:
            # Again behind the open: another file may have been put in its place since the first look.
            self.refuse_changed(file)
        except BaseException:
            opened.close()
            raise
        return opened

    def refuse_changed(self, file: FileInfo | str) -> None:
        """Ask the local disk whether a file is still as the index has it; other stores are not asked.

        Raises:
            ConnectorError: it does not exist.
            DataError: it has another size or time.
        """
        if isinstance(file, str) or not self.is_local:
            return
        try:
            now = Path(file.path).stat()
        except FileNotFoundError as error:
            raise _missing(file.path) from error
        _refuse(file, FileInfo(file.path, now.st_size, now.st_mtime))

    def read(self, file: FileInfo | str, offset: int = 0, length: int | None = None) -> pa.Buffer:
        """Read `length` bytes at `offset` (to the end by default); fewer where the file ends earlier.

        Raises:
            ConnectorError: as `open`.
            DataError: the file was changed between two tries.
        """
        with self.open(file, read_ahead=False) as source:
            try:
                if offset:
                    source.seek(offset)
                return source.read_buffer(length)
            except DataflowError:
                raise
            except OSError as error:
                path = file if isinstance(file, str) else file.path
                raise ConnectorError(f"{path} cannot be read at byte {offset}: {error}") from error

    def read_whole(self, files: Sequence[FileInfo]) -> list[bytes | Exception]:
        """The content of each file of a remote store, or why that one alone cannot be read.

        All are asked for in one call, which an asynchronous store answers for all of them at once, and those that
        fail for the moment again.

        Raises:
            ConnectorError: the store goes on failing.
        """
        found: dict[FileInfo, bytes | Exception] = {}
        missing = list(files)

        def ask() -> None:
            got = self.fs.cat_ranges([info.path for info in missing], None, None, on_error="return")
            found.update((info, self._checked(info, one)) for info, one in zip(missing, got, strict=True))
            failed = [(info, one) for info, one in found.items() if isinstance(one, Exception)]
            again = [(info, error) for info, error in failed if transient_cause(error)]
            if again:
                missing[:] = [info for info, _ in again]
                raise again[0][1]

        self.retry.run(ask, lambda: self.fs.unstrip_protocol(missing[0].path), stop_of_thread())
        return [found[info] for info in files]

    def _checked(self, info: FileInfo, got: bytes | Exception) -> bytes | Exception:
        if isinstance(got, Exception) or len(got) >= info.size:
            return got
        try:
            self.fs.invalidate_cache(info.path)
            size = listed(self.fs.info(info.path), info.path).size
        except Exception as error:
            return error
        # A file that was replaced by a shorter one is whole.
        return got if len(got) >= size else ShortRead(f"the store gave {len(got)} of {counted(size, 'byte')}")


def _refuse(file: FileInfo | str, now: FileInfo) -> None:
    """Raise where a file is another version than the index has."""
    difference = "" if isinstance(file, str) else file.difference(now)
    if difference:
        raise changed(now.path, difference)


def _missing(path: str) -> ConnectorError:
    return ConnectorError(f"{path} does not exist.", hint="check the path and the scheme")
