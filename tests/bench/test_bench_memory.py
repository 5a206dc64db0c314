"""The memory of a tree of processes."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.measure import cpu_s
from bench.memory import PeakMemory, tree_pss_bytes
from bench.process_tree import living_cpu_s, process_tree

HELD_BYTES = 64 << 20
CHILD = f"held = bytes(range(256)) * ({HELD_BYTES} // 256); print('ready', flush=True); input()"
PARENT = (
    "import subprocess, sys\n"
    f"child = subprocess.Popen([sys.executable, '-c', {CHILD!r}], stdin=subprocess.PIPE)\n"
    "input(); child.communicate(b'\\n')"
)

if not Path("/proc/self/smaps_rollup").exists():
    pytest.skip("needs Linux's /proc", allow_module_level=True)


@pytest.fixture
def family() -> Iterator[subprocess.Popen[bytes]]:
    """A process whose child holds 64 MB."""
    process = subprocess.Popen([sys.executable, "-c", PARENT], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    yield process
    if process.returncode is None:
        process.communicate(b"\n")


def test_a_process_is_counted_with_its_children(family: subprocess.Popen[bytes]) -> None:
    tree = process_tree(family.pid)
    assert len(tree) == 2
    assert family.pid in tree
    assert tree_pss_bytes(family.pid) > HELD_BYTES
    assert family.pid in process_tree(os.getpid())


def test_the_peak_is_kept_when_the_process_has_ended(family: subprocess.Popen[bytes]) -> None:
    with PeakMemory(family.pid) as memory:
        family.communicate(b"\n")
    assert memory.peak_bytes > HELD_BYTES
    assert tree_pss_bytes(family.pid) == 0


def test_the_processor_time_of_living_children_is_counted() -> None:
    busy = "n = sum(i * i for i in range(2_000_000)); print('ready', flush=True); input()"
    before = cpu_s()
    child = subprocess.Popen([sys.executable, "-c", busy], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert child.stdout is not None
    assert child.stdout.readline() == b"ready\n"
    alive = living_cpu_s(os.getpid())
    assert alive > 0
    assert cpu_s() - before >= alive
    child.communicate(b"\n")
    # Ended, it is counted as well, and once.
    assert living_cpu_s(os.getpid()) == 0
    assert cpu_s() - before >= alive
