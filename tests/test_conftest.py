from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

LEAKING = """
import threading

stop = threading.Event()

def test_leaks():
    threading.Thread(target=stop.wait, name={name!r}, daemon=True).start()

def test_is_not_blamed_for_the_one_before():
    pass
"""


def run_pytest(folder: Path, source: str) -> str:
    conftest = Path(__file__).with_name("conftest.py").read_text()
    (folder / "conftest.py").write_text(conftest.replace("JOIN_TIMEOUT_S = 60.0", "JOIN_TIMEOUT_S = 0.01"))
    (folder / "test_inner.py").write_text(source)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "."]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120).stdout


def test_a_test_that_leaves_a_dataflow_thread_alive_fails(tmp_path: Path) -> None:
    output = run_pytest(tmp_path, LEAKING.format(name="dataflow-io-0"))
    assert "threads left alive by this test: dataflow-io-0" in output
    assert "2 passed, 1 error" in output


def test_threads_of_other_libraries_are_not_looked_at(tmp_path: Path) -> None:
    assert "2 passed in" in run_pytest(tmp_path, LEAKING.format(name="somebody-else"))


def test_every_test_has_an_empty_cache_folder_of_its_own(private_cache: Path) -> None:
    assert os.environ["DATAFLOW_CACHE"] == str(private_cache)
    assert list(private_cache.iterdir()) == []
