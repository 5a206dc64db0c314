"""Scanning files into an index: facts, order, schemas, hash."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from lines_format import Lines, listed, write_lines

from connectors.contract import FileInfo, Scan
from connectors.paths import Listing
from connectors.store import Store
from dataflow.errors import ConnectorError, DataError, InternalError
from dataflow.index import FileTable, build_index, content_hash


def test_fragments_come_in_file_order_without_those_of_zero_rows(folder: Path) -> None:
    index = build_index(Lines(rows=3), listed(folder), name="data")
    f = index.fragments
    assert f.file.tolist() == [0, 0, 0, 2, 2]
    assert f.offset.tolist() == [0, 3, 6, 0, 3]
    assert f.rows.tolist() == f.length.tolist() == [3, 3, 1, 3, 1]
    assert index.starts.tolist() == [0, 3, 6, 7, 10, 11]
    assert [a.dtype.name for a in (f.file, f.offset, index.starts)] == ["int32", "int64", "int64"]
    assert index.rows == 11
    assert index.fragment(3) == (2, 0, 3, 3)
    assert repr(index) == "Index('data', lines: 3 files, 5 fragments, 11 rows)"


def test_files_of_zero_rows_stay_in_the_file_table(folder: Path) -> None:
    index = build_index(Lines(), listed(folder))
    assert [index.files.name(i) for i in range(3)] == ["a.lines", "b.lines", "c.lines"]
    assert index.files.rows.tolist() == [7, 0, 4]
    assert [f.path for f in index.files] == [str(folder / f"{n}.lines") for n in "abc"]
    assert index.files[1:] == list(index.files)[1:]
    assert index.files[-1].size == (folder / "c.lines").stat().st_size


def test_the_arrays_of_an_index_cannot_be_written(folder: Path) -> None:
    index = build_index(Lines(), listed(folder))
    with pytest.raises(ValueError, match="read-only"):
        index.fragments.rows[0] = 1


def test_bytes_are_rows_times_the_decoded_bytes_of_a_row(folder: Path) -> None:
    index = build_index(Lines(), listed(folder))
    assert index.row_bytes == {"x": 8.0}
    assert index.fragments.bytes.tolist() == [24, 24, 8, 24, 8]
    assert index.decoded_bytes_per_row() == 8.0
    assert index.decoded_bytes_per_row([]) == 1.0


def test_a_source_without_rows_has_no_fragments(tmp_path: Path) -> None:
    write_lines(tmp_path / "a.lines", 0)
    index = build_index(Lines(), listed(tmp_path))
    assert (index.rows, len(index.fragments), index.starts.tolist()) == (0, 0, [0])
    assert index.schema == pa.schema([("x", pa.int64())])


def test_columns_of_all_files_are_unified_and_those_that_one_lacks_are_nullable(tmp_path: Path) -> None:
    write_lines(tmp_path / "a.lines", [{"x": 1}], {"x": "int32"})
    write_lines(tmp_path / "b.lines", [{"x": 1, "y": "s"}], {"x": "int64", "y": "string"})
    index = build_index(Lines(), listed(tmp_path))
    assert index.schema.names == ["x", "y"]
    assert index.schema.types == [pa.int64(), pa.string()]
    assert index.schema.field("y").nullable
    assert len(index.variants) == 2


def test_columns_that_do_not_fit_are_an_error_that_names_both_files(tmp_path: Path) -> None:
    write_lines(tmp_path / "a.lines", [{"x": 1}])
    write_lines(tmp_path / "b.lines", [{"x": "s"}], {"x": "string"})
    with pytest.raises(
        DataError, match=r"b\.lines: column 'x' is string here, but int64 in a\.lines"
    ) as caught:
        build_index(Lines(), listed(tmp_path))
    assert "one type" in caught.value.hint
    assert "format=Jsonl(schema=...)" in caught.value.hint


def test_meta_of_files_is_joined_and_a_clash_is_an_error(tmp_path: Path) -> None:
    write_lines(tmp_path / "a.lines", 1, {"x": "int64", "meta": {"k": 1}})
    write_lines(tmp_path / "b.lines", 1, {"x": "int64", "meta": {"k": 1, "l": 2}})
    assert build_index(Lines(), listed(tmp_path)).meta == {"k": 1, "l": 2}
    write_lines(tmp_path / "c.lines", 1, {"x": "int64", "meta": {"k": 3}})
    with pytest.raises(DataError, match=r"c\.lines: k is 3 here, but 1 in a\.lines"):
        build_index(Lines(), listed(tmp_path))


def test_many_files_give_the_same_index_as_one_after_the_other(tmp_path: Path) -> None:
    counts = [(7 * n) % 5 for n in range(300)]
    for n, rows in enumerate(counts):
        write_lines(tmp_path / f"{n:03}.lines", rows)
    index = build_index(Lines(rows=2), listed(tmp_path))
    assert index.files.rows.tolist() == counts
    assert index.fragments.file.tolist() == [n for n, c in enumerate(counts) for _ in range((c + 1) // 2)]


def test_a_file_of_another_format_is_an_error_that_names_it(folder: Path) -> None:
    (folder / "b.lines").write_text("garbage")
    with pytest.raises(DataError, match=r"b\.lines, byte 0") as caught:
        build_index(Lines(), listed(folder))
    assert caught.value.hint


def test_a_file_that_vanished_after_the_listing_is_an_error(folder: Path) -> None:
    listing = listed(folder)
    (folder / "c.lines").unlink()
    with pytest.raises(ConnectorError, match=r"c\.lines does not exist"):
        build_index(Lines(), listing)


def test_a_connector_that_breaks_the_contract_is_named(folder: Path) -> None:
    class Broken(Lines):
        def scan(self, store: Store, files: Sequence[FileInfo]) -> Scan:
            return replace(super().scan(store, files), rows=np.array([-1]))

    with pytest.raises(InternalError, match="connector 'lines'") as caught:
        build_index(Broken(), listed(folder))
    assert "author" in caught.value.hint


def test_a_listing_is_scanned_at_once(folder: Path) -> None:
    index = build_index(Lines(scans="listing"), listed(folder))
    assert index.fragments.file.tolist() == [0, 0, 0, 2, 2]
    assert index.rows == 11


def test_the_hash_is_of_names_sizes_and_rows_but_not_of_place_or_time(folder: Path, tmp_path: Path) -> None:
    index = build_index(Lines(), listed(folder))
    moved = folder.rename(tmp_path / "elsewhere")
    write_lines(moved / "a.lines", 7, mtime=2_000)
    assert build_index(Lines(), listed(moved)).hash == index.hash
    write_lines(moved / "a.lines", 8)
    assert build_index(Lines(), listed(moved)).hash != index.hash


@pytest.mark.parametrize("change", ["names", "size", "etag", "rows", "cut"])
def test_the_hash_sees(change: str, folder: Path) -> None:
    index = build_index(Lines(rows=3), listed(folder))
    files = index.files
    changed = {
        "names": replace(files, names=pa.array(["a.line", "sb.lines", "c.lines"], pa.large_string())),
        "size": replace(files, size=files.size + 1),
        "etag": replace(files, etag=pa.array(["", "e", ""], pa.large_string())),
        "rows": replace(files, rows=files.rows[::-1]),
    }.get(change, files)
    fragments = build_index(Lines(rows=4), listed(folder)).fragments if change == "cut" else index.fragments
    assert content_hash(files, index.fragments) == index.hash
    assert content_hash(changed, fragments) != index.hash


def test_the_stamp_sees_time_and_place_too(folder: Path, tmp_path: Path) -> None:
    index = build_index(Lines(), listed(folder))
    write_lines(folder / "a.lines", 7, mtime=2_000)
    later = build_index(Lines(), listed(folder))
    moved = build_index(Lines(), listed(folder.rename(tmp_path / "elsewhere")))
    assert len({index.stamp, later.stamp, moved.stamp}) == 3
    assert len({index.hash, later.hash, moved.hash}) == 1


def test_a_file_name_that_is_not_utf8_is_an_error() -> None:
    with pytest.raises(DataError, match="is not UTF-8") as caught:
        FileTable.of("/data", [FileInfo("/data/\udcff.lines", 1)])
    assert "rename" in caught.value.hint


@pytest.mark.parametrize(("root", "path"), [("", "bucket/a"), ("/", "/a"), ("/x/", "/x/a"), ("/x", "/x/a")])
def test_names_are_relative_to_any_root(root: str, path: str) -> None:
    files = FileTable.of(root, [FileInfo(path, 1)])
    assert files[0].path == path
    assert not files.name(0).startswith("/")


def test_a_table_in_memory_needs_no_file() -> None:
    listing = Listing(Store(), "", ())
    index = build_index(Lines(scans="listing"), listing)
    assert (index.rows, index.persistent) == (0, False)
