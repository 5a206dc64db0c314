"""Names with odd characters, remote stores, stores that fail, files that change under a run, the order of files."""

from __future__ import annotations

import io
import os
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import fsspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from delivered import FORMATS, ROWS, arrow, ids, numpy, parquet, rows_then_rest
from fsspec import AbstractFileSystem

import dataflow as flow
from connectors.retry import SystemClock
from dataflow import ConnectorError, DataError, DataflowError, MissingExtraError


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """A store that fails is asked again at once."""
    monkeypatch.setattr(SystemClock, "wait", lambda self, seconds, stop: stop.is_set())


ODD = [
    "a#b",
    "a[1]",
    "a@b",
    "a%20b",
    "a b",
    "ü",
    "a{x,y}",
    "a*",
    "a?",
    "~a",
    "$HOME",
    "a+b&c=d",
    "'a\"",
    "a::b",
]


@pytest.mark.parametrize("name", ODD)
def test_odd_characters_in_names_are_literal(name: str, tmp_path: Path) -> None:
    parquet(tmp_path / f"{name}.parquet", {"x": [1, 2, 3]})
    assert numpy(flow.read(tmp_path / f"{name}.parquet"), "x").tolist() == [1, 2, 3]
    assert numpy(flow.read(str(tmp_path / f"{name}.parquet")).shuffle(2), "x").sum() == 6
    folder = tmp_path / f"in {name}"
    folder.mkdir()
    parquet(folder / "1.parquet", {"x": [4]})
    parquet(folder / "2.parquet", {"x": [5]})
    assert numpy(flow.read(folder), "x").tolist() == [4, 5]
    assert numpy(flow.read(folder / "*.parquet"), "x").tolist() == [4, 5]
    assert numpy(flow.read(folder / "{1..2}.parquet"), "x").tolist() == [4, 5]


def test_a_dot_folder_that_is_named_is_read_and_one_that_is_not_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / ".data").mkdir()
    (tmp_path / "_temporary").mkdir()
    parquet(tmp_path / ".data" / "a.parquet", {"x": [1]})
    parquet(tmp_path / "_temporary" / "a.parquet", {"x": [2]})
    parquet(tmp_path / "a.parquet", {"x": [3]})
    assert numpy(flow.read(tmp_path / ".data"), "x").tolist() == [1]
    assert numpy(flow.read(tmp_path), "x").tolist() == [3]


def test_relative_paths_follow_the_working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parquet(tmp_path / "a.parquet", {"x": [1, 2]})
    monkeypatch.chdir(tmp_path)
    pipe = flow.read("a.parquet")
    assert numpy(pipe, "x").tolist() == [1, 2]
    monkeypatch.chdir("/")
    assert numpy(pipe, "x").tolist() == [1, 2]


def test_files_come_in_natural_order_and_a_list_in_the_order_given(tmp_path: Path) -> None:
    for number in (1, 2, 10, 9, 100):
        parquet(tmp_path / f"part-{number}.parquet", {"x": [number]})
    assert numpy(flow.read(tmp_path), "x").tolist() == [1, 2, 9, 10, 100]
    assert numpy(flow.read(tmp_path / "part-*.parquet"), "x").tolist() == [1, 2, 9, 10, 100]
    given = [tmp_path / f"part-{number}.parquet" for number in (10, 1, 100)]
    assert numpy(flow.read(given), "x").tolist() == [10, 1, 100]


@pytest.fixture
def remote() -> Iterator[str]:
    """A folder of a store that is not the local disk."""
    root = f"/{uuid.uuid4().hex}"
    yield f"memory:/{root}"
    fsspec.filesystem("memory").rm(root, recursive=True)


def upload(folder: Path, remote: str) -> None:
    store = fsspec.filesystem("memory")
    for file in folder.rglob("*"):
        if file.is_file():
            store.pipe(f"{remote}/{file.relative_to(folder)}", file.read_bytes())


@pytest.mark.parametrize(
    "name", ["parquet", "arrow file", "arrow stream", "jsonl", "jsonl.gz", "tar", "tar.gz", "folder"]
)
def test_a_remote_store_gives_what_the_disk_gives(name: str, remote: str, tmp_path: Path) -> None:
    FORMATS[name](tmp_path)
    upload(tmp_path, remote)
    ends = {
        "parquet": "*.parquet", "tar": "{a,b}.tar", "folder": "*.png", "arrow file": "a.arrow",
        "arrow stream": "a.arrows", "jsonl": "a.jsonl", "jsonl.gz": "a.jsonl.gz", "tar.gz": "a.tar.gz",
    }  # fmt: skip
    here, there = flow.read(tmp_path / ends[name]), flow.read(f"{remote}/{ends[name]}")
    assert here.count() == there.count() == ROWS
    shuffled = [p.shuffle(8).seed(2).batch(5, lanes=1, remainder="keep") for p in (here, there)]
    found = []
    for pipe in shuffled:
        with pipe.loader(output="arrow") as loader:
            found.append([batch.to_pylist() for batch in loader])
    assert found[0] == found[1]
    begun, rest = rows_then_rest(shuffled[1], 3)
    assert sorted(ids(begun + rest)) == list(range(ROWS))


def test_an_index_kept_in_a_remote_folder_is_used_by_another_machine(
    remote: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    FORMATS["jsonl"](tmp_path)
    upload(tmp_path, remote)
    url, place = f"{remote}/a.jsonl", f"{remote}/index"
    assert numpy(flow.read(url, index=place), "number").tolist() == list(range(ROWS))
    assert fsspec.filesystem("memory").find(place)
    # Another machine: nothing in its own cache, and a scan would be noticed.
    monkeypatch.setenv("DATAFLOW_CACHE", str(tmp_path / "other"))
    from connectors.jsonl import Jsonl

    monkeypatch.setattr(Jsonl, "scan", None)
    assert numpy(flow.read(url, index=place), "number").tolist() == list(range(ROWS))


class Failing(AbstractFileSystem):  # type: ignore[misc]  # fsspec has no types
    """A store of one folder that fails the next `failures` opens."""

    protocol = "failing"
    cachable = False
    files: ClassVar[dict[str, bytes]] = {}
    failures = 0
    error: type[Exception] = OSError

    def ls(self, path: str, detail: bool = True, **kwargs: Any) -> list[Any]:
        path = self._strip_protocol(path).strip("/")
        found = [
            {"name": name, "size": len(content), "type": "file"}
            for name, content in self.files.items()
            if name == path or name.startswith(f"{path}/")
        ]
        if not found:
            raise FileNotFoundError(path)
        return found if detail else [entry["name"] for entry in found]

    def _open(self, path: str, *args: Any, **kwargs: Any) -> io.BytesIO:
        if type(self).failures > 0:
            type(self).failures -= 1
            raise type(self).error(f"no route to {path}")
        return io.BytesIO(self.files[self._strip_protocol(path)])


@pytest.fixture
def failing(tmp_path: Path) -> Iterator[str]:
    fsspec.register_implementation("failing", Failing, clobber=True)
    FORMATS["parquet"](tmp_path)
    Failing.files.update({f"data/{file.name}": file.read_bytes() for file in tmp_path.glob("*.parquet")})
    yield "failing://data/*.parquet"
    Failing.files.clear()


@pytest.mark.parametrize(
    "error", [OSError, PermissionError, FileNotFoundError, TimeoutError, ConnectionResetError]
)
def test_a_store_that_fails_is_an_error_that_names_the_file(
    error: type[Exception], failing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipe = flow.read(failing)
    assert pipe.count() == ROWS
    monkeypatch.setattr(Failing, "error", error)
    monkeypatch.setattr(Failing, "failures", 1000)
    with pytest.raises(ConnectorError, match=r"\.parquet"):
        numpy(pipe, "number")


class Broken(io.BytesIO):
    """An open file whose connection breaks behind its first bytes."""

    def __init__(self, content: bytes, error: Exception) -> None:
        super().__init__(content)
        self.limit, self.error = len(content) // 20, error

    def read(self, size: int | None = -1) -> bytes:
        if self.tell() + (size if size is not None and size >= 0 else self.limit + 1) > self.limit:
            raise self.error
        return super().read(size)


class ClientError(Exception):
    """What HTTP and object store libraries raise: no OSError."""


@pytest.mark.parametrize("error", [ConnectionResetError("reset by peer"), ClientError("SlowDown")], ids=repr)
@pytest.mark.parametrize("name", ["parquet", "jsonl", "tar", "arrow file", "arrow stream"])
def test_a_connection_that_breaks_in_the_middle_of_a_file_is_an_error_that_names_it(
    name: str, error: Exception, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fsspec.register_implementation("failing", Failing, clobber=True)
    FORMATS[name](tmp_path)
    file = sorted(tmp_path.iterdir())[0]
    content = file.read_bytes()
    monkeypatch.setitem(Failing.files, f"broken/{file.name}", content)
    pipe = flow.read(f"failing://broken/{file.name}")
    assert pipe.count() > 0
    monkeypatch.setattr(Failing, "_open", lambda *_, **__: Broken(content, error))
    with pytest.raises(ConnectorError, match=file.name.replace(".", r"\.")) as caught:
        arrow(pipe)
    assert str(error) in str(caught.value)


def test_a_store_that_works_again_is_read_again_by_the_same_loader(
    failing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipe = flow.read(failing).shuffle(8).seed(1).batch(4, remainder="keep")
    with pipe.loader(output="numpy", ids=True) as loader:
        want = ids(loader)
    with pipe.loader(output="numpy", ids=True) as loader:
        monkeypatch.setattr(Failing, "failures", 1000)
        with pytest.raises(ConnectorError):
            list(loader)
        monkeypatch.setattr(Failing, "failures", 0)
        state = loader.state_dict()
        loader.load_state_dict(state)
        assert (loader.epoch, loader.step) == (0, 0)
        assert ids(loader) == want


def test_a_store_of_which_nothing_is_known_names_the_schemes_that_are() -> None:
    with pytest.raises(DataflowError, match="nosuch"):
        flow.read("nosuch://a/b.parquet").schema  # noqa: B018
    with pytest.raises((ConnectorError, MissingExtraError)) as caught:
        flow.read("s3://bucket-that-is-not-there/a.parquet", storage_options={"anon": True}).schema  # noqa: B018
    assert caught.value.hint or "bucket" in str(caught.value)


def test_storage_options_reach_the_store(tmp_path: Path) -> None:
    inner = parquet(tmp_path / "a.parquet", {"x": [1, 2]})
    url = "dir://a.parquet"
    pipe = flow.read(url, storage_options={"path": str(inner.parent), "target_protocol": "file"})
    assert numpy(pipe, "x").tolist() == [1, 2]


def indexed(path: Path) -> flow.Pipeline:
    pipe = flow.read(path)
    assert pipe.count() > 0
    return pipe


def test_a_file_that_vanishes_between_index_and_read_is_an_error_that_names_it(tmp_path: Path) -> None:
    FORMATS["parquet"](tmp_path)
    pipe = indexed(tmp_path)
    (tmp_path / "b.parquet").unlink()
    with pytest.raises((ConnectorError, DataError), match=r"b\.parquet"):
        numpy(pipe, "number")


def test_a_file_that_changes_between_index_and_read_is_an_error_that_names_it(tmp_path: Path) -> None:
    FORMATS["parquet"](tmp_path)
    pipe = indexed(tmp_path)
    parquet(tmp_path / "b.parquet", {"number": [1], "text": ["new"]})
    with pytest.raises(DataError, match=r"b\.parquet"):
        numpy(pipe, "number")
    # A new run sees the file as it is.
    assert flow.read(tmp_path).count() == 10


@pytest.mark.parametrize("name", ["jsonl", "tar", "arrow file", "arrow stream"])
def test_a_shorter_file_of_any_format_is_an_error_and_never_other_rows(name: str, tmp_path: Path) -> None:
    FORMATS[name](tmp_path)
    file = sorted(path for path in tmp_path.iterdir())[0]
    pipe = indexed(file)
    with file.open("rb+") as handle:
        handle.truncate(file.stat().st_size // 2)
    with pytest.raises((DataError, ConnectorError), match=file.name.replace(".", r"\.")):
        arrow(pipe)


def test_a_file_written_anew_with_the_same_size_is_indexed_anew(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"x": 10}\n{"x": 20}\n')
    assert numpy(flow.read(path), "x").tolist() == [10, 20]
    path.write_text('{"x": 1234567890}\n\n'[:20].ljust(20))
    os.utime(path, ns=(1, 1))
    assert flow.read(path).count() == 1


def test_reading_never_changes_or_deletes_what_lies_there(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    FORMATS["parquet"](data)
    FORMATS["jsonl"](data)
    before = {file: (file.read_bytes(), file.stat().st_mtime_ns) for file in data.iterdir()}
    for pattern in ("*.parquet", "*.jsonl"):
        pipe = flow.read(data / pattern, index=tmp_path / "index").shuffle(4).batch(4)
        with pipe.loader(output="numpy") as loader:
            for batch in loader:
                batch["number"][:] = -1
    assert {file: (file.read_bytes(), file.stat().st_mtime_ns) for file in data.iterdir()} == before


def test_a_cache_that_cannot_be_written_or_is_damaged_does_not_stop_a_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, private_cache: Path
) -> None:
    FORMATS["jsonl"](tmp_path)
    url = tmp_path / "a.jsonl"
    assert flow.read(url).count() == ROWS
    kept = list(private_cache.rglob("*.arrow"))
    assert kept
    for file in kept:
        file.write_bytes(b"damaged" * 10)
    assert numpy(flow.read(url), "number").tolist() == list(range(ROWS))
    blocked = tmp_path / "file"
    blocked.write_text("in the way")
    monkeypatch.setenv("DATAFLOW_CACHE", str(blocked / "cache"))
    assert numpy(flow.read(url), "number").tolist() == list(range(ROWS))


def test_many_small_files_are_all_read_and_by_number(tmp_path: Path) -> None:
    table = pa.table({"x": np.arange(60)})
    for k in range(60):
        pq.write_table(table.slice(k, 1), tmp_path / f"{k}.parquet")
    pipe = flow.read(tmp_path)
    assert [pipe[i]["x"] for i in (0, 9, 10, 59)] == [0, 9, 10, 59]
    assert numpy(pipe, "x", 7).tolist() == list(range(60))
