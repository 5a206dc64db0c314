"""Where cached files lie, and how they are read and written.

    <cache>/index/<key>.arrow            the index of one source
    <cache>/index/by-hash/<hash>.arrow   the file table of every version of it, for a resume
    <cache>/select/<key>.arrow           a bitmap of kept rows
    <cache>/mirror/<key>-<version>.arrow a remote index, here to be memory mapped

A file is written under another name and renamed, so that it is there whole or not at all. A cache that
cannot be used costs time, never the run.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import logging
import os
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import platformdirs
import pyarrow as pa

from connectors.contract import FileInfo, Json
from connectors.file_info import listed
from connectors.paths import place_of
from connectors.stop import stop_of_thread
from connectors.store import Store
from dataflow.errors import ConnectorError
from dataflow.index.codec import BrokenFile, check_whole, decode_files, encode_files
from dataflow.index.index import FileTable, Index

__all__ = ["Place", "cache_folder", "find_files", "keep_files", "key_of"]

logger = logging.getLogger("dataflow.index")

T = TypeVar("T")

# No write takes this long, so that a temporary file of this age has no process any more.
_LEFT_BEHIND_S = 86_400.0


def cache_folder() -> Path:
    """The folder of everything cached: `DATAFLOW_CACHE`, or the user's cache folder."""
    return Path(os.environ.get("DATAFLOW_CACHE") or platformdirs.user_cache_dir("dataflow", appauthor=False))


def key_of(*parts: Json) -> str:
    """A file name for what these parts, and nothing else, decide."""
    return hashlib.blake2b(json.dumps(parts, sort_keys=True).encode(), digest_size=16).hexdigest()


@dataclass(frozen=True)
class Place:
    """Where one cached file is: `path` inside a store."""

    store: Store
    path: str

    @classmethod
    def local(cls, path: Path) -> Place:
        return cls(Store(), str(path))

    @classmethod
    def at(cls, url: str | Path, key: str, options: Mapping[str, Json]) -> Place:
        """The place that `index=` names: a file if it ends in `.arrow`, else a file in that folder."""
        fs, path = place_of(url, options)
        return cls(Store(fs), path if path.endswith(".arrow") else f"{path.rstrip('/')}/{key}.arrow")

    def by_hash(self, content: str) -> Place:
        """Where the file table of the index with this hash is kept beside this index."""
        return Place(self.store, f"{self.path.rpartition('/')[0]}/by-hash/{content}.arrow")

    def read(self) -> pa.Buffer | None:
        """The bytes of the file, memory mapped (a remote one from a mirror), or None if it cannot be had."""
        try:
            return _map(self.path) if self.store.is_local else self._mirrored()
        except FileNotFoundError:
            return None
        except BrokenFile as error:
            logger.info("%s is not used: %s", self.path, error)
            return None
        except Exception as error:
            # Every store has errors of its own, and none may stop a run.
            logger.warning("%s cannot be read: %s", self.path, error)
            return None

    def write(self, batch: pa.RecordBatch) -> bool:
        """Put a file there, whole or not at all; says in the log why it could not."""
        try:
            self.put(batch)
        except ConnectorError as error:
            logger.warning("%s", error.message)
            return False
        return True

    def put(self, batch: pa.RecordBatch) -> None:
        """Put a file there, whole or not at all.

        Raises:
            ConnectorError: it cannot be written.
        """
        try:
            if self.store.is_local:
                with _replaced(Path(self.path)) as file:
                    _write_to(file, batch)
            else:
                sink = pa.BufferOutputStream()
                _write_to(sink, batch)
                self._put(sink.getvalue().to_pybytes())
        except Exception as error:  # as in `read`
            raise ConnectorError(
                f"{self.path} cannot be written: {error}",
                hint="check the rights, the room that is left and the connection",
            ) from error

    def _put(self, content: bytes) -> None:
        """Write a remote file; a store that fails for the moment is asked again, as it is for data.

        One put is one object: readers of an object store never see half of it. In other stores two that write at once
        may leave a file of both, which its checksums tell.
        """

        def put() -> None:
            self.store.fs.makedirs(self.path.rpartition("/")[0], exist_ok=True)
            self.store.fs.pipe_file(self.path, content)

        self._ask(put, "written")

    def _ask(self, request: Callable[[], T], verb: str) -> T:
        url = self.store.fs.unstrip_protocol(self.path)
        return self.store.retry.run(request, lambda: url, stop_of_thread(), verb=verb)

    def _look(self) -> FileInfo:
        # What a listing was kept as may be from before the last write.
        self.store.fs.invalidate_cache(self.path)
        entry = self.store.fs.info(self.path)
        # Where the store does not tell the size, the checksums alone say whether all of it has come.
        return listed({**entry, "size": entry.get("size") or 0}, self.path)

    def _mirrored(self) -> pa.Buffer:
        """A remote file, from the mirror if it is still the same.

        Raises:
            BrokenFile: it is damaged, or was written while it was read.
            Exception: the store cannot be read.
        """
        info = self._ask(self._look, "read")
        mirror = self._mirror(info)
        if mirror is not None:
            with contextlib.suppress(FileNotFoundError, NotADirectoryError):
                return _map(str(mirror))
        (data,) = self.store.read_whole([info])
        if isinstance(data, Exception):
            raise data
        buffer = pa.py_buffer(data)
        check_whole(buffer)
        if mirror is not None:
            with contextlib.suppress(OSError):
                _keep_mirror(mirror, data)
        return buffer

    def _mirror(self, info: FileInfo) -> Path | None:
        """Where the mirror of this version is, or None where the store tells nothing that the next one would change."""
        if not (info.etag or info.mtime):
            return None
        key = key_of(str(self.store.fs.protocol), self.path)
        return cache_folder() / "mirror" / f"{key}-{key_of(info.size, info.mtime, info.etag)}.arrow"


def find_files(
    content: str, *, index: str | Path | None = None, storage_options: Mapping[str, Json] | None = None
) -> FileTable | None:
    """The file table of the index with this hash, looked for at `index=` and in the user's cache, or None."""
    for place in _places(index, storage_options):
        buffer = place.by_hash(content).read()
        with contextlib.suppress(BrokenFile):
            if buffer is not None:
                return decode_files(buffer)
    return None


def keep_files(
    index: Index, *, at: str | Path | None = None, storage_options: Mapping[str, Json] | None = None
) -> None:
    """Keep the file table of an index (at `index=`, else in the user's cache) for `find_files`."""
    for place in _places(at, storage_options):
        if place.by_hash(index.hash).write(encode_files(index.files, index.hash)):
            return


def _places(index: str | Path | None, options: Mapping[str, Json] | None) -> list[Place]:
    here = Place.local(cache_folder() / "index" / "any.arrow")
    return [here] if index is None else [Place.at(index, "any", options or {}), here]


def _map(path: str) -> pa.Buffer:
    with pa.memory_map(path) as file:
        return file.read_buffer()


def _keep_mirror(path: Path, data: bytes) -> None:
    with _replaced(path) as file:
        file.write(data)
    for other in path.parent.glob(f"{path.name.partition('-')[0]}-*.arrow"):
        if other != path:
            other.unlink(missing_ok=True)


@contextlib.contextmanager
def _replaced(path: Path) -> Iterator[io.BufferedWriter]:
    """Open a file that gets its name once it is written."""
    path.parent.mkdir(parents=True, exist_ok=True)
    _remove_left_behind(path.parent)
    temporary = path.with_name(f".dataflow-{uuid.uuid4().hex}.part")
    try:
        with temporary.open("wb") as file:
            yield file
            file.flush()
            # Else a crash of the machine could leave the new name on a file of zeros.
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def _remove_left_behind(folder: Path) -> None:
    """Remove what killed processes left; the name is ours alone, for the folder may be the user's."""
    for part in folder.glob(".dataflow-*.part"):
        # One that is gone has got its name meanwhile; one that may not be removed is another user's.
        with contextlib.suppress(OSError):
            if time.time() - part.stat().st_mtime > _LEFT_BEHIND_S:
                part.unlink()


def _write_to(sink: pa.NativeFile | io.BufferedWriter, batch: pa.RecordBatch) -> None:
    with pa.ipc.new_file(sink, batch.schema) as writer:
        writer.write_batch(batch)
