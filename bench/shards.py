"""Writing WebDataset tar shards."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Iterable, Mapping
from pathlib import Path

__all__ = ["write_shard"]


def write_shard(path: Path, samples: Iterable[tuple[str, Mapping[str, bytes]]]) -> None:
    """Write a tar archive of samples: of each its key, and its files by extension."""
    with tarfile.open(path, "w") as archive:
        for key, files in samples:
            for extension, data in files.items():
                member = tarfile.TarInfo(f"{key}.{extension}")
                member.size = len(data)
                archive.addfile(member, io.BytesIO(data))
