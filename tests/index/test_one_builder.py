"""Several processes of a node: one builds, the others wait, and none is stuck when it dies."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from filelock import FileLock
from lines_format import ENTERED, LEAVE, opened, scanned

from dataflow.index.once import made_once

CHILD = """
import logging, sys
logging.basicConfig(level=logging.INFO, stream=sys.stderr, format="%(message)s")
from lines_format import opened
print(opened(sys.argv[1]).hash, flush=True)
"""


class Pipes:
    """Two named pipes: a scan that has them says that it has begun, and waits."""

    def __init__(self, folder: Path) -> None:
        self.entered, self.leave = folder / "entered", folder / "leave"
        os.mkfifo(self.entered)
        os.mkfifo(self.leave)

    def env(self) -> dict[str, str]:
        return {ENTERED: str(self.entered), LEAVE: str(self.leave)}


@pytest.fixture
def pipes(tmp_path: Path) -> Pipes:
    return Pipes(tmp_path)


@pytest.fixture
def children() -> Iterator[list[subprocess.Popen[str]]]:
    started: list[subprocess.Popen[str]] = []
    yield started
    for child in started:
        child.kill()
        child.communicate()


def start(children: list[subprocess.Popen[str]], folder: Path, env: dict[str, str]) -> subprocess.Popen[str]:
    here = Path(__file__).parent
    path = os.pathsep.join([str(here), str(here.parents[1])])
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD, str(folder)],
        env={**os.environ, **env, "PYTHONPATH": path},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    children.append(child)
    return child


def test_a_second_process_waits_for_the_first_and_loads_what_it_built(
    folder: Path, marks: Path, pipes: Pipes, children: list[subprocess.Popen[str]]
) -> None:
    for name in ("b", "c"):
        (folder / f"{name}.lines").unlink()
    first = start(children, folder, pipes.env())
    assert pipes.entered.read_text() == "entered"
    second = start(children, folder, {})
    assert second.stderr is not None
    assert "waiting for another process that is making the index of data" in second.stderr.readline()
    pipes.leave.write_text("go on")
    hashes = {child.communicate()[0].strip() for child in (first, second)}
    assert hashes == {opened(folder).hash}
    assert scanned(marks) == ["a.lines"]


def test_a_killed_builder_leaves_no_lock_and_no_half_an_index(
    folder: Path, marks: Path, pipes: Pipes, children: list[subprocess.Popen[str]], private_cache: Path
) -> None:
    child = start(children, folder, pipes.env())
    assert "entered" in pipes.entered.read_text()
    child.send_signal(signal.SIGKILL)
    assert child.wait() == -signal.SIGKILL
    assert list((private_cache / "locks").iterdir())
    scanned(marks)
    assert opened(folder).rows == 11
    assert len(scanned(marks)) == 3


def test_threads_of_one_process_build_once(folder: Path, marks: Path) -> None:
    begin = threading.Barrier(8)
    hashes = []

    def work() -> None:
        begin.wait()
        hashes.append(opened(folder).hash)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert hashes == [opened(folder).hash] * 8
    assert len(scanned(marks)) == 3


def test_a_process_that_has_waited_too_long_makes_it_itself(
    private_cache: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (private_cache / "locks").mkdir()
    with FileLock(private_cache / "locks" / "key.lock"), caplog.at_level(logging.INFO):
        made = made_once("key", "a thing", lambda: None, lambda: "made", timeout_s=0.01)
    assert made == "made"
    assert "waiting for another process that is making a thing" in caplog.text
    assert "no longer waiting" in caplog.text


def test_what_another_has_made_meanwhile_is_not_made_again() -> None:
    answers = iter([None, "found"])

    def make() -> str:
        raise AssertionError

    assert made_once("key", "a thing", lambda: next(answers), make) == "found"


def test_a_failure_frees_the_lock_and_is_passed_on() -> None:
    def fail() -> str:
        raise RuntimeError("no")

    with pytest.raises(RuntimeError, match="no"):
        made_once("key", "a thing", lambda: None, fail)
    assert made_once("key", "a thing", lambda: None, lambda: "made", timeout_s=0.0) == "made"
