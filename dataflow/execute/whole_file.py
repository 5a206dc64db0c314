"""Writing a small file whole or not at all, whoever else writes it at the same time."""

from __future__ import annotations

import uuid
from pathlib import Path

__all__ = ["write_whole"]


def write_whole(file: Path, text: str) -> None:
    """Give `file` this text; until all of it is written, and where that fails, the file stays as it was.

    Raises:
        OSError: it cannot be written; nothing is left behind.
    """
    # A name of its own for each writer: another one's, also on another machine, is never renamed half written.
    temporary = file.with_name(f".{file.name}.{uuid.uuid4().hex}.part")
    try:
        temporary.write_text(text, "utf-8")
        temporary.replace(file)
    finally:
        temporary.unlink(missing_ok=True)
