"""Fixtures for tests of the index."""

from __future__ import annotations

from pathlib import Path

import pytest
from lines_format import MARKS, write_lines


@pytest.fixture
def marks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file in which every scan is noted."""
    path = tmp_path / "marks"
    monkeypatch.setenv(MARKS, str(path))
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Three files of 7, 0 and 4 rows."""
    for name, rows in (("a", 7), ("b", 0), ("c", 4)):
        write_lines(tmp_path / "data" / f"{name}.lines", rows, mtime=1_000)
    return tmp_path / "data"
