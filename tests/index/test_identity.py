"""A resume: the same source, one with new files, and ones that are no longer what was saved."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lines_format import Lines, counted, opened, write_lines

from connectors.contract import FileInfo
from dataflow.errors import DataError, PlanError
from dataflow.index import (
    FileTable,
    Index,
    appended,
    compare,
    content_hash,
    find_files,
    identity,
    keep_files,
    restrict,
)
from dataflow.index.changes import is_current, places_in, same_content, unchanged


def values(index: Index) -> list[int | None]:
    """Column x of every row, in row order."""
    found: list[int | None] = []
    for number in range(len(index.fragments)):
        fragment = index.fragment(number)
        chunks = index.connector.read(index.opened, fragment, index.schema, 0, fragment.rows, 100)
        found += [x for chunk in chunks for x in chunk.batch.column("x").to_pylist()]
    return found


def test_the_identity_of_a_source_is_small_json(folder: Path) -> None:
    index = opened(folder)
    saved = identity(index, 3).fields()
    assert saved == {"name": "data", "number": 3, "hash": index.hash, "rows": 11, "files": 3}
    assert len(json.dumps(saved)) < 300


def test_an_unchanged_source_goes_on_without_a_look_up(folder: Path, tmp_path: Path) -> None:
    saved = identity(opened(folder), 0)
    moved = opened(folder.rename(tmp_path / "moved"))

    def look_up(content: str) -> FileTable | None:
        raise AssertionError(content)

    now, later = compare(saved, moved, look_up)
    assert now is later is moved


def test_new_files_are_left_out_with_a_warning(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    old = opened(folder)
    saved = identity(old, 0)
    write_lines(folder / "aa.lines", [{"x": 100}])
    now, later = compare(saved, opened(folder), find_files)
    assert now is later
    assert now.hash == old.hash
    assert values(now) == values(old)
    assert "1 new file, which is left out: aa.lines" in caplog.text


def test_new_files_that_are_asked_for_come_later_and_behind_the_old_ones(folder: Path) -> None:
    old = opened(folder)
    write_lines(folder / "aa.lines", [{"x": 100}, {"x": 101}])
    now, later = compare(identity(old, 0), opened(folder), find_files, new_files=True)
    assert values(now) == values(old)
    assert values(later) == [*values(old), 100, 101]
    assert later.files.rows.tolist() == [7, 0, 4, 2]
    keep_files(later)
    again = compare(identity(later, 0), opened(folder), find_files)
    assert values(again.now) == values(later)
    assert again.now.hash == later.hash


def test_a_listing_is_scanned_again_for_the_old_files(folder: Path) -> None:
    connector = Lines(scans="listing")
    old = opened(folder, format=connector)
    write_lines(folder / "aa.lines", [{"x": 100}, {"x": 101}])
    now, later = compare(identity(old, 0), opened(folder, format=connector), find_files, new_files=True)
    assert values(now) == values(old)
    assert values(later) == [*values(old), 100, 101]


def test_the_old_order_of_files_holds_at_a_resume(folder: Path) -> None:
    urls = [str(folder / f"{n}.lines") for n in "ca"]
    old = opened(urls)  # type: ignore[arg-type]
    now, _ = compare(identity(old, 0), opened(urls[::-1]), find_files)  # type: ignore[arg-type]
    assert values(now) == values(old)


def test_files_that_are_gone_or_changed_are_named(folder: Path) -> None:
    saved = identity(opened(folder), 0)
    (folder / "a.lines").unlink()
    write_lines(folder / "c.lines", 5)
    with pytest.raises(DataError, match=r"1 file is gone: a\.lines; 1 file has changed: c\.lines") as caught:
        compare(saved, opened(folder), find_files)
    assert "put the files back" in caught.value.hint


def test_a_file_with_the_same_size_but_other_rows_has_changed(folder: Path) -> None:
    write_lines(folder / "c.lines", [{"x": 1}, {"x": 2}])
    saved = identity(opened(folder), 0)
    size = (folder / "c.lines").stat().st_size
    write_lines(folder / "c.lines", [{"x": 1_000_000_000}])
    assert (folder / "c.lines").stat().st_size == size
    with pytest.raises(DataError, match=r"changed: c\.lines"):
        compare(saved, opened(folder), find_files)


def test_a_saved_index_that_is_not_found_is_an_error_that_names_index(folder: Path) -> None:
    saved = identity(opened(folder), 0)
    write_lines(folder / "aa.lines", 1)
    with pytest.raises(PlanError, match="3 files with 11 rows then, 4 with 12 now") as caught:
        compare(saved, opened(folder), lambda content: None)
    assert "index=" in caught.value.hint


def test_other_fragments_of_the_same_files_are_an_error(folder: Path) -> None:
    saved = identity(opened(folder, format=Lines(rows=3)), 0)
    with pytest.raises(PlanError, match="cut into other fragments") as caught:
        compare(saved, opened(folder, format=Lines(rows=2)), find_files)
    assert "options" in caught.value.hint


def test_restricting_to_a_file_that_is_gone_is_an_error(folder: Path) -> None:
    old = opened(folder).files
    (folder / "b.lines").unlink()
    for change in (restrict, appended):
        with pytest.raises(DataError, match=r"b\.lines: the file is gone") as caught:
            change(opened(folder), old)
        assert caught.value.hint


def table(root: str = "/data", **files: tuple[int, float, str]) -> FileTable:
    return FileTable.of(root, [FileInfo(f"{root}/{n}", *facts) for n, facts in files.items()])


def test_files_are_found_by_name_wherever_the_root_is() -> None:
    old = table("/old", a=(1, 1.0, ""), b=(2, 1.0, ""))
    new = table("/new", b=(2, 9.0, ""), c=(1, 1.0, ""))
    assert places_in(old, new).tolist() == [1, -1]


@pytest.mark.parametrize(
    ("before", "after", "same", "current"),
    [
        ((1, 1.0, ""), (1, 1.0, ""), True, True),
        ((1, 1.0, ""), (2, 1.0, ""), False, False),
        ((1, 1.0, ""), (1, 2.0, ""), True, False),
        ((1, 1.0, "e"), (1, 2.0, "e"), True, True),
        ((1, 1.0, "e"), (1, 1.0, "f"), False, False),
        ((1, 1.0, "e"), (1, 1.0, ""), True, True),
        ((1, 1.0, "e"), (1, 2.0, ""), True, False),
    ],
)
def test_an_etag_counts_where_there_is_one_both_times_else_the_time(
    before: tuple[int, float, str], after: tuple[int, float, str], same: bool, current: bool
) -> None:
    old, new = table(a=before), table(a=after)
    places = places_in(old, new)
    assert same_content(new, old, places).tolist() == [same]
    assert unchanged(new, old, places).tolist() == [current]
    assert is_current(old, new) is current


def test_a_table_without_files_has_none_of_any() -> None:
    new = table(a=(1, 1.0, "e"))
    places = places_in(table(), new)
    assert unchanged(new, table(), places).tolist() == [False]


def test_the_time_of_a_copy_says_nothing() -> None:
    assert is_current(table("/a", x=(1, 1.0, "")), table("/b", x=(1, 2.0, "")))
    assert not is_current(table("/a", x=(1, 1.0, "")), table("/b", x=(2, 1.0, "")))


@given(st.data(), st.lists(st.integers(0, 7), min_size=1, max_size=12), st.integers(1, 4))
def test_any_subset_in_any_order_is_the_index_of_those_files(
    data: st.DataObject, counts: list[int], rows: int
) -> None:
    infos = [FileInfo(f"/m/{n}", count) for n, count in enumerate(counts)]
    order = data.draw(st.permutations(infos))
    picked = order[: data.draw(st.integers(1, len(infos)))]
    whole = counted(infos, rows)
    fresh = counted(picked, rows)
    part = restrict(whole, fresh.files)
    assert part.hash == fresh.hash == content_hash(fresh.files, fresh.fragments)
    for name in ("file", "offset", "length", "rows", "bytes", "starts"):
        np.testing.assert_array_equal(getattr(part.fragments, name), getattr(fresh.fragments, name))
    more = appended(whole, fresh.files)
    assert more.rows == whole.rows
    np.testing.assert_array_equal(more.starts[: len(part.starts)], part.starts)
    behind = {f.path for f in more.files[len(picked) :]}
    assert behind == {f.path for f in infos} - {f.path for f in picked}


@given(st.data(), st.lists(st.integers(0, 7), min_size=1, max_size=12), st.integers(1, 4))
def test_an_index_brought_up_to_date_is_one_built_afresh(
    data: st.DataObject, counts: list[int], rows: int
) -> None:
    old = counted([FileInfo(f"/m/{n}", count) for n, count in enumerate(counts)], rows)
    sizes = data.draw(st.dictionaries(st.integers(0, 15), st.integers(0, 7), min_size=1))
    infos = [FileInfo(f"/m/{n}", sizes.get(n, counts[n] if n < len(counts) else 1)) for n in sizes]
    updated, fresh = counted(infos, rows, old=old), counted(infos, rows)
    assert updated.hash == fresh.hash
    for name in ("file", "offset", "length", "rows", "bytes", "starts"):
        np.testing.assert_array_equal(getattr(updated.fragments, name), getattr(fresh.fragments, name))
