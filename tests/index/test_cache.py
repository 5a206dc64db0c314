"""One cached file: on the local disk, or in a store that tells much or little about it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from fsspec.implementations.memory import MemoryFileSystem

from connectors.retry import SystemClock
from dataflow.index.cache import Place
from dataflow.index.codec import encode_bits

REMOTE = "memory://shared/bits.arrow"


def bitmap(value: int, size: int = 8) -> pa.RecordBatch:
    return encode_bits(np.full(size, value, np.uint8), 8 * size, "key")


def content(place: Place) -> bytes:
    found = place.read()
    assert found is not None
    return found.to_pybytes()


@pytest.fixture
def remote() -> Iterator[Place]:
    """A place in an empty store."""
    MemoryFileSystem.store.clear()
    yield Place.at(REMOTE, "key", {})
    MemoryFileSystem.store.clear()


@pytest.fixture(params=["local", "mirror"])
def fill(request: pytest.FixtureRequest, tmp_path: Path, remote: Place) -> Callable[[], object]:
    """A call that puts one file on the local disk: one that is written there, or a mirror."""
    if request.param == "local":
        return lambda: Place.local(tmp_path / "bits.arrow").write(bitmap(1))
    assert remote.write(bitmap(1))
    return remote.read


def mirrors(cache: Path) -> list[Path]:
    return list((cache / "mirror").glob("*"))


def telling(monkeypatch: pytest.MonkeyPatch, **said: Any) -> None:
    """Have the store say no more of a file than its size and this."""
    real = MemoryFileSystem.info

    def info(self: MemoryFileSystem, path: str, **options: Any) -> dict[str, Any]:
        found = real(self, path, **options)
        known = {key: found[key] for key in ("name", "type", "size")}
        return known | {key: value(found) for key, value in said.items()}

    monkeypatch.setattr(MemoryFileSystem, "info", info)


@pytest.mark.parametrize("key", ["mtime", "LastModified", "last_modified", "created"])
def test_a_mirror_is_used_until_the_time_of_the_file_changes(
    remote: Place, private_cache: Path, monkeypatch: pytest.MonkeyPatch, key: str
) -> None:
    telling(monkeypatch, **{key: lambda found: found["created"]})
    for value in (1, 2):
        assert remote.write(bitmap(value))
        for _ in range(2):
            assert content(remote) == MemoryFileSystem.store["/shared/bits.arrow"].getvalue()
        assert len(mirrors(private_cache)) == 1
    (mirror,) = mirrors(private_cache)
    monkeypatch.setattr(MemoryFileSystem, "cat_file", None)
    assert content(remote) == mirror.read_bytes()


def test_a_file_of_which_no_version_is_told_has_no_mirror(
    remote: Place, private_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    telling(monkeypatch)
    for value in (1, 2):
        assert remote.write(bitmap(value))
        assert content(remote) == MemoryFileSystem.store["/shared/bits.arrow"].getvalue()
    assert mirrors(private_cache) == []


def test_a_file_of_unknown_size_is_read(remote: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    telling(monkeypatch, size=lambda found: None)
    assert remote.write(bitmap(1))
    assert content(remote) == MemoryFileSystem.store["/shared/bits.arrow"].getvalue()


def test_a_file_that_a_shorter_one_replaces_while_it_is_read_is_the_shorter_one(
    remote: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SystemClock, "wait", lambda self, seconds, stop: pytest.fail("asked again"))
    assert remote.write(bitmap(1, size=1_000))
    long = len(MemoryFileSystem.store["/shared/bits.arrow"].getvalue())
    real = MemoryFileSystem.cat_file

    def replaced(self: MemoryFileSystem, path: str, *args: Any, **options: Any) -> Any:
        monkeypatch.setattr(MemoryFileSystem, "cat_file", real)
        assert remote.write(bitmap(2, size=8))
        return self.cat_file(path, *args, **options)

    monkeypatch.setattr(MemoryFileSystem, "cat_file", replaced)
    found = content(remote)
    assert found == MemoryFileSystem.store["/shared/bits.arrow"].getvalue()
    assert len(found) < long


def test_what_has_its_name_is_on_the_disk_whole(
    fill: Callable[[], object], tmp_path: Path, private_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: dict[int, int] = {}
    real = os.fsync

    def fsync(file: int) -> None:
        real(file)
        synced[os.fstat(file).st_ino] = os.fstat(file).st_size

    monkeypatch.setattr(os, "fsync", fsync)
    fill()
    (written,) = [*tmp_path.glob("*.arrow"), *mirrors(private_cache)]
    assert synced == {written.stat().st_ino: written.stat().st_size}


@pytest.mark.parametrize("left", ["renamed meanwhile", "not to be removed"])
def test_what_another_writer_left_does_not_keep_a_file_from_being_written(
    fill: Callable[[], object], tmp_path: Path, private_cache: Path, left: str
) -> None:
    for folder in (tmp_path, private_cache / "mirror"):
        folder.mkdir(exist_ok=True)
        part = folder / ".dataflow-0.part"
        if left == "renamed meanwhile":
            part.symlink_to("gone")  # as such a file, it is listed and cannot be looked at
        else:
            part.mkdir()
            os.utime(part, (0, 0))
    fill()
    assert len([*tmp_path.glob("*.arrow"), *private_cache.glob("mirror/*.arrow")]) == 1


def test_what_a_killed_process_left_is_removed_a_day_later(tmp_path: Path) -> None:
    old, new = tmp_path / ".dataflow-0.part", tmp_path / ".dataflow-1.part"
    for part in (old, new):
        part.write_bytes(b"half")
    os.utime(old, (0, 0))
    assert Place.local(tmp_path / "bits.arrow").write(bitmap(1))
    assert sorted(path.name for path in tmp_path.iterdir()) == [new.name, "bits.arrow"]
