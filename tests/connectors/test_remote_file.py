from __future__ import annotations

import io
import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from fsspec.spec import AbstractBufferedFile, AbstractFileSystem

from connectors.file_info import FileInfo
from connectors.remote_file import RemoteFile
from connectors.retry import Retry
from connectors.stop import end_waits_at
from connectors.store import Store
from dataflow.errors import ConnectorError, DataError

CONTENT = bytes(k * k % 251 for k in range(10_000))
INFO = FileInfo("a/b.bin", len(CONTENT), etag="1")
CACHES = ["none", "readahead", "bytes", "blockcache", "background", "first", "mmap", "all"]

Fetch = Callable[[int, int], bytes]


class Patient:
    """A clock that never waits; what was asked for is counted in tries."""

    def now(self) -> float:
        return 0.0

    def wait(self, seconds: float, stop: threading.Event) -> bool:
        return stop.is_set()


RETRY = Retry(clock=Patient())


class Ranged(AbstractBufferedFile):  # type: ignore[misc]  # fsspec has no types
    """A file of fsspec's own kind, with its caches."""

    def _fetch_range(self, start: int, end: int) -> bytes:
        return self.fs.fetch(start, end)  # type: ignore[no-any-return]


class Flaky(AbstractFileSystem):  # type: ignore[misc]
    """A store of one file. `faults` are what its next requests for bytes do, None to succeed; `open_faults` how
    its next opens fail."""

    protocol = "flaky"
    cachable = False

    def __init__(self, cache_type: str = "none") -> None:
        super().__init__()
        self.content, self.cache_type = CONTENT, cache_type
        self.etag, self.mtime = "1", 0.0
        # As object stores do, it answers from a listing that it has kept.
        self.listing: dict[str, Any] | None = None
        self.faults: list[Exception | Fetch | None] = []
        self.open_faults: list[Exception] = []
        self.opened = self.looked = 0
        self.asked: list[tuple[int, int]] = []

    def info(self, path: str, **options: Any) -> dict[str, Any]:
        self.looked += 1
        if self.listing is None:
            self.listing = self._listed(path)
        return self.listing

    def invalidate_cache(self, path: str | None = None) -> None:
        self.listing = None

    def _listed(self, path: str) -> dict[str, Any]:
        found: dict[str, Any] = {"name": path, "size": len(self.content), "type": "file", "mtime": self.mtime}
        return found | ({"ETag": f'"{self.etag}"'} if self.etag else {})

    def _open(self, path: str, mode: str = "rb", **options: Any) -> Any:
        self.opened += 1
        if self.open_faults:
            raise self.open_faults.pop(0)
        return Ranged(self, path, block_size=512, cache_type=self.cache_type)

    def fetch(self, start: int, end: int) -> bytes:
        self.asked.append((start, end))
        fault = self.faults.pop(0) if self.faults else None
        if isinstance(fault, Exception):
            raise fault
        return self.content[start:end] if fault is None else fault(start, end)

    def change(self, content: bytes, etag: str) -> Fetch:
        """A request in whose midst the file is replaced, and which breaks."""

        def broken(start: int, end: int) -> bytes:
            self.content, self.etag = content, etag
            raise ConnectionResetError("reset")

        return broken


def half(start: int, end: int) -> bytes:
    return CONTENT[start : (start + min(end, len(CONTENT))) // 2]


def opened(
    fs: Flaky, file: FileInfo | str = INFO, retry: Retry = RETRY, *, read_ahead: bool = True
) -> RemoteFile:
    return RemoteFile(fs, file, retry, read_ahead=read_ahead)


def read_on(file: RemoteFile, size: int) -> bytes:
    parts = []
    while part := file.read(size):
        parts.append(part)
    return b"".join(parts)


@pytest.mark.parametrize("cache", CACHES)
@pytest.mark.parametrize(
    "fault", [ConnectionResetError("reset"), half, lambda start, end: b""], ids=["reset", "half", "none"]
)
@pytest.mark.parametrize("at", range(4))
@pytest.mark.parametrize("read_ahead", [True, False])
def test_the_bytes_are_those_of_an_undisturbed_read_whatever_cache_fsspec_has(
    cache: str, fault: Exception | Fetch, at: int, read_ahead: bool
) -> None:
    fs = Flaky(cache_type=cache)
    fs.faults = [*[None] * at, fault, None, fault]
    assert read_on(opened(fs, read_ahead=read_ahead), 700) == CONTENT
    back = Flaky(cache_type=cache)
    back.faults = [*[None] * at, fault, None, fault]
    file = opened(back, read_ahead=read_ahead)
    for place in (9_000, 8_700, 300, 0, 5_000, 4_800, 4_600, 9_990):
        assert file.seek(place) == place
        assert file.read(600) == CONTENT[place : place + 600]
        assert file.tell() == min(place + 600, len(CONTENT))


def test_a_read_goes_on_where_it_was_and_what_has_come_is_not_asked_for_again() -> None:
    fs = Flaky()
    file = opened(fs)
    assert file.read(4_000) == CONTENT[:4_000]
    fs.faults = [TimeoutError(), ConnectionResetError()]
    assert file.read() == CONTENT[4_000:]
    assert fs.asked == [(0, 4_000), *[(4_000, 10_000)] * 3]


@pytest.mark.parametrize("cache", ["readahead", "bytes", "none"])
def test_of_known_ranges_no_byte_is_asked_for_that_is_not_in_them(cache: str) -> None:
    fs = Flaky(cache_type=cache)
    file = opened(fs, read_ahead=False)
    for start, end in ((0, 100), (100, 700), (5_000, 5_001), (9_990, 10_000)):
        file.seek(start)
        assert file.read(end - start) == CONTENT[start:end]
        assert fs.asked[-1] == (start, end)
    assert Store(fs, RETRY).read(INFO, 30, 40).to_pybytes() == CONTENT[30:70]
    assert fs.asked[4:] == [(30, 70)]


def test_a_cache_that_holds_blocks_is_left_to_who_chose_it() -> None:
    fs = Flaky(cache_type="blockcache")
    file = opened(fs, read_ahead=False)
    assert file.read(10) + file.read(10) == CONTENT[:20]
    assert fs.asked == [(0, 512)]


def test_a_range_that_broke_is_asked_for_in_pieces_so_that_what_came_is_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("connectors.remote_file._PIECE_BYTES", 1_000)
    fs = Flaky()

    def limited(start: int, end: int) -> bytes:
        if end - start > 1_000:
            raise ConnectionResetError("never so much at once")
        return CONTENT[start:end]

    fs.faults = [limited] * 100
    assert opened(fs, retry=Retry(tries=2, clock=Patient())).read() == CONTENT


def test_a_file_that_does_not_open_is_opened_again() -> None:
    fs = Flaky()
    fs.open_faults = [ConnectionResetError(), TimeoutError()]
    assert opened(fs).read() == CONTENT
    assert fs.opened == 3


def test_without_a_failure_a_file_is_opened_once_and_its_version_is_not_asked_for() -> None:
    fs = Flaky()
    assert read_on(opened(fs), 999) == CONTENT
    # Once by fsspec's own file, for its size.
    assert (fs.opened, fs.looked) == (1, 1)


def test_a_file_of_another_size_than_it_was_listed_with_is_an_error_where_it_is_opened() -> None:
    fs = Flaky()
    fs.content = CONTENT + b"more"
    with pytest.raises(
        DataError, match=r"it has changed since it was indexed: it had 10,000 bytes"
    ) as caught:
        opened(fs)
    assert caught.value.file == "a/b.bin"
    assert "begin anew with flow.read(...)" in caught.value.hint
    assert fs.asked == []


def test_tries_are_counted_anew_behind_every_range_that_came() -> None:
    fs = Flaky()
    fs.faults = [ConnectionResetError(), None] * 20
    assert read_on(opened(fs, retry=Retry(tries=2, clock=Patient())), 1_000) == CONTENT


def test_tries_that_all_fail_are_one_error_with_url_offset_tries_cause_and_what_to_do() -> None:
    fs = Flaky()
    file = opened(fs)
    file.read(123)
    cause = ConnectionResetError("reset by peer")
    fs.faults = [cause] * 99
    with pytest.raises(
        ConnectorError, match=r"flaky://a/b\.bin at byte 123 .*10 tries.*reset by peer"
    ) as caught:
        file.read(10)
    assert caught.value.__cause__ is cause
    assert caught.value.hint
    assert len(fs.asked) == 1 + 10


@pytest.mark.parametrize("error", [FileNotFoundError("b.bin"), PermissionError("denied"), ValueError("odd")])
def test_a_permanent_failure_is_one_try(error: Exception) -> None:
    fs = Flaky()
    file = opened(fs)
    fs.faults = [error]
    with pytest.raises(ConnectorError, match=r"flaky://a/b\.bin at byte 0") as caught:
        file.read(10)
    assert caught.value.__cause__ is error
    assert caught.value.hint
    assert len(fs.asked) == 1
    fs.open_faults = [error]
    with pytest.raises(type(error)):
        opened(fs)
    assert fs.opened == 2


OTHER = bytes(reversed(CONTENT))


@pytest.mark.parametrize("file", [INFO, INFO.path], ids=["as listed", "a path"])
@pytest.mark.parametrize(
    ("content", "etag", "what"),
    [(OTHER, "2", "etag"), (OTHER + b"more", "1", "10,004"), (OTHER[:200], "1", "200"), (b"", "", "has 0")],
)
@pytest.mark.parametrize(
    "cache", [cache for cache in CACHES if cache != "all"]
)  # which has one version, whole
def test_a_file_that_was_changed_between_two_tries_is_an_error_and_never_a_mixture(
    cache: str, file: FileInfo | str, content: bytes, etag: str, what: str
) -> None:
    fs = Flaky(cache_type=cache)
    remote = opened(fs, file)
    assert remote.read(300) == CONTENT[:300]
    fs.faults = [fs.change(content, etag)]
    remote.seek(5_000)
    with pytest.raises(DataError, match=what) as caught:
        remote.read(5_000)
    assert caught.value.file == "a/b.bin"
    assert caught.value.offset == 5_000
    assert caught.value.hint


def test_a_file_that_changes_while_it_is_read_again_is_noticed_too() -> None:
    fs = Flaky()
    file = opened(fs)

    def replaced(start: int, end: int) -> bytes:
        fs.content, fs.etag = OTHER, "2"
        return OTHER[start:end]

    fs.faults = [ConnectionResetError(), replaced]
    with pytest.raises(DataError, match="etag"):
        file.read(100)


def test_of_a_store_without_etags_the_time_tells_versions_apart() -> None:
    fs = Flaky()
    fs.etag, fs.mtime = "", 6.0
    fs.faults = [TimeoutError()]
    with pytest.raises(DataError, match="time"):
        opened(fs, FileInfo("b.bin", len(CONTENT), mtime=5.0)).read(10)
    fs.faults = [TimeoutError()]
    assert opened(fs, FileInfo("b.bin", len(CONTENT))).read(10) == CONTENT[:10]


def test_a_file_that_is_gone_when_it_is_asked_for_again_is_an_error_at_once() -> None:
    fs = Flaky()
    file = opened(fs)
    fs.faults, fs.open_faults = [ConnectionResetError()], [FileNotFoundError("b.bin")]
    with pytest.raises(ConnectorError, match="FileNotFoundError"):
        file.read(10)
    assert fs.opened == 2


@pytest.mark.parametrize("cache", ["none", "readahead", "bytes", "blockcache"])
def test_a_store_that_gives_more_than_was_asked_for_is_an_error(cache: str) -> None:
    fs = Flaky(cache_type=cache)
    file = opened(fs)
    fs.faults = [lambda start, end: CONTENT + CONTENT]
    with pytest.raises(ConnectorError, match="20,000 bytes where") as caught:
        file.read(10)
    assert "ranges" in caught.value.hint


class Plain(io.BytesIO):
    """An open file that is none of fsspec's own, and gives what it has."""

    def __init__(self, content: bytes, reads: list[Exception | int]) -> None:
        super().__init__(content)
        self._reads = reads

    def read(self, size: int | None = -1) -> bytes:
        fault = self._reads.pop(0) if self._reads else None
        if isinstance(fault, Exception):
            raise fault
        return super().read(size if fault is None else fault)


class PlainStore(Flaky):
    """A store that opens such files."""

    def __init__(self, reads: list[Exception | int]) -> None:
        super().__init__()
        self.reads = reads
        self.copy: bytes | None = None  # what it opens in the place of the file

    def _open(self, path: str, mode: str = "rb", **options: Any) -> Any:
        self.opened += 1
        return Plain(self.content if self.copy is None else self.copy, self.reads)


@pytest.mark.parametrize("reads", [[10], [10, 0, 20], [0, 0], [10, ConnectionResetError(), 3, EOFError, 0]])
def test_short_reads_of_other_files_are_read_on_to_the_end(reads: list[Any]) -> None:
    fs = PlainStore([error for error in reads if error is not EOFError])
    assert opened(fs).read(9_000) == CONTENT[:9_000]
    end = PlainStore([])
    file = opened(end)
    assert file.seek(-10, 2) == len(CONTENT) - 10
    assert file.read(100) == CONTENT[-10:]
    assert file.read(100) == b""
    assert file.seek(5) == 5
    assert file.seek(5, 1) == 10
    assert file.read() == CONTENT[10:]
    assert end.opened == 1


def test_a_cut_off_copy_is_not_taken_for_the_whole_file() -> None:
    fs = PlainStore([])
    fs.copy = CONTENT[:500]
    with pytest.raises(ConnectorError, match=r"10 tries .* no byte came, and the file has 10000"):
        opened(fs).read(len(CONTENT))


def test_an_other_file_that_gives_too_much_is_an_error() -> None:
    with pytest.raises(ConnectorError, match="20 bytes where 10"):
        opened(PlainStore([20])).read(10)


def test_arrow_reads_it_and_gets_the_error_as_it_was_raised() -> None:
    fs = Flaky(cache_type="readahead")
    store = Store(fs, RETRY)
    fs.faults = [ConnectionResetError(), half]
    assert store.read(INFO, 100, 5_000).to_pybytes() == CONTENT[100:5_100]
    with store.open("a/b.bin") as source:
        assert source.size() == len(CONTENT)
        fs.faults = [ConnectionResetError("gone away")] * 10
        with pytest.raises(ConnectorError, match=r"10 tries.*gone away"):
            source.read_buffer(100)
    assert source.closed
    fs.faults = [ConnectionResetError()] * 10
    with pytest.raises(ConnectorError, match="10 tries"):
        store.read(INFO, 0, 10)


def test_a_file_opened_by_a_thread_ends_its_waits_with_that_thread() -> None:
    fs = Flaky()
    stop = threading.Event()
    found: list[RemoteFile] = []

    def work() -> None:
        end_waits_at(stop)
        found.append(opened(fs))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    fs.faults = [ConnectionResetError()] * 2
    assert found[0].read(1) == CONTENT[:1]
    stop.set()
    fs.faults = [ConnectionResetError()]
    with pytest.raises(ConnectorError) as caught:
        found[0].read(1)
    assert "closed" in caught.value.hint


class Stubborn(Flaky):
    """A store whose files fail to close."""

    closed = 0

    def _open(self, path: str, mode: str = "rb", **options: Any) -> Any:
        handle = io.BytesIO(self.content)

        def close() -> None:
            self.closed += 1
            raise ConnectionResetError

        return SimpleNamespace(read=handle.read, seek=handle.seek, close=close)


def test_a_failure_to_close_what_was_read_costs_nothing() -> None:
    fs = Stubborn()
    file = opened(fs)
    file.close()
    file.close()
    assert file.closed
    assert fs.closed == 1
