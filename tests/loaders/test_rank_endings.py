"""However one rank ends, it ends at once and as Python would; the others hear of it in bounded time."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("rank_endings.py")
ROOT = Path(__file__).parents[2]
# A rank that waited for the other, which waits to be told that this one has ended, would wait for ever.
TIMEOUT_S = 100


def _begun(way: str, rank: int, folder: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, str(SCRIPT), way, str(rank), str(folder)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )  # fmt: skip


def _ended(first: str, rank: int, second: str, folder: Path) -> tuple[tuple[int, str], tuple[int, str]]:
    """Exit code and output of rank `rank`, which ends first, and of the other, which then goes on."""
    one, other = _begun(first, rank, folder), _begun(second, 1 - rank, folder)
    try:
        # Not `communicate`: it would close the standard input that the other one waits for.
        one_code = one.wait(TIMEOUT_S)
        assert other.poll() is None
        other_text, _ = other.communicate(timeout=TIMEOUT_S)
        one_text, _ = one.communicate()
    finally:
        for process in (one, other):
            process.kill()
            process.communicate()
    assert "terminate called" not in one_text + other_text
    return (one_code, one_text), (other.returncode, other_text)


def test_a_group_that_is_destroyed_while_the_loader_is_open_costs_nothing(tmp_path: Path) -> None:
    one, other = _ended("destroys", 0, "stays and destroys", tmp_path)
    assert one[0] == 0, one[1]
    assert other[0] == 0, other[1]


@pytest.mark.parametrize(
    ("way", "rank", "code", "text"),
    [("raises", 1, 1, "ValueError: mine"), ("is interrupted", 0, -signal.SIGINT, "KeyboardInterrupt")],
)
def test_a_rank_that_ends_within_an_epoch_keeps_its_own_end_and_is_an_error_on_the_others(
    way: str, rank: int, code: int, text: str, tmp_path: Path
) -> None:
    one, other = _ended(way, rank, "stays", tmp_path)
    assert one[0] == code, one[1]
    assert text in one[1]
    assert other[0] == 1, other[1]
    assert f"RankError: ranks [{rank}] have left the epoch" in other[1]


def test_a_rank_that_is_killed_is_an_error_on_the_others(tmp_path: Path) -> None:
    one, other = _ended("is killed", 1, "stays", tmp_path)
    assert one[0] == -signal.SIGKILL
    assert other[0] == 1, other[1]
    assert "RankError: ranks [1] are gone" in other[1]
