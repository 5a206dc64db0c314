"""The cached index: found again, brought up to date, and never a reason to fail."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fsspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from lines_format import Lines, listed, opened, scanned, write_lines

from connectors.folder import Folder
from connectors.store import Store
from dataflow.errors import ConnectorError, DataError
from dataflow.index import Index, build_index, codec, find_files, open_index
from dataflow.index.open import name_of


def assert_same(index: Index, other: Index) -> None:
    """Everything but the place of the two is equal."""
    assert index.hash == other.hash
    assert index.schema == other.schema
    assert (index.meta, index.row_bytes) == (other.meta, other.row_bytes)
    for variant, like in zip(index.variants, other.variants, strict=True):
        assert (variant.schema, variant.meta, variant.remarks) == (like.schema, like.meta, like.remarks)
    for name in ("file", "offset", "length", "rows", "bytes", "starts"):
        np.testing.assert_array_equal(getattr(index.fragments, name), getattr(other.fragments, name))
    assert index.files.names.equals(other.files.names)
    np.testing.assert_array_equal(index.files.rows, other.files.rows)
    np.testing.assert_array_equal(index.files.variant, other.files.variant)


def index_file(cache: Path) -> Path:
    (path,) = (cache / "index").glob("*.arrow")
    return path


def test_a_second_start_scans_nothing_and_has_the_same_index(folder: Path, marks: Path) -> None:
    first = opened(folder)
    assert scanned(marks) == ["a.lines", "b.lines", "c.lines"]
    second = opened(folder)
    assert scanned(marks) == []
    assert_same(second, first)
    assert_same(second, build_index(Lines(), listed(folder)))
    assert second.persistent


def test_a_loaded_index_is_a_view_of_the_mapped_file(folder: Path, private_cache: Path) -> None:
    opened(folder)
    for index in (opened(folder), opened(folder)):
        assert not index.fragments.rows.flags.owndata
        assert not index.starts.flags.writeable
    maps = Path("/proc/self/maps").read_text()
    assert str(index_file(private_cache)) in maps


def test_only_a_changed_or_new_file_is_scanned_again(folder: Path, marks: Path) -> None:
    opened(folder)
    scanned(marks)
    write_lines(folder / "b.lines", 5)
    write_lines(folder / "aa.lines", 2)
    index = opened(folder)
    assert scanned(marks) == ["aa.lines", "b.lines"]
    assert_same(index, build_index(Lines(), listed(folder)))
    assert index.rows == 7 + 2 + 5 + 4


def test_a_file_of_the_same_size_but_another_time_is_scanned_again(folder: Path, marks: Path) -> None:
    opened(folder)
    scanned(marks)
    write_lines(folder / "c.lines", [{"x": 9 - x} for x in range(4)], mtime=2_000)
    opened(folder)
    assert scanned(marks) == ["c.lines"]


def test_a_removed_file_leaves_no_trace_in_the_schema(folder: Path, marks: Path) -> None:
    write_lines(folder / "b.lines", [{"x": 1, "y": "s"}], {"x": "int64", "y": "string"})
    assert opened(folder).schema.names == ["x", "y"]
    (folder / "b.lines").unlink()
    scanned(marks)
    index = opened(folder)
    assert scanned(marks) == []
    assert index.schema.names == ["x"]
    assert_same(index, build_index(Lines(), listed(folder)))


def test_files_in_another_order_are_another_index_without_a_scan(folder: Path, marks: Path) -> None:
    urls = [str(folder / f"{n}.lines") for n in "ac"]
    opened(folder)
    forth, back = opened(urls), opened(urls[::-1])  # type: ignore[arg-type]
    assert [forth.rows, back.rows] == [11, 11]
    assert forth.files.names.to_pylist() == back.files.names.to_pylist()[::-1]
    assert forth.hash != back.hash


def test_other_options_of_the_format_have_an_index_of_their_own(folder: Path) -> None:
    assert len(opened(folder, format=Lines(rows=2)).fragments) == 6
    assert len(opened(folder, format=Lines(rows=4)).fragments) == 3
    assert len(opened(folder, format=Lines(rows=2)).fragments) == 6


def rewrite(path: Path, data: bytes) -> None:
    """Put another file in its place: the one there may be mapped, and then must not shrink."""
    path.unlink()
    path.write_bytes(data)


def truncated(path: Path) -> None:
    rewrite(path, path.read_bytes()[:-100])


def emptied(path: Path) -> None:
    rewrite(path, b"")


def garbage(path: Path) -> None:
    rewrite(path, b"no index" * 100)


def other_arrow_file(path: Path) -> None:
    path.unlink()
    with pa.ipc.new_file(str(path), pa.schema([("x", pa.int64())])) as writer:
        writer.write_batch(pa.record_batch({"x": [1, 2]}))


def zeros_inside(path: Path) -> None:
    data = bytearray(path.read_bytes())
    at = data.find(np.array([0, 3, 6, 7, 10, 11]).tobytes())
    assert at > 0
    data[at : at + 48] = bytes(48)
    rewrite(path, bytes(data))


def another_name_inside(path: Path) -> None:
    data = path.read_bytes()
    assert b"a.linesb.lines" in data
    rewrite(path, data.replace(b"a.linesb.lines", b"a.linesB.lines"))


@pytest.mark.parametrize(
    "damage", [truncated, emptied, garbage, other_arrow_file, zeros_inside, another_name_inside]
)
def test_a_damaged_cache_file_is_built_again(
    damage: Callable[[Path], None], folder: Path, private_cache: Path, marks: Path
) -> None:
    first = opened(folder)
    scanned(marks)
    damage(index_file(private_cache))
    assert_same(opened(folder), first)
    assert len(scanned(marks)) == 3
    assert_same(opened(folder), first)
    assert scanned(marks) == []


def test_every_flipped_byte_gives_the_same_index_or_a_new_scan(folder: Path, private_cache: Path) -> None:
    first = opened(folder)
    path = index_file(private_cache)
    good = path.read_bytes()
    for at in range(0, len(good), 41):
        rewrite(path, good[:at] + bytes([good[at] ^ 0xFF]) + good[at + 1 :])
        assert_same(opened(folder), first)


def test_an_index_of_another_version_is_built_again(
    folder: Path, marks: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened(folder)
    scanned(marks)
    monkeypatch.setattr(codec, "VERSION", codec.VERSION + 1)
    opened(folder)
    assert len(scanned(marks)) == 3


def test_a_cache_folder_that_cannot_be_used_costs_a_scan_and_a_warning(
    folder: Path,
    tmp_path: Path,
    marks: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("DATAFLOW_CACHE", str(tmp_path / "file"))
    assert opened(folder).rows == opened(folder).rows == 11
    assert len(scanned(marks)) == 6
    assert "cannot be written" in caplog.text
    assert find_files("0" * 32) is None


def test_an_unreadable_index_is_built_again(folder: Path, private_cache: Path, marks: Path) -> None:
    opened(folder)
    scanned(marks)
    path = index_file(private_cache)
    path.unlink()
    path.mkdir()
    assert opened(folder).rows == 11
    assert len(scanned(marks)) == 3


def test_index_names_a_file_or_a_folder(folder: Path, tmp_path: Path, private_cache: Path) -> None:
    opened(folder, index=tmp_path / "one.arrow")
    opened(folder, index=str(tmp_path / "many"))
    assert (tmp_path / "one.arrow").is_file()
    assert len(list((tmp_path / "many").glob("*.arrow"))) == 1
    assert not list((private_cache / "index").glob("*.arrow"))


def test_an_index_is_found_from_another_root_though_copies_have_other_times(
    folder: Path, tmp_path: Path, marks: Path
) -> None:
    at = tmp_path / "fleet" / "data.arrow"
    first = opened(folder, index=at)
    scanned(marks)
    for name, rows in (("a", 7), ("b", 0), ("c", 4)):
        write_lines(tmp_path / "copy" / f"{name}.lines", rows, mtime=9_000)
    second = opened(tmp_path / "copy", index=at)
    assert scanned(marks) == []
    assert_same(second, first)
    assert second.files[0].path == str(tmp_path / "copy" / "a.lines")
    assert second.stamp != first.stamp


def test_every_type_of_a_real_file_is_kept(tmp_path: Path) -> None:
    tensors: Any = pa.FixedShapeTensorArray.from_numpy_ndarray(np.zeros((4, 2, 3), np.float32))
    table = pa.table(
        {
            "image": tensors,
            "word": pa.array(["a", "b", "a", None]).dictionary_encode(),
            "nested": [[{"a": 1}], [], None, [{"a": 2}]],
            "when": pa.array([1, 2, 3, 4], pa.timestamp("us", "UTC")),
        }
    )
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=3)
    first = open_index(tmp_path / "a.parquet")
    second = open_index(tmp_path / "a.parquet", progress=False)
    assert_same(second, first)
    assert second.fragments.rows.tolist() == [3, 1]
    nested = table.schema.field("nested").type
    assert second.schema.types == [tensors.type, pa.string(), nested, pa.timestamp("us", "UTC")]
    assert second.row_bytes["image"] == 24.0


@pytest.fixture
def remote() -> fsspec.AbstractFileSystem:
    fs = fsspec.filesystem("memory")
    fs.store.clear()
    fs.pseudo_dirs[:] = [""]
    return fs


def test_an_index_in_a_remote_store_is_shared_and_mapped_from_a_mirror(
    folder: Path,
    remote: fsspec.AbstractFileSystem,
    marks: Path,
    private_cache: Path,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    first = opened(folder, index="memory://shared/data.arrow")
    scanned(marks)
    monkeypatch.setenv("DATAFLOW_CACHE", str(tmp_path / "another-node"))
    for _ in range(2):
        index = opened(folder, index="memory://shared/data.arrow")
        assert_same(index, first)
    assert scanned(marks) == []
    (mirror,) = (tmp_path / "another-node" / "mirror").glob("*.arrow")
    assert str(mirror) in Path("/proc/self/maps").read_text()
    write_lines(folder / "a.lines", 1)
    assert opened(folder, index="memory://shared/data.arrow").rows == 5
    (newer,) = (tmp_path / "another-node" / "mirror").glob("*.arrow")
    assert newer != mirror


def test_files_in_a_remote_store_are_indexed(remote: fsspec.AbstractFileSystem, folder: Path) -> None:
    for path in folder.iterdir():
        remote.pipe_file(f"/bucket/data/{path.name}", path.read_bytes())
    index = opened("memory://bucket/data/*.lines")
    assert index.rows == 11
    assert index.name == "data"
    assert_same(opened("memory://bucket/data/*.lines"), index)
    assert isinstance(index.store, Store)


def test_a_read_only_index_that_is_stale_is_replaced_by_one_in_the_users_cache(
    folder: Path,
    remote: fsspec.AbstractFileSystem,
    marks: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    opened(folder, index="memory://shared/data.arrow")
    write_lines(folder / "a.lines", 8)

    def refuse(*args: object, **kwargs: object) -> None:
        raise PermissionError("read-only")

    monkeypatch.setattr(type(remote), "pipe_file", refuse)
    scanned(marks)
    assert opened(folder, index="memory://shared/data.arrow").rows == 12
    assert scanned(marks) == ["a.lines"]
    assert "cannot be written: read-only" in caplog.text
    assert opened(folder, index="memory://shared/data.arrow").rows == 12
    assert scanned(marks) == []


def test_an_index_of_the_users_cache_is_published_where_index_says(
    folder: Path, tmp_path: Path, marks: Path
) -> None:
    first = opened(folder)
    scanned(marks)
    assert_same(opened(folder, index=tmp_path / "shared.arrow"), first)
    assert scanned(marks) == []
    assert (tmp_path / "shared.arrow").exists()


def test_every_version_is_found_by_its_hash(folder: Path, tmp_path: Path) -> None:
    first = opened(folder)
    write_lines(folder / "a.lines", 1)
    second = opened(folder, index=tmp_path / "shared.arrow")
    for index, place in ((first, None), (second, tmp_path / "shared.arrow")):
        files = find_files(index.hash, index=place)
        assert files is not None
        assert files.rows.tolist() == index.files.rows.tolist()
        assert files.names.equals(index.files.names)
    assert find_files(second.hash) is None


def test_no_temporary_file_stays_and_what_a_killed_process_left_is_removed(
    folder: Path, private_cache: Path
) -> None:
    (private_cache / "index").mkdir()
    names = [".dataflow-old.part", ".dataflow-new.part", ".theirs.part"]
    for name in names:
        (private_cache / "index" / name).touch()
    for name in (names[0], names[2]):
        os.utime(private_cache / "index" / name, (1, 1))
    opened(folder)
    assert sorted(p.name for p in private_cache.rglob("*.part")) == names[1:]


def test_a_listing_under_another_root_is_scanned_again(folder: Path, tmp_path: Path, marks: Path) -> None:
    connector = Lines(scans="listing")
    opened(folder, format=connector, index=tmp_path / "shared.arrow")
    scanned(marks)
    opened(folder, format=connector, index=tmp_path / "shared.arrow")
    assert scanned(marks) == []
    opened(folder.rename(tmp_path / "moved"), format=connector, index=tmp_path / "shared.arrow")
    assert len(scanned(marks)) == 3


def test_a_scan_that_fails_leaves_no_index_and_the_next_start_is_whole(
    folder: Path, private_cache: Path
) -> None:
    good = (folder / "b.lines").read_text()
    (folder / "b.lines").write_text("garbage")
    with pytest.raises(DataError):
        opened(folder)
    assert not list(private_cache.rglob("*.arrow"))
    (folder / "b.lines").write_text(good)
    assert opened(folder).rows == 11


def test_nothing_found_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConnectorError):
        opened(tmp_path / "none" / "*.lines")


def test_credentials_do_not_decide_which_cached_index_is_found(folder: Path, private_cache: Path) -> None:
    opened(folder, storage_options={"aws_secret_access_key": "1", "client_kwargs": {"token": "1"}})
    opened(folder, storage_options={"aws_secret_access_key": "2", "client_kwargs": {"token": "2"}})
    index_file(private_cache)
    opened(folder, storage_options={"endpoint_url": "elsewhere"})
    assert len(list((private_cache / "index").glob("*.arrow"))) == 2


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("s3://bucket/web/*.parquet", "web"),
        ("shards/own-{000..099}.tar", "own"),
        ("/data/train.jsonl.gz", "train"),
        ("/data/train/", "train"),
        ("s3://bucket/**", "bucket"),
        (["x/a.parquet", "x/b.parquet"], "a"),
        (Path("x/train.tar"), "train"),
        ("*.parquet", "source"),
    ],
)
def test_a_source_is_named_after_its_url(url: str | list[str] | Path, name: str) -> None:
    assert name_of(url) == name


def images(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(name.encode())


def test_files_that_the_connector_does_not_take_are_not_in_the_index(tmp_path: Path) -> None:
    images(tmp_path, "a/1.jpg", "a/1.txt", "a/2.jpg", "a/0.txt", "b/1.jpg")
    index = open_index(tmp_path, format=Folder())
    assert index.files.names.to_pylist() == ["a/1.jpg", "a/2.jpg", "b/1.jpg"]
    assert index.rows == len(index.files)
    images(tmp_path, "a/3.txt")
    assert_same(open_index(tmp_path, format=Folder()), index)


def test_a_listing_of_which_nothing_is_taken_says_which_endings_it_looked_for(tmp_path: Path) -> None:
    images(tmp_path, "a.txt", "b.txt")
    with pytest.raises(DataError, match=r"none of the 2 files ends in .*\.jpg") as caught:
        open_index(tmp_path, format=Folder())
    assert "suffixes" in caught.value.hint
