from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from fsspec.implementations.memory import MemoryFileSystem

from connectors.file_info import FileInfo
from connectors.retry import Retry
from connectors.store import Store
from dataflow.errors import ConnectorError, DataError

Answer = Callable[[bytes], bytes]


class Asked(MemoryFileSystem):  # type: ignore[misc]  # fsspec has no types
    """A store that answers the first requests for a file's whole content with what `answers` says of it."""

    cachable = False

    def __init__(self) -> None:
        super().__init__(global_store=False)
        self.answers: dict[str, list[Exception | Answer]] = {}
        self.calls: list[list[str]] = []

    def cat_ranges(self, paths: list[str], starts: Any, ends: Any, **options: Any) -> Any:
        self.calls.append(paths)
        return super().cat_ranges(paths, starts, ends, **options)

    def cat_file(self, path: str, start: int | None = None, end: int | None = None, **options: Any) -> bytes:
        content: bytes = super().cat_file(path, start, end, **options)
        answer = self.answers[path].pop(0) if self.answers.get(path) else None
        if isinstance(answer, Exception):
            raise answer
        return content if answer is None else answer(content)


def store_of(names: Sequence[str]) -> tuple[Store, Asked, list[FileInfo]]:
    fs = Asked()
    for name in names:
        fs.pipe(f"/{name}", name.encode() * 3)
    return Store(fs, Retry(first_wait_s=0)), fs, [FileInfo(f"/{name}", 3 * len(name)) for name in names]


def half(content: bytes) -> bytes:
    return content[: len(content) // 2]


def test_of_many_files_only_those_that_failed_for_the_moment_are_asked_for_again() -> None:
    store, fs, files = store_of(["a", "b", "c", "d"])
    fs.answers = {"/b": [ConnectionResetError(), TimeoutError()], "/d": [half]}
    assert store.read_whole(files) == [b"aaa", b"bbb", b"ccc", b"ddd"]
    assert fs.calls == [["/a", "/b", "/c", "/d"], ["/b", "/d"], ["/b"]]


def test_what_is_wrong_with_one_file_is_returned_in_its_place_and_asked_for_once() -> None:
    store, fs, files = store_of(["a", "b"])
    denied = PermissionError("not for you")
    fs.answers = {"/a": [denied], "/b": [ConnectionResetError()]}
    gone = FileInfo("/gone", 3)
    first, second, third = store.read_whole([*files, gone])
    assert first is denied
    assert second == b"bbb"
    assert isinstance(third, FileNotFoundError)
    assert fs.calls[1:] == [["/b"]]


def test_a_file_that_goes_on_failing_is_an_error_that_names_it() -> None:
    store, fs, files = store_of(["a", "b"])
    fs.answers = {"/b": [ConnectionResetError("reset by peer")] * 99}
    with pytest.raises(
        ConnectorError, match=r"memory:///b cannot be read: 10 tries .*reset by peer"
    ) as caught:
        store.read_whole(files)
    assert isinstance(caught.value.__cause__, ConnectionResetError)


def test_a_file_that_is_shorter_than_it_was_listed_is_read_as_it_is() -> None:
    store, fs, files = store_of(["a"])
    fs.pipe("/a", b"a")
    assert store.read_whole(files) == [b"a"]
    assert len(fs.calls) == 1


def test_no_file_is_no_request_for_one() -> None:
    store, _, _ = store_of([])
    assert store.read_whole([]) == []


def test_local_files_are_arrows_own(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"abc")
    for file in (str(tmp_path / "a"), FileInfo(str(tmp_path / "a"), 3)):
        with Store().open(file) as source, Store().open(file, memory_map=True) as mapped:
            assert isinstance(source, pa.OSFile)
            assert isinstance(mapped, pa.MemoryMappedFile)
        assert Store().read(file, 1).to_pybytes() == b"bc"


def test_a_file_of_another_size_than_it_was_indexed_with_is_not_opened(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"abc")
    memory, fs, _ = store_of([])
    fs.pipe("/a", b"abc")
    plain = MemoryFileSystem()
    plain.pipe("/test_store/a", b"abc")
    for store, path in ((Store(), str(tmp_path / "a")), (memory, "/a"), (Store(plain), "/test_store/a")):
        with pytest.raises(
            DataError, match="changed since it was indexed: it had 4 bytes and has 3"
        ) as caught:
            store.open(FileInfo(path, 4))
        assert caught.value.file == path
        assert "begin anew with flow.read(...)" in caught.value.hint
        assert store.read(path).to_pybytes() == b"abc"
    plain.rm("/test_store/a")


def test_stores_that_differ_in_their_patience_alone_are_equal() -> None:
    fs = Asked()
    assert Store(fs, Retry(tries=1)) == Store(fs)
    assert hash(Store(fs, Retry(tries=1))) == hash(Store(fs))


@pytest.mark.parametrize(("mapped", "opener"), [(False, "OSFile"), (True, "memory_map")])
def test_a_file_that_is_put_in_the_place_of_another_while_that_is_opened_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mapped: bool, opener: str
) -> None:
    (tmp_path / "a").write_bytes(b"old")
    (tmp_path / "new").write_bytes(b"newer")
    info = FileInfo(str(tmp_path / "a"), 3)
    opened: list[pa.NativeFile] = []
    open_file = getattr(pa, opener)

    def replaced_first(*given: str) -> pa.NativeFile:
        (tmp_path / "new").replace(tmp_path / "a")
        opened.append(open_file(*given))
        return opened[0]

    monkeypatch.setattr(pa, opener, replaced_first)
    with pytest.raises(DataError, match="changed since it was indexed: it had 3 bytes and has 5"):
        Store().open(info, memory_map=mapped)
    assert opened[0].closed
