"""Writing a small file whole or not at all, whoever else writes it at the same time."""

from __future__ import annotations

import errno
import os
import stat
import uuid
from pathlib import Path

__all__ = ["target_of", "write_whole"]


def write_whole(file: Path, text: str) -> None:
    """Give `file` this text; until all of it is written, and where that fails, the file stays as it was.

    A link stays one: what it leads to is written.

    Raises:
        OSError: it cannot be written; nothing is left behind.
    """
    file = target_of(file)
    # A name of its own for each writer: another one's, also on another machine, is never renamed half written.
    temporary = file.with_name(f".{file.name}.{uuid.uuid4().hex}.part")
    try:
        temporary.write_text(text, "utf-8")
        temporary.replace(file)
    finally:
        temporary.unlink(missing_ok=True)


def target_of(file: Path) -> Path:
    """What is written under the name `file`: where its links lead; it need not be there yet.

    Raises:
        OSError: it is a folder, a device, a pipe or a socket, which no file may take the place of; links go round.
    """
    target = Path(os.path.realpath(file))
    try:
        mode = target.stat().st_mode
    except FileNotFoundError:
        return target
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(file))
    if not stat.S_ISREG(mode):
        raise OSError(errno.EINVAL, "it is no regular file", str(file))
    return target
