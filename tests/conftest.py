"""What holds for every test: repeatable examples, a cache folder of its own, and no thread left behind."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# A shell starts what runs in its background with SIGINT ignored, and so would the processes be that tests interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# A thread that was told to stop may take a moment to end on a busy machine; one that was not never does.
JOIN_TIMEOUT_S = 60.0

# A machine's load must not decide whether a test passes, hence no deadline and no complaint about slow data.
settings.register_profile(
    "ci",
    deadline=None,
    derandomize=True,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
# `pytest --hypothesis-profile=search` looks for new counterexamples, ten times as long.
settings.register_profile("search", settings.get_profile("ci"), derandomize=False, max_examples=1000)
settings.load_profile("ci")


@pytest.fixture(autouse=True)
def no_thread_left_alive() -> Iterator[None]:
    """Fail a test behind which a thread that Dataflow started is still alive."""
    before = set(threading.enumerate())
    yield
    started = [t for t in threading.enumerate() if t.name.startswith("dataflow-") and t not in before]
    for thread in started:
        thread.join(JOIN_TIMEOUT_S)
    alive = sorted(thread.name for thread in started if thread.is_alive())
    if alive:
        pytest.fail(f"threads left alive by this test: {', '.join(alive)}", pytrace=False)


@pytest.fixture(autouse=True)
def private_cache(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Point the user's cache folder at an empty one, for this test and the processes it starts."""
    folder = tmp_path_factory.mktemp("dataflow-cache")
    monkeypatch.setenv("DATAFLOW_CACHE", str(folder))
    return folder
