"""Ranks on machines that reach each other over one network alone; namespaces of Linux stand for the machines."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from rank_jobs import JOBS

SCRIPT = Path(__file__).with_name("machine_rank.py")
ROOT = Path(__file__).parents[2]
NETWORK = "10.77.0"
PORT = 29500
TIMEOUT_S = 100
# Names of interfaces have 15 letters at most, and the machine's other users have namespaces, too.
MACHINES = tuple(f"flow{os.getpid()}{letter}" for letter in "ab")


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True, text=True)


def _connect_machines() -> None:
    one, other = MACHINES
    for machine in MACHINES:
        _ip("netns", "add", machine)
    _ip("link", "add", one, "netns", one, "type", "veth", "peer", "name", other, "netns", other)
    for number, machine in enumerate(MACHINES, start=1):
        _ip("-n", machine, "address", "add", f"{NETWORK}.{number}/24", "dev", machine)
        for interface in ("lo", machine):
            _ip("-n", machine, "link", "set", interface, "up")


@pytest.fixture
def _two_machines() -> Iterator[None]:
    if os.geteuid() != 0 or shutil.which("ip") is None:
        pytest.skip("making network namespaces takes root and the program ip (iproute2)")
    try:
        try:
            _connect_machines()
        except subprocess.CalledProcessError as error:
            pytest.skip(f"no network namespaces here: {error.stderr.strip()}")
        yield
    finally:
        for machine in MACHINES:
            # One that was not made cannot be deleted; its interface goes with it.
            subprocess.run(["ip", "netns", "delete", machine], capture_output=True)


def _begun(rank: int, folder: Path) -> subprocess.Popen[str]:
    command = [sys.executable, str(SCRIPT), str(rank), f"tcp://{NETWORK}.1:{PORT}", str(folder)]
    return subprocess.Popen(
        ["ip", "netns", "exec", MACHINES[rank], *command],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        env=os.environ | {"PYTHONPATH": str(ROOT), "GLOO_SOCKET_IFNAME": MACHINES[rank]},
    )  # fmt: skip


@pytest.mark.usefixtures("_two_machines")
def test_ranks_on_two_machines_meet_and_deliver_the_batches_of_one(tmp_path: Path) -> None:
    ranks = [_begun(rank, tmp_path) for rank in range(2)]
    try:
        for process in ranks:
            text, _ = process.communicate(timeout=TIMEOUT_S)
            assert process.returncode == 0, text
    finally:
        for process in ranks:
            process.kill()
            process.communicate()
    found = [json.loads((tmp_path / f"{rank}.json").read_text()) for rank in range(2)]
    alone = JOBS["whole_epochs"]("filter", 0)
    assert [one[0] + other[0] for one, other in zip(*found, strict=True)] == [rows for rows, _ in alone]
