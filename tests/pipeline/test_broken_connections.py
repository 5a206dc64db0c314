"""Connections that break: the rows are those of an undisturbed run, or there is one clear error."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import fsspec
import numpy as np
import pyarrow as pa
import pytest
from delivered import FORMATS, ROWS, arrow, ids, rows_then_rest
from flaky import Fault, Flaky

import dataflow as flow
from connectors.contract import Connector, Fragment, Opened
from connectors.paths import resolve
from connectors.registry import choose
from connectors.retry import SystemClock
from dataflow import ConnectorError, DataError, LoaderClosed

ENDS = {
    "parquet": "*.parquet", "arrow file": "a.arrow", "arrow stream": "a.arrows", "feather": "a.feather",
    "jsonl": "a.jsonl", "jsonl.gz": "a.jsonl.gz", "tar": "{a,b}.tar", "tar.gz": "a.tar.gz", "folder": "*.png",
}  # fmt: skip


class Status(Exception):
    """What a library for HTTP raises for a status."""

    status = 503


Status.__module__ = "aiohttp.client_exceptions"

FAULTS: dict[str, Fault] = {
    "reset": lambda: ConnectionResetError("reset by peer"),
    "time-out": TimeoutError,
    "503": lambda: Status("service unavailable"),
    "short": "short",
}


@pytest.fixture(autouse=True)
def store(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An empty flaky store, and a clock that never waits."""
    fsspec.register_implementation("flaky", Flaky, clobber=True)
    monkeypatch.setattr(SystemClock, "wait", lambda self, seconds, stop: stop.is_set())
    Flaky.clear()
    yield
    Flaky.clear()


def delivered(pipe: flow.Pipeline) -> list[Any]:
    """What a loader gives of the rows of a pipeline in a shuffled order."""
    with pipe.shuffle(8).seed(2).batch(5, lanes=1, remainder="keep").loader(output="arrow") as loader:
        return [batch.to_pylist() for batch in loader]


def scanned(url: str | Path) -> Iterator[tuple[Connector, Opened, Fragment, pa.Schema]]:
    """Each fragment of the files, found by their connector without an engine, and how it is read."""
    listing = resolve(url)
    connector: Connector = choose(None, listing.files)
    groups = [listing.files] if connector.traits.scans == "listing" else [(info,) for info in listing.files]
    for files in groups:
        scan = connector.scan(listing.store, files)
        opened = Opened(listing.store, files, scan.meta)
        for numbers in zip(
            *(column.tolist() for column in (scan.file, scan.offset, scan.length, scan.rows)), strict=True
        ):
            yield connector, opened, Fragment(*numbers), scan.schema


def read_directly(url: str | Path) -> pa.Table:
    """The rows of files as their connector reads them, fragment by fragment."""
    tables = []
    for connector, opened, fragment, schema in scanned(url):
        chunks = connector.read(opened, fragment, schema, 0, fragment.rows, 3)
        tables += [pa.Table.from_batches([chunk.batch]) for chunk in chunks]
    return pa.concat_tables(tables, promote_options="permissive")


@pytest.mark.parametrize("fault", list(FAULTS))
@pytest.mark.parametrize("name", list(ENDS))
def test_a_connector_reads_the_same_rows_over_connections_that_break(
    name: str, fault: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    FORMATS[name](tmp_path)
    Flaky.upload(tmp_path)
    Flaky.strike(FAULTS[fault], times=2)
    Flaky.look_faults.append(ConnectionResetError("while it was listed"))
    assert read_directly(f"flaky://data/{ENDS[name]}").equals(read_directly(tmp_path / ENDS[name]))
    assert Flaky.struck > 3
    assert {record.levelname for record in caplog.records} == {"WARNING"}
    # Each fault is a warning; a folder's files are asked for together, and some of them fail together.
    assert len(caplog.records) == Flaky.struck or (name == "folder" and len(caplog.records) > 1)
    assert all("flaky://data/" in record.getMessage() for record in caplog.records[1:])


@pytest.mark.parametrize("fault", list(FAULTS))
@pytest.mark.parametrize("name", list(ENDS))
def test_a_loader_delivers_the_same_rows_over_connections_that_break(
    name: str, fault: str, tmp_path: Path
) -> None:
    FORMATS[name](tmp_path)
    Flaky.upload(tmp_path)
    url = f"flaky://data/{ENDS[name]}"
    want = delivered(flow.read(tmp_path / ENDS[name]))
    # The index is built over broken connections too, and then the epoch read.
    Flaky.strike(FAULTS[fault])
    assert flow.read(url).count() == ROWS
    struck = Flaky.struck
    assert struck
    Flaky.faults.clear()
    Flaky.strike(FAULTS[fault], times=2)
    assert delivered(flow.read(url)) == want
    assert Flaky.struck > struck


@pytest.mark.parametrize("cache", ["readahead", "bytes", "blockcache", "first", "mmap", "none"])
@pytest.mark.parametrize("name", ["parquet", "arrow file", "jsonl.gz", "tar"])
def test_whatever_cache_a_users_options_choose_no_byte_is_wrong(
    name: str, cache: str, tmp_path: Path
) -> None:
    FORMATS[name](tmp_path)
    Flaky.upload(tmp_path)
    pipe = flow.read(f"flaky://data/{ENDS[name]}", storage_options={"cache_type": cache})
    Flaky.strike(FAULTS["reset"])
    Flaky.strike(FAULTS["short"])
    assert delivered(pipe) == delivered(flow.read(tmp_path / ENDS[name]))
    assert Flaky.struck


def test_files_that_do_not_open_are_opened_again(tmp_path: Path) -> None:
    FORMATS["parquet"](tmp_path)
    Flaky.upload(tmp_path)
    pipe = flow.read("flaky://data/*.parquet")
    assert pipe.count() == ROWS
    Flaky.open_faults += [ConnectionRefusedError(), TimeoutError(), Status("try later")]
    assert delivered(pipe) == delivered(flow.read(tmp_path / "*.parquet"))
    assert not Flaky.open_faults


def _lines() -> bytes:
    """Lines that do not compress to nothing, of a few megabytes."""
    random = np.random.default_rng(1)
    rows = [{"number": k, "noise": random.bytes(60).hex()} for k in range(20_000)]
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


def _zstd(data: bytes) -> bytes:
    target = pa.BufferOutputStream()
    with pa.CompressedOutputStream(target, "zstd") as out:
        out.write(data)
    return target.getvalue().to_pybytes()


def starts(asked: Sequence[tuple[str, int, int]]) -> int:
    """How many requests were for the first byte of a file."""
    return sum(start == 0 for _, start, _ in asked)


@pytest.mark.parametrize(("name", "pack"), [("a.jsonl.gz", gzip.compress), ("a.jsonl.zst", _zstd)])
def test_a_compressed_stream_goes_on_where_it_was_and_is_not_begun_again(
    name: str, pack: Callable[[bytes], bytes]
) -> None:
    lines = _lines()
    Flaky.put(f"data/{name}", pack(lines))
    pipe = flow.read(f"flaky://data/{name}", format="jsonl")
    want = arrow(pipe, 4_000)
    assert want.to_pylist() == [json.loads(line) for line in lines.splitlines()]
    undisturbed = list(Flaky.asked)
    Flaky.asked.clear()
    size = len(Flaky.files[f"data/{name}"])
    # Behind the middle, so that a decoder that began anew would have to ask for the first bytes once more.
    Flaky.faults += [(f"data/{name}", at, 2, "short") for at in range(size // 2, size, size // 20)]
    assert arrow(flow.read(f"flaky://data/{name}", format="jsonl"), 4_000).equals(want)
    assert Flaky.struck >= 20
    assert starts(Flaky.asked) <= starts(undisturbed)


def test_a_state_saved_while_connections_break_goes_on_with_the_very_next_row(tmp_path: Path) -> None:
    FORMATS["tar"](tmp_path)
    Flaky.upload(tmp_path)
    pipe = flow.read("flaky://data/{a,b}.tar").shuffle(8).seed(2).batch(5, lanes=1, remainder="keep")
    want, rest = rows_then_rest(pipe, 3)
    assert sorted(ids(want + rest)) == list(range(ROWS))
    Flaky.strike(FAULTS["reset"], times=2)
    assert rows_then_rest(pipe, 3) == (want, rest)


@pytest.mark.parametrize("name", list(ENDS))
def test_a_store_that_goes_on_failing_is_one_error_that_says_all(name: str, tmp_path: Path) -> None:
    FORMATS[name](tmp_path)
    Flaky.upload(tmp_path)
    pipe = flow.read(f"flaky://data/{ENDS[name]}")
    assert pipe.count() == ROWS
    # Not the head or foot of a file, which an index may have kept.
    Flaky.faults += [
        (path, at, 10**6, FAULTS["reset"])
        for path, content in Flaky.files.items()
        for at in range(len(content))
    ]
    with pytest.raises(
        ConnectorError, match=r"flaky://data/.* 10 tries in \d+ s failed.*reset by peer"
    ) as caught:
        arrow(pipe)
    assert isinstance(caught.value.__cause__, ConnectionResetError)
    assert "network" in caught.value.hint
    assert name == "folder" or " at byte " in str(caught.value)


@pytest.mark.parametrize("error", [PermissionError, FileNotFoundError, IsADirectoryError, ValueError])
@pytest.mark.parametrize("name", ["parquet", "arrow stream", "tar", "tar.gz", "jsonl"])
def test_a_permanent_failure_is_asked_for_once(name: str, error: type[Exception], tmp_path: Path) -> None:
    FORMATS[name](tmp_path)
    Flaky.upload(tmp_path)
    pipe = flow.read(f"flaky://data/{ENDS[name]}")
    assert pipe.count() == ROWS
    Flaky.open_faults += [error("not for you")] * 50
    with pytest.raises(ConnectorError, match="data/a") as caught:
        next(iter(pipe.batch(4, remainder="keep").loader(threads=1)))
    assert isinstance(caught.value.__cause__, error)
    # One for each reader that was under way, and none again.
    assert len(Flaky.open_faults) >= 50 - len(Flaky.files) * 4


def test_content_of_another_format_is_not_asked_for_again(caplog: pytest.LogCaptureFixture) -> None:
    Flaky.put("data/a.parquet", b"no format begins like this" * 10)
    with pytest.raises(DataError, match=r"a\.parquet"):
        flow.read("flaky://data/a.parquet").count()
    assert not caplog.records
    assert len(Flaky.asked) == 1


@pytest.mark.parametrize(
    "name", [name for name in ENDS if name != "folder"]
)  # of which each file is read whole
def test_a_file_that_was_replaced_between_two_tries_is_an_error_and_no_mixture(
    name: str, tmp_path: Path
) -> None:
    FORMATS[name](tmp_path)
    Flaky.upload(tmp_path)
    connector, opened, fragment, schema = next(scanned(f"flaky://data/{ENDS[name]}"))
    path = opened.files[0].path

    def replaced() -> Exception:
        # The same bytes under another etag: only the version can tell.
        Flaky.put(path, Flaky.files[path])
        return ConnectionResetError("replaced")

    Flaky.strike(replaced)
    with pytest.raises(DataError, match="its etag was 1 and is") as caught:
        list(connector.read(opened, fragment, schema, 0, fragment.rows, 3))
    assert caught.value.file == path
    assert "index" in caught.value.hint


def test_a_pipeline_that_counts_by_filter_reads_over_connections_that_break(tmp_path: Path) -> None:
    FORMATS["parquet"](tmp_path)
    Flaky.upload(tmp_path)
    pipe = flow.read("flaky://data/*.parquet").filter([("number", "<", 20)])
    Flaky.strike(FAULTS["reset"], times=2)
    assert arrow(pipe)["number"].to_pylist() == list(range(20))
    assert Flaky.struck


class _Waits:
    """A clock whose waits last until they are stopped; `begun` is set when one begins."""

    def __init__(self) -> None:
        self.begun = threading.Event()
        self.stopped: list[bool] = []

    def wait(self, _: SystemClock, seconds: float, stop: threading.Event) -> bool:
        self.begun.set()
        self.stopped.append(stop.wait(60))
        return self.stopped[-1]


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> _Waits:
    waits = _Waits()
    monkeypatch.setattr(SystemClock, "wait", lambda *arguments: waits.wait(*arguments))
    return waits


def test_closing_a_loader_ends_its_waits_for_a_store(tmp_path: Path, waits: _Waits) -> None:
    FORMATS["parquet"](tmp_path)
    Flaky.upload(tmp_path)
    pipe = flow.read("flaky://data/*.parquet")
    assert pipe.count() == ROWS
    Flaky.open_faults += [ConnectionResetError()] * 100
    loader = pipe.batch(4).loader()
    running = iter(loader)

    def consume() -> None:
        with pytest.raises(LoaderClosed):
            next(running)

    consumer = threading.Thread(target=consume, daemon=True)
    consumer.start()
    assert waits.begun.wait(60)
    loader.close()
    consumer.join(60)
    assert waits.stopped
    assert all(waits.stopped)


def test_the_first_wrong_file_of_a_scan_ends_the_waits_for_the_others(waits: _Waits) -> None:
    for name in ("a", "b"):
        Flaky.put(f"data/{name}.jsonl", b'{"x": 1}\n')

    def forbidden() -> Exception:
        assert waits.begun.wait(60)
        return PermissionError("not for you")

    Flaky.faults += [("data/a.jsonl", 0, 1, forbidden), ("data/b.jsonl", 0, 10**6, FAULTS["reset"])]
    with pytest.raises(ConnectorError, match=r"a\.jsonl.*not for you"):
        flow.read("flaky://data/*.jsonl").count()
    assert waits.stopped == [True]


_SCRIPT = """
import threading
import fsspec
from flaky import Flaky
import dataflow as flow
from connectors.retry import SystemClock

fsspec.register_implementation("flaky", Flaky)
Flaky.put("data/a.jsonl", b'{"x": 1}\\n' * 100)
pipe = flow.read("flaky://data/a.jsonl")
pipe.count()
waiting = threading.Event()

def wait(self, seconds, stop):
    waiting.set()
    return stop.wait(10_000)

SystemClock.wait = wait
Flaky.faults.append(("data/a.jsonl", 0, 10**6, ConnectionResetError))
loader = pipe.batch(8).loader()
running = iter(loader)
threading.Thread(target=lambda: next(running), daemon=True).start()
assert waiting.wait(60)
print("done", flush=True)
"""


def test_an_interpreter_that_ends_does_not_wait_for_a_store() -> None:
    here = Path(__file__).parent
    path = os.pathsep.join([str(here), str(here.parents[1])])
    process = subprocess.run(
        [sys.executable, "-c", _SCRIPT], env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True,
        timeout=120,
    )  # fmt: skip
    assert (process.returncode, process.stdout) == (0, "done\n"), process.stderr
