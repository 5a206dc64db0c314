"""Where cached files lie, how they are written, and how one process makes what the others wait for.

    <cache>/index/<key>.arrow            the index of one source
    <cache>/index/by-hash/<hash>.arrow   the file table of every version of it, for a resume
    <cache>/select/<key>.arrow           a bitmap of kept rows
    <cache>/mirror/<key>-<version>.arrow a remote index, here to be memory mapped
    <cache>/locks/<key>.lock             held while a file is made; the system frees it when a process dies

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
from typing import Any, TypeVar

import fsspec
import platformdirs
import pyarrow as pa
from filelock import FileLock, Timeout
from fsspec.implementations.local import LocalFileSystem

from connectors.contract import Json
from connectors.paths import place_of
from connectors.retry import Retry
from connectors.stop import stop_of_thread
from connectors.transient import ShortRead
from dataflow.index.codec import BrokenFile, check_whole, decode_files, encode_files
from dataflow.index.index import FileTable, Index

__all__ = ["Place", "cache_folder", "find_files", "keep_files", "key_of", "made_once"]

logger = logging.getLogger("dataflow.index")

T = TypeVar("T")

# After this long a maker is taken to hang, and the one that waited makes the file for itself.
LOCK_TIMEOUT_S = 3600.0
RETRY = Retry()
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
    """Where one cached file is: `path` inside an fsspec filesystem."""

    fs: fsspec.AbstractFileSystem
    path: str

    @classmethod
    def local(cls, path: Path) -> Place:
        return cls(LocalFileSystem(), str(path))

    @classmethod
    def at(cls, url: str | Path, key: str, options: Mapping[str, Json]) -> Place:
        """The place that `index=` names: a file if it ends in `.arrow`, else a file in that folder."""
        fs, path = place_of(url, options)
        return cls(fs, path if path.endswith(".arrow") else f"{path.rstrip('/')}/{key}.arrow")

    def by_hash(self, content: str) -> Place:
        """Where the file table of the index with this hash is kept beside this index."""
        return Place(self.fs, f"{self.path.rpartition('/')[0]}/by-hash/{content}.arrow")

    def read(self) -> pa.Buffer | None:
        """The bytes of the file, memory mapped (a remote one from a mirror), or None if it cannot be had."""
        try:
            return _map(self.path) if self._is_local else self._mirrored()
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
            if self._is_local:
                _write_local(Path(self.path), batch)
            else:
                sink = pa.BufferOutputStream()
                _write_to(sink, batch)
                self._put(sink.getvalue().to_pybytes())
            return True
        except Exception as error:  # as in `read`
            logger.warning("%s cannot be written: %s", self.path, error)
            return False

    @property
    def _is_local(self) -> bool:
        return isinstance(self.fs, LocalFileSystem)

    def _put(self, content: bytes) -> None:
        """Write a remote file; a store that fails for the moment is asked again, as it is for data.

        One put is one object: readers of an object store never see half of it. In other stores two that write at once
        may leave a file of both, which its checksums tell.
        """

        def put() -> None:
            self.fs.makedirs(self.path.rpartition("/")[0], exist_ok=True)
            self.fs.pipe_file(self.path, content)

        self._ask(put, "written")

    def _ask(self, request: Callable[[], T], verb: str) -> T:
        url = self.fs.unstrip_protocol(self.path)
        return RETRY.run(request, lambda: url, stop_of_thread(), verb=verb)

    def _look(self) -> dict[str, Any]:
        # What a listing was kept as may be from before the last write.
        self.fs.invalidate_cache(self.path)
        found: dict[str, Any] = self.fs.info(self.path)
        return found

    def _mirrored(self) -> pa.Buffer:
        """A remote file, from the mirror if it is still the same.

        Raises:
            BrokenFile: it is damaged, or was written while it was read.
            Exception: the store cannot be read.
        """
        info = self._ask(self._look, "read")
        version = key_of(
            str({k: info.get(k) for k in ("size", "ETag", "etag", "mtime", "LastModified", "created")})
        )
        key = key_of(str(self.fs.protocol), self.path)
        mirror = cache_folder() / "mirror" / f"{key}-{version}.arrow"
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            return _map(str(mirror))

        def fetch() -> bytes:
            found: bytes = self.fs.cat_file(self.path)
            if len(found) < (info.get("size") or 0):
                raise ShortRead(f"the store gave {len(found)} of {info['size']} bytes")
            return found

        data = self._ask(fetch, "read")
        check_whole(pa.py_buffer(data))
        with contextlib.suppress(OSError), _renamed(mirror) as temporary:
            temporary.write_bytes(data)
            for outdated in mirror.parent.glob(f"{key}-*.arrow"):
                outdated.unlink(missing_ok=True)
        return pa.py_buffer(data)


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


def _map(path: str) -> pa.Buffer:
    with pa.memory_map(path) as file:
        return file.read_buffer()


def _write_local(path: Path, batch: pa.RecordBatch) -> None:
    with _renamed(path) as temporary, temporary.open("wb") as file:
        _write_to(file, batch)
        file.flush()
        # Else a crash of the machine could leave the new name on a file of zeros.
        os.fsync(file.fileno())


@contextlib.contextmanager
def _renamed(path: Path) -> Iterator[Path]:
    path.parent.mkdir(parents=True, exist_ok=True)
    # What a killed process left; the name is ours alone, for the folder may be the user's.
    for left in path.parent.glob(".dataflow-*.part"):
        if time.time() - left.stat().st_mtime > _LEFT_BEHIND_S:
            left.unlink(missing_ok=True)
    temporary = path.with_name(f".dataflow-{uuid.uuid4().hex}.part")
    try:
        yield temporary
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def _write_to(sink: pa.NativeFile | io.BufferedWriter, batch: pa.RecordBatch) -> None:
    with pa.ipc.new_file(sink, batch.schema) as writer:
        writer.write_batch(batch)
