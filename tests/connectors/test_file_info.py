from __future__ import annotations

from datetime import UTC, datetime

import pytest

from connectors.file_info import FileInfo, listed
from dataflow.errors import ConnectorError

SEEN = FileInfo("a", 10, mtime=5.0, etag="x")


@pytest.mark.parametrize(
    ("later", "difference"),
    [
        (SEEN, ""),
        (FileInfo("a", 11, mtime=5.0, etag="x"), "it had 10 bytes and has 11"),
        (FileInfo("a", 10, mtime=5.0, etag="y"), "its etag was x and is y"),
        (FileInfo("a", 10, mtime=9.0, etag="x"), ""),
        (FileInfo("a", 10, mtime=9.0), "its time was 5.0 and is 9.0"),
        (FileInfo("a", 10), ""),
    ],
)
def test_versions_differ_by_size_by_etag_and_without_those_by_time(later: FileInfo, difference: str) -> None:
    assert SEEN.difference(later) == difference


NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
EARLIER = datetime(2025, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    "entry",
    [
        {"mtime": NOON.timestamp(), "created": EARLIER.timestamp()},  # local
        {"mtime": NOON, "ctime": EARLIER, "updated": "2026-01-01T12:00:00.000Z"},  # Google
        {"updated": "2026-01-01T12:00:00.000Z", "timeCreated": "2025-01-01T00:00:00.000Z"},  # Google, older
        {"LastModified": NOON, "created": EARLIER},  # S3
        {"last_modified": NOON, "creation_time": EARLIER},  # Azure
        {"Last-Modified": "Thu, 01 Jan 2026 12:00:00 GMT"},  # HTTP
        {"created": NOON},  # memory
        {"mtime": None, "created": NOON},
    ],
)
def test_the_time_of_the_last_change_is_found_whatever_a_store_calls_it(entry: dict[str, object]) -> None:
    assert listed({"size": 3, **entry}, "a") == FileInfo("a", 3, NOON.timestamp())


def test_a_time_that_cannot_be_read_is_no_time() -> None:
    assert listed({"size": 3, "created": "yesterday"}, "a") == FileInfo("a", 3)
    assert listed({"size": 3}, "a") == FileInfo("a", 3)


def test_etags_lose_their_quotes_whatever_a_store_calls_them() -> None:
    assert listed({"size": 3, "ETag": '"abc"'}, "a") == FileInfo("a", 3, etag="abc")
    assert listed({"size": 3, "etag": "abc"}, "a") == FileInfo("a", 3, etag="abc")


def test_a_store_that_does_not_tell_the_size_is_an_error() -> None:
    with pytest.raises(ConnectorError, match="size of a") as caught:
        listed({"name": "a", "size": None}, "a")
    assert "download" in caught.value.hint
