"""Cores that a process may use, as the scheduler and its cgroup say."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from dataflow import cores
from dataflow.cores import available_cores


@pytest.fixture(autouse=True)
def _eight_cores(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: set(range(8)), raising=False)
    monkeypatch.setattr(cores, "_CGROUP", tmp_path)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("200000 100000", 2), ("150000 100000", 2), ("10000 100000", 1), ("max 100000", 8), ("1600000 100000", 8),
     ("", 8), ("nonsense", 8), ("100000 0", 8), ("0 100000", 8)],
)  # fmt: skip
def test_a_quota_of_the_cgroup_is_heeded(tmp_path: Path, text: str, expected: int) -> None:
    (tmp_path / "cpu.max").write_text(text + "\n")
    assert available_cores() == expected


@pytest.mark.parametrize(("quota", "expected"), [("300000", 3), ("250000", 3), ("-1", 8)])
def test_a_quota_of_the_older_kind_of_cgroup_is_heeded(tmp_path: Path, quota: str, expected: int) -> None:
    (tmp_path / "cpu").mkdir()
    (tmp_path / "cpu" / "cpu.cfs_quota_us").write_text(quota + "\n")
    (tmp_path / "cpu" / "cpu.cfs_period_us").write_text("100000\n")
    assert available_cores() == expected


def test_without_a_cgroup_the_cores_that_the_scheduler_gives_count() -> None:
    assert available_cores() == 8
