"""`FileInfo`: a file as its store shows it, and what tells one version of it from another."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import Any, Final, NamedTuple

from dataflow.errors import ConnectorError
from dataflow.wording import counted

__all__ = ["NO_FILE", "FileInfo", "listed"]

# The size of what lies under a name and cannot be read as a file: a pipe, a device, a link that leads nowhere.
NO_FILE: Final = -1

# What the file systems of fsspec call the time of the last change. `created` only where there is nothing else: an
# object of a store is written whole, so that it is as old as its content; a file that is changed in place is not.
_CHANGED: Final = (
    "mtime",  # local, SFTP, HDFS, Google
    "LastModified",  # S3 and what is like it
    "last_modified",  # Azure
    "updated",  # Google, as text of ISO 8601
    "Last-Modified",  # HTTP, as text of RFC 9110
    "created",  # memory
)


class FileInfo(NamedTuple):
    """A file as a listing of its store shows it: `path` is the full path inside the store.

    A tuple, because what is kept of files is looked up by it once a fragment.
    """

    path: str
    size: int
    mtime: float = 0.0
    etag: str = ""

    def difference(self, later: FileInfo) -> str:
        """What a later look at the file shows of another version; empty where it is the same.

        An etag says more than a time, which counts only where one of the two has no etag.
        """
        if self.size != later.size:
            return f"it had {counted(self.size, 'byte')} and has {later.size:,}"
        if self.etag and later.etag:
            return "" if self.etag == later.etag else f"its etag was {self.etag} and is {later.etag}"
        if self.mtime and later.mtime and self.mtime != later.mtime:
            return f"its time was {self.mtime} and is {later.mtime}"
        return ""


def listed(entry: Mapping[str, Any], path: str) -> FileInfo:
    """What fsspec's entry for a file says.

    Raises:
        ConnectorError: the store does not tell the size.
    """
    size = entry.get("size")
    if size is None:
        raise ConnectorError(
            f"the store does not tell the size of {path}.", hint="download it, or use a store that does"
        )
    etag = entry.get("ETag") or entry.get("etag") or ""
    return FileInfo(path, int(size), _changed(entry), etag.strip('"'))


def _changed(entry: Mapping[str, Any]) -> float:
    """When a file was last changed, in seconds since 1970; 0 where its entry does not tell."""
    times = (_seconds(entry.get(key)) for key in _CHANGED)
    return next((time for time in times if time), 0.0)


def _seconds(time: object) -> float:
    if isinstance(time, str):
        time = _read_time(time)
    if isinstance(time, datetime):
        return time.timestamp()
    return float(time) if isinstance(time, int | float) else 0.0


def _read_time(text: str) -> datetime | None:
    for read in (datetime.fromisoformat, parsedate_to_datetime):
        try:
            return read(text)
        except ValueError:
            continue
    return None
