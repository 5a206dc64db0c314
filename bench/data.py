"""Data sets on disk, made once and kept in a cache folder."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import platformdirs
from filelock import FileLock

from connectors.contract import Json
from dataflow.index.cache import key_of

__all__ = ["data_folder", "data_set"]


def data_folder() -> Path:
    """Where data sets are kept: `DATAFLOW_BENCH`, or a folder in the user's cache."""
    chosen = os.environ.get("DATAFLOW_BENCH")
    return (
        Path(chosen) if chosen else Path(platformdirs.user_cache_dir("dataflow", appauthor=False)) / "bench"
    )


def data_set(name: str, make: Callable[[Path], None], **facts: Json) -> Path:
    """The folder of a data set, which `make` fills when there is none yet.

    `facts` are what the files depend on (sizes, a version of the recipe): others give another folder. The folder
    is there whole or not at all.
    """
    root = data_folder()
    root.mkdir(parents=True, exist_ok=True)
    folder = root / f"{name}-{key_of(name, facts)[:12]}"
    with FileLock(root / f"{folder.name}.lock"):
        if not folder.is_dir():
            unfinished = root / f"{folder.name}.part"
            shutil.rmtree(unfinished, ignore_errors=True)
            unfinished.mkdir()
            make(unfinished)
            unfinished.rename(folder)
    return folder
