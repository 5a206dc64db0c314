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


def test_what_the_stores_call_time_and_etag_is_found() -> None:
    noon = datetime(2026, 1, 1, 12, tzinfo=UTC)
    assert listed({"size": 3, "LastModified": noon, "ETag": '"abc"'}, "a") == FileInfo(
        "a", 3, noon.timestamp(), "abc"
    )
    assert listed({"size": 3, "mtime": 7, "etag": "abc"}, "a") == FileInfo("a", 3, 7.0, "abc")
    assert listed({"size": 3, "created": "yesterday"}, "a") == FileInfo("a", 3)


def test_a_store_that_does_not_tell_the_size_is_an_error() -> None:
    with pytest.raises(ConnectorError, match="size of a") as caught:
        listed({"name": "a", "size": None}, "a")
    assert "download" in caught.value.hint
