"""Processes of the demo are heard, killed together, and leave nothing."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from bench.demo.job import RankJob
from bench.demo.processes import DemoFailed, run_processes
from bench.demo.size import Size

HEAD = "import json, os, sys\njob = json.loads(sys.argv[1])\nprint(json.dumps({'pid': os.getpid()}), flush=True)\n"
STEP = "print(json.dumps({'step': %s}), flush=True)\n"


@pytest.fixture
def module(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A file that processes can run as the module `rank_of_test`."""
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    return tmp_path / "rank_of_test.py"


def jobs(folder: Path, world: int) -> list[RankJob]:
    return [
        RankJob(name="test", folder=str(folder), size=Size(), rank=rank, world=world, steps=3)
        for rank in range(world)
    ]


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_every_rank_is_heard_to_its_end(module: Path, tmp_path: Path) -> None:
    module.write_text(HEAD + "for step in range(job['steps']):\n  " + STEP % "step + 10 * job['rank']")
    heard = run_processes("rank_of_test", jobs(tmp_path, 2))
    assert [[record["step"] for record in steps] for steps in heard.steps] == [[0, 1, 2], [10, 11, 12]]
    assert len({first["pid"] for first in heard.first}) == 2
    assert heard.peak_bytes > 0


def test_all_ranks_are_killed_once_the_first_has_done_so_many_steps(module: Path, tmp_path: Path) -> None:
    # A half line is what a process leaves that is killed while it writes.
    endless = (
        "sys.stdout.write('{\"step\": 9')\nsys.stdout.flush()\nimport threading\nthreading.Event().wait()\n"
    )
    module.write_text(HEAD + STEP % 0 + STEP % 1 + endless)
    heard = run_processes("rank_of_test", jobs(tmp_path, 2), kill_at=2)
    assert [record["step"] for record in heard.steps[0]] == [0, 1]
    assert not any(is_alive(first["pid"]) for first in heard.first)


def test_a_rank_that_fails_ends_the_others_and_is_named_with_its_error(module: Path, tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    module.write_text(
        HEAD
        + f"open({str(pids)!r}, 'a').write(f'{{os.getpid()}} ')\n"
        + "if job['rank'] == 1: raise ValueError('no data for me')\n"
        + "import threading\nthreading.Event().wait()\n"
    )
    with pytest.raises(DemoFailed, match=r"(?s)rank 1 of 'test' ended with 1:.*no data for me"):
        run_processes("rank_of_test", jobs(tmp_path, 2))
    assert not any(is_alive(int(pid)) for pid in pids.read_text().split())
