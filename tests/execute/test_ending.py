"""However a run ends, no thread, file or wait outlives it."""

from __future__ import annotations

import gc
import os
import re
import signal
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, Future
from contextlib import suppress
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import numpy as np
import pytest
from at_rest import InlinePools
from recipes import Recipe, Row, fragments, loaders

from dataflow.errors import LoaderClosed
from dataflow.execute.arrow_use import ArrowUse
from dataflow.execute.buffers import BufferPool
from dataflow.execute.compile import compile_plan
from dataflow.execute.due import Due
from dataflow.execute.job import WindowJob
from dataflow.execute.last_bad import LastBad
from dataflow.execute.loader import Loader
from dataflow.execute.memory import Memory
from dataflow.execute.metrics import Meters
from dataflow.execute.one_by_one import OneByOne
from dataflow.execute.operate import Operators
from dataflow.execute.row_names import place_finder
from dataflow.execute.row_work import RowWork
from dataflow.execute.streams import OpenStreams
from dataflow.execute.thread_pools import ThreadPools
from dataflow.execute.workbench import Bench
from dataflow.order.epoch import EpochOrder

P = ParamSpec("P")
T = TypeVar("T")

KNOWN = Recipe(parts=((400,),), window=16, batch=4, lanes=2)
UNKNOWN = Recipe(parts=((400,),), window=16, batch=4, lanes=2, function="filter")
both = pytest.mark.parametrize("recipe", [KNOWN, UNKNOWN], ids=["known", "unknown"])


def _ours() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("dataflow-")]


@both
def test_no_thread_exists_before_the_first_iter_and_none_after_close(recipe: Recipe) -> None:
    (loader,) = loaders(recipe.pipe(), 1)
    loader.state_dict()
    loader.set_epoch(3)
    assert _ours() == []
    running = iter(loader)
    next(running)
    assert _ours()
    loader.close()
    assert _ours() == []
    loader.close()


@both
def test_a_closed_loader_says_so(recipe: Recipe) -> None:
    (loader,) = loaders(recipe.pipe(), 1)
    running = iter(loader)
    next(running)
    state = loader.state_dict()
    loader.close()
    for act in (lambda: next(running), lambda: iter(loader), lambda: loader.load_state_dict(state)):
        with pytest.raises(LoaderClosed):
            act()
    assert loader.state_dict() == state
    assert loader.stats()["rows"] == 4
    assert loader.report()


@both
def test_the_context_manager_closes_on_an_exception_in_the_training_loop(recipe: Recipe) -> None:
    (loader,) = loaders(recipe.pipe(), 1)
    with pytest.raises(ZeroDivisionError):
        _train_and_fail(loader)
    assert _ours() == []


def _train_and_fail(loader: Loader[Any]) -> None:
    with loader:
        for _ in loader:
            raise ZeroDivisionError


@both
def test_a_loader_that_nobody_holds_ends_its_threads(recipe: Recipe) -> None:
    (loader,) = loaders(recipe.pipe(), 1)
    next(iter(loader))
    del loader
    gc.collect()
    # The collector must not wait, so that the threads end by themselves soon afterwards.
    for thread in threading.enumerate():
        if thread.name.startswith("dataflow-"):
            thread.join(60)
    assert _ours() == []


@both
def test_restoring_and_moving_leave_the_threads_of_one_run_at_most(recipe: Recipe) -> None:
    (loader,) = loaders(recipe.pipe(), 1)
    with loader:
        next(iter(loader))
        most = len(_ours())
        for epoch in range(10):
            loader.load_state_dict(loader.state_dict())
            next(iter(loader))
            loader.set_epoch(epoch + 20)
            next(iter(loader))
            assert len(_ours()) <= most + 1
    assert _ours() == []


def test_close_while_a_function_runs_waits_for_it_and_for_nothing_else() -> None:
    began, go_on = threading.Event(), threading.Event()

    def slow(row: Row) -> Row:
        began.set()
        assert go_on.wait(60)
        return row

    pipe = fragments((4000,)).map(slow, schema={"x": "int64"}).batch(4)
    loader = pipe.loader(threads=2)
    iter(loader)
    assert began.wait(60)
    closing = threading.Thread(target=loader.close)
    closing.start()
    go_on.set()
    closing.join(60)
    assert not closing.is_alive()
    assert _ours() == []


def test_a_consumer_that_waits_in_another_thread_is_let_go_by_close() -> None:
    began, go_on = threading.Event(), threading.Event()

    def slow(row: Row) -> Row:
        began.set()
        assert go_on.wait(60)
        return row

    loader = fragments((400,)).map(slow, schema={"x": "int64"}).batch(4).loader(threads=1)
    found: list[Any] = []

    def consume() -> None:
        try:
            found.append(next(iter(loader)))
        except Exception as error:
            found.append(error)

    consumer = threading.Thread(target=consume)
    consumer.start()
    assert began.wait(60)
    closing = threading.Thread(target=loader.close)
    closing.start()
    consumer.join(60)  # before the function returns
    go_on.set()
    closing.join(60)
    assert isinstance(found[0], LoaderClosed)


# ---- processes

_SCRIPT = """
import sys, threading
import numpy as np
import dataflow as flow

def keep(row):
    return True

if __name__ == "__main__":
    pipe = flow.from_columns({"x": np.arange(100_000)}).shuffle(1000)
    if sys.argv[1] == "unknown":
        pipe = pipe.filter(keep)
    loader = pipe.batch(8).loader(output=sys.argv[2])
    running = iter(loader)
    next(running)
"""

_ENDS = {
    "falls off the end": "",
    "a live iterator at the end": "for number, batch in enumerate(running):\n    if number == 3: break\n",
    "sys.exit": "sys.exit(0)",
    "closed": "loader.close()",
    "held in a cycle": "loader.me = loader\ndel loader, running\n",
    "held by a daemon thread": "threading.Thread(target=lambda: list(running), daemon=True).start()",
    "in a thread that ends": "t = threading.Thread(target=lambda: next(running)); t.start(); t.join()",
}


def _start(tmp_path: Path, kind: str, ending: str, output: str = "numpy") -> subprocess.Popen[str]:
    script = tmp_path / "train.py"
    body = "".join(f"    {line}\n" for line in ending.splitlines())
    script.write_text(_SCRIPT + body)
    root = Path(__file__).parents[2]
    environment = {**os.environ, "PYTHONPATH": str(root)}
    return subprocess.Popen(
        [sys.executable, str(script), kind, output], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env=environment,
    )  # fmt: skip


@pytest.mark.parametrize("kind", ["known", "unknown"])
@pytest.mark.parametrize("ending", list(_ENDS))
def test_the_interpreter_ends_with_exit_code_0(tmp_path: Path, kind: str, ending: str) -> None:
    process = _start(tmp_path, kind, _ENDS[ending])
    with _killed_at_last(process):
        _, errors = process.communicate(timeout=120)
    assert process.returncode == 0
    # A thread of the user's own that is still in the loop is told that the loader is closed.
    assert errors == "" or (ending == "held by a daemon thread" and "Exception in thread" in errors)


def test_the_interpreter_ends_with_torch_loaded(tmp_path: Path) -> None:
    process = _start(tmp_path, "known", "print('done', flush=True)", "torch")
    with _killed_at_last(process):
        _, errors = process.communicate(timeout=120)
    assert (process.returncode, errors) == (0, "")


@pytest.mark.parametrize("kind", ["known", "unknown"])
def test_an_uncaught_exception_is_shown_once_and_ends_the_interpreter(tmp_path: Path, kind: str) -> None:
    process = _start(tmp_path, kind, "raise ZeroDivisionError('mine')")
    with _killed_at_last(process):
        _, errors = process.communicate(timeout=120)
    assert process.returncode == 1
    assert errors.count("ZeroDivisionError: mine") == 1


@pytest.mark.parametrize("kind", ["known", "unknown"])
@pytest.mark.parametrize("where", ["waiting", "training"])
def test_ctrl_c_ends_the_interpreter_with_keyboard_interrupt(tmp_path: Path, kind: str, where: str) -> None:
    ready = "print('ready', flush=True)\n"
    # What starts the tests may have it ignored, as a shell does of what it runs in the background.
    heard = "import signal\nsignal.signal(signal.SIGINT, signal.default_int_handler)\n"
    loop = {
        "waiting": f"{ready}while True:\n    for batch in running: pass\n    running = iter(loader)\n",
        "training": f"for batch in running:\n    {ready}    threading.Event().wait()\n",
    }[where]
    process = _start(tmp_path, kind, heard + loop)
    assert process.stdout is not None
    with _killed_at_last(process):
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=120)
    assert process.returncode in (-signal.SIGINT, 130)
    assert errors.rstrip().endswith("KeyboardInterrupt")


class _killed_at_last:  # noqa: N801 - a context manager that reads as a phrase
    """Whatever the test finds, the process does not outlive it."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def __enter__(self) -> None:
        return None

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdout, self._process.stderr):
            if stream is not None:
                stream.close()


def test_stopping_a_generator_around_a_loader_ends_its_threads() -> None:
    def batches() -> Iterator[Any]:
        with loaders(KNOWN.pipe(), 1)[0] as loader:
            yield from loader

    running = batches()
    next(running)
    running.close()  # type: ignore[attr-defined]
    assert _ours() == []


@both
@pytest.mark.parametrize("use", ["next of a running one", "a new one"])
def test_an_iterator_behind_a_fork_is_an_error_and_the_parent_goes_on(recipe: Recipe, use: str) -> None:
    loader = loaders(recipe.pipe(), 1)[0]
    with loader:
        running = iter(loader)
        first = next(running)["x"].tolist()
        receive, send = os.pipe()
        child = os.fork()
        if child == 0:
            said = "nothing"
            try:
                signal.alarm(120)  # what hangs is no error
                next(running if use == "next of a running one" else iter(loader))
            except BaseException as error:
                said = f"{type(error).__name__}: {error}"
            finally:
                os.write(send, said.encode())
                os._exit(0)
        os.close(send)
        with os.fdopen(receive, "rb") as answer:
            assert re.match(rb"PlanError.*another process.*rank=", answer.read(), re.DOTALL)
        os.waitpid(child, 0)
        rest = [value for batch in running for value in batch["x"].tolist()]
    with loaders(recipe.pipe(), 1)[0] as whole:
        assert first + rest == [value for batch in whole for value in batch["x"].tolist()]


@pytest.mark.parametrize("ending", ["sys.exit(5)", "loader.close(); sys.exit(5)"])
def test_a_child_that_was_forked_beside_a_running_loader_ends(tmp_path: Path, ending: str) -> None:
    # The fork comes while a thread of the parent holds the locks that ending the loader takes.
    script = tmp_path / "forks.py"
    script.write_text(f"""
import os, signal, sys
import numpy as np
import dataflow as flow

with flow.from_columns({{"x": np.arange(1000)}}).batch(10).loader(output="numpy") as loader:
    next(iter(loader))
    pools = loader._running._pools
    with pools._stop._cond, pools._workers._shutdown_lock:
        child = os.fork()
    if child == 0:
        signal.alarm(60)  # what hangs is ended by a signal
        pools._stop._cond.acquire(); pools._workers._shutdown_lock.acquire()
        {ending}
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
""")
    assert subprocess.run([sys.executable, str(script)], timeout=100, check=False).returncode == 5


class _HeldPools(InlinePools):
    """Pools whose reads wait in a queue until a test runs or cancels them; all else runs at once."""

    def __init__(self) -> None:
        super().__init__()
        self.queue: deque[tuple[Future[Any], Callable[[], Any]]] = deque()

    def read(self, task: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        if self.closed:
            raise RuntimeError("cannot schedule new futures after shutdown")
        future: Future[T] = Future()
        self.queue.append((future, lambda: task(*args, **kwargs)))
        return future

    def run_all(self) -> None:
        """Run what waits on a thread of its own, which must come to an end."""

        def work() -> None:
            while self.queue:
                future, task = self.queue.popleft()
                try:
                    future.set_result(task())
                except BaseException as error:
                    future.set_exception(error)

        # Not to be waited for when the test fails.
        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        thread.join(60)
        assert not thread.is_alive(), "a read waits for one that never runs"


def _two_linked_windows(pools: _HeldPools) -> list[WindowJob]:
    """Windows of 8 rows of one fragment: the reader of the second goes on where that of the first ends."""
    plan = compile_plan(fragments((16,), cheap=False).shuffle(8).node, 0)
    bench = Bench(
        work=RowWork(plan.program, plan.stream, seed=0, tolerant=False), pools=pools,
        operators=Operators(pools, 1 << 20, most_rows=8), arranging=OneByOne(pools.compute),
        streams=OpenStreams(1 << 20, limit=4), memory=Memory(BufferPool(1 << 20), ArrowUse(0)), meters=Meters(),
        last=LastBad(place_finder(plan.indexes)),
    )  # fmt: skip
    order = EpochOrder(plan.stream, seed=0, lanes=1, turn=0, chunk_rows=8)
    jobs = [WindowJob(bench, window, 0, None, 0, Due(0, 0, 1)) for window in order.windows(0)]
    assert len(jobs) == 2
    return jobs


def _values(job: WindowJob) -> list[int]:
    return sorted(value for block in job.blocks() for value in np.asarray(block.columns["x"]).tolist())


def test_reads_that_follow_one_another_give_their_rows() -> None:
    pools = _HeldPools()
    jobs = _two_linked_windows(pools)
    for job in jobs:
        job.start()
    pools.run_all()
    assert sorted(_values(jobs[0]) + _values(jobs[1])) == list(range(16))


def test_a_read_does_not_wait_for_one_that_was_dropped_when_the_pool_was_closed() -> None:
    pools = _HeldPools()
    first, second = _two_linked_windows(pools)
    first.start()
    second.start()
    dropped, _ = pools.queue.popleft()
    assert dropped.cancel()
    pools.run_all()
    with pytest.raises(CancelledError):
        _values(first)
    # Cancelled too, or read from its first row on: but at an end.
    with suppress(CancelledError):
        assert len(_values(second)) == 8


def test_a_read_does_not_wait_for_one_that_the_pool_refused() -> None:
    pools = _HeldPools()
    first, second = _two_linked_windows(pools)
    pools.closed = True
    first.start()
    with pytest.raises(RuntimeError, match="after shutdown"):
        _values(first)
    pools.closed = False
    second.start()
    pools.run_all()
    assert len(_values(second)) == 8


def test_a_read_does_not_wait_for_one_of_a_window_that_was_given_up() -> None:
    pools = _HeldPools()
    first, second = _two_linked_windows(pools)
    first.start()
    second.start()
    first.cancel()
    pools.run_all()
    assert len(_values(second)) == 8


@both
def test_closing_waits_for_one_call_of_a_function_and_not_for_a_range_of_rows(recipe: Recipe) -> None:
    gate, calls = threading.Event(), []

    def held(row: Row) -> Row:
        calls.append(row["x"])
        if len(calls) > 40:
            gate.wait(60)
        return row

    pipe = recipe.rows().map(held, schema={"x": "int64"}).batch(4)
    loader = pipe.loader(output="numpy", threads=1)
    next(iter(loader))
    running = loader._running
    assert running is not None
    closing = threading.Thread(target=loader.close)
    closing.start()
    assert isinstance(running._pools, ThreadPools)
    assert running._pools._stop.wait(60)
    made = len(calls)
    gate.set()
    closing.join(60)
    assert not closing.is_alive()
    assert len(calls) <= made + 1
