"""An index kept in a store that fails, or that others write to at the same time."""

from __future__ import annotations

import errno
import subprocess
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, ClassVar

import fsspec
import pytest
from fsspec.implementations.memory import MemoryFileSystem
from lines_format import Lines, scanned, write_lines

import dataflow.index.codec
from connectors.retry import SystemClock
from dataflow.errors import PlanError
from dataflow.index import open_index
from dataflow.index.index import Index

SHARED = "shaky://shared/data.arrow"


class Shaky(MemoryFileSystem):  # type: ignore[misc]  # fsspec has no types
    """A store whose next requests fail, each with the first of `failures`."""

    protocol = "shaky"
    store: ClassVar[dict[str, Any]] = {}
    pseudo_dirs: ClassVar[list[str]] = [""]
    failures: ClassVar[list[Exception]] = []
    cachable = False

    def _fail(self) -> None:
        if self.failures:
            raise self.failures.pop(0)

    def info(self, path: str, **options: Any) -> Any:
        self._fail()
        return super().info(path, **options)

    def cat_file(self, path: str, start: int | None = None, end: int | None = None, **options: Any) -> bytes:
        self._fail()
        found: bytes = super().cat_file(path, start, end, **options)
        return found

    def pipe_file(self, path: str, value: bytes, mode: str = "overwrite", **options: Any) -> None:
        self._fail()
        super().pipe_file(path, value, mode, **options)


class Unavailable(OSError):
    status = 503


@pytest.fixture(autouse=True)
def store(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An empty store, and a clock that never waits."""
    fsspec.register_implementation("shaky", Shaky, clobber=True)
    monkeypatch.setattr(SystemClock, "wait", lambda self, seconds, stop: stop.is_set())
    Shaky.store.clear()
    Shaky.failures.clear()
    yield
    Shaky.failures.clear()


def opened(folder: Path, index: str | Path | None = SHARED) -> Index:
    return open_index(folder, format=Lines(), index=index, progress=False)


@pytest.mark.parametrize("failure", [lambda: Unavailable("busy"), ConnectionResetError, TimeoutError])
def test_a_store_that_fails_in_passing_neither_loses_an_index_nor_costs_a_scan(
    folder: Path,
    marks: Path,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    failure: Callable[[], Exception],
) -> None:
    Shaky.failures += [failure(), failure()]
    first = opened(folder)
    assert SHARED in Shaky.store
    assert len(scanned(marks)) == 3
    monkeypatch.setenv("DATAFLOW_CACHE", str(tmp_path / "another node"))
    for _ in range(3):  # of which the later ones have a mirror
        Shaky.failures += [failure(), failure(), failure()]
        assert opened(folder).hash == first.hash
    assert scanned(marks) == []


def test_a_store_without_the_right_to_write_is_asked_once(
    folder: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    asked: list[str] = []

    def refuse(self: object, path: str, *args: object, **options: object) -> None:
        asked.append(path)
        raise PermissionError(errno.EACCES, "no right")

    monkeypatch.setattr(Shaky, "pipe_file", refuse)
    assert opened(folder).rows == 11
    assert len(asked) == len(set(asked))
    assert "cannot be written" in caplog.text


@pytest.mark.parametrize("damage", ["half", "zeros", "other", "end of another"])
def test_a_remote_index_that_is_not_whole_is_built_again_and_not_kept_in_the_mirror(
    folder: Path, marks: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damage: str
) -> None:
    monkeypatch.setattr(dataflow.index.codec, "_SUMMED_BYTES", 0)  # as if all columns were large
    first = opened(folder)
    whole = Shaky.store[SHARED].getvalue()
    place = whole.index(b"a.linesb.lines")
    broken = {
        "half": whole[: len(whole) // 2],
        "zeros": bytes(len(whole)),
        "other": b"<html>not an index</html>",
        "end of another": whole[:place] + b"x" + whole[place + 1 :],
    }[damage]
    Shaky().pipe_file(SHARED, broken)
    scanned(marks)
    monkeypatch.setenv("DATAFLOW_CACHE", str(tmp_path / "another node"))
    assert opened(folder).hash == first.hash
    assert len(scanned(marks)) == 3
    assert Shaky.store[SHARED].getvalue() == whole
    monkeypatch.setenv("DATAFLOW_CACHE", str(tmp_path / "a third node"))
    assert opened(folder).hash == first.hash
    assert scanned(marks) == []


def test_an_answer_that_is_cut_off_is_asked_for_again(
    folder: Path, marks: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = opened(folder)
    scanned(marks)
    monkeypatch.setenv("DATAFLOW_CACHE", str(tmp_path / "another node"))
    real, cuts = Shaky.cat_file, [10, 1000]

    def cut(self: Shaky, path: str, *args: Any, **options: Any) -> bytes:
        found = real(self, path, *args, **options)
        return found[: cuts.pop()] if cuts else found

    monkeypatch.setattr(Shaky, "cat_file", cut)
    assert opened(folder).hash == first.hash
    assert scanned(marks) == []


def test_nodes_that_build_one_index_at_once_all_have_their_own_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The files of each node lie at another root, and one of them has a row more.
    for node in range(4):
        for name, rows in (("a", 8 if node == 3 else 7), ("b", 0), ("c", 4)):
            write_lines(tmp_path / f"node {node}" / f"{name}.lines", rows, mtime=1_000)
    barrier = threading.Barrier(4)
    real = Shaky.pipe_file

    def together(self: Shaky, path: str, value: bytes, *args: Any, **options: Any) -> None:
        real(self, path, value, *args, **options)
        if path.endswith("data.arrow"):
            barrier.wait(60)

    monkeypatch.setattr(Shaky, "pipe_file", together)
    with ThreadPoolExecutor(4) as pool:
        built = list(pool.map(lambda node: opened(tmp_path / f"node {node}"), range(4)))
    assert [index.rows for index in built] == [11, 11, 11, 12]
    assert [Path(index.root).name for index in built] == [f"node {node}" for node in range(4)]


@pytest.mark.parametrize("name", ["a::b", "sp ace#1", "[x]*?", "50% off", "ü/é", "{a,b}"])
def test_a_cache_and_an_index_lie_in_folders_of_any_name(
    folder: Path, marks: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv("DATAFLOW_CACHE", str(tmp_path / name / "cache"))
    for index in (None, tmp_path / name / "index", str(tmp_path / name / "one.arrow")):
        assert opened(folder, index).rows == opened(folder, index).rows == 11
    assert (tmp_path / name / "one.arrow").is_file()
    assert list((tmp_path / name / "cache" / "index").glob("*.arrow"))
    assert len(scanned(marks)) == 3


def test_an_index_in_an_unknown_store_is_an_error_in_the_call(folder: Path) -> None:
    with pytest.raises(PlanError, match="s4://place") as caught:
        opened(folder, "s4://place")
    assert "known" in caught.value.hint


@pytest.fixture
def tiny(tmp_path: Path) -> Iterator[Path]:
    """A filesystem of 64 KiB."""
    place = tmp_path / "tiny"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(place)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("mounting needs more rights")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


@pytest.mark.parametrize("is_remote", [True, False])
def test_a_cache_on_a_full_disk_costs_a_warning_and_leaves_nothing_behind(
    folder: Path,
    tiny: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    is_remote: bool,
) -> None:
    (tiny / "filler").write_bytes(bytes(60 << 10))
    monkeypatch.setenv("DATAFLOW_CACHE", str(tiny / "cache"))
    index = SHARED if is_remote else tiny / "index"
    for _ in range(2):
        assert opened(folder, index).rows == 11
    if not is_remote:
        assert "cannot be written" in caplog.text
    assert not list(tiny.rglob("*.part"))
