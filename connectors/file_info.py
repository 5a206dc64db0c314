"""`FileInfo`: a file as its store shows it, and what tells one version of it from another."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from dataflow.errors import ConnectorError
from dataflow.wording import counted

__all__ = ["FileInfo", "listed"]


@dataclass(frozen=True, slots=True)
class FileInfo:
    """A file as a listing of its store shows it: `path` is the full path inside the store."""

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
    changed = next(
        (entry[key] for key in ("mtime", "LastModified", "last_modified", "created") if key in entry), 0
    )
    if isinstance(changed, datetime):
        changed = changed.timestamp()
    etag = entry.get("ETag") or entry.get("etag") or ""
    return FileInfo(
        path, int(size), float(changed) if isinstance(changed, int | float) else 0.0, etag.strip('"')
    )
