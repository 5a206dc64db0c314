"""Whether the files that a loader writes beside its batches can be written, asked before it runs."""

from __future__ import annotations

import os
from pathlib import Path
from tempfile import TemporaryFile

from dataflow.errors import PlanError
from dataflow.execute.whole_file import target_of
from dataflow.options import LoaderOptions

__all__ = ["check_files"]


def check_files(options: LoaderOptions) -> None:
    """The quarantine and the trace can be written; missing folders above them are made, the files are not.

    Raises:
        PlanError: one cannot.
    """
    for name, file in (("quarantine", options.errors.quarantine), ("trace", options.trace)):
        if file is not None:
            _check(name, file)


def _check(name: str, file: Path) -> None:
    try:
        target = target_of(file)
        target.parent.mkdir(parents=True, exist_ok=True)
        # Rights say too little: the store may be read-only, or full.
        with TemporaryFile(dir=target.parent):
            pass
        if _is_there(target) and not os.access(target, os.W_OK):
            raise PermissionError(None, "no right to write to it")
    except (OSError, ValueError) as error:
        reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
        raise PlanError(
            f"{name}={str(file)!r} cannot be written: {reason}.",
            hint="give a file in a folder that is there and may be written to",
        ) from error


def _is_there(file: Path) -> bool:
    """Whether it is; unlike `exists` an error where there can be no file of that name."""
    try:
        file.stat()
    except FileNotFoundError:
        return False
    return True
