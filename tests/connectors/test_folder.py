from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import fsspec
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import connectors.folder
from connectors.contract import Chunk, Connector, FileInfo, Fragment, Opened, Scan
from connectors.folder import Folder
from connectors.retry import Retry
from connectors.store import Store
from dataflow.errors import ConnectorError, DataError, PlanError

STORE = Store()


def save(folder: Path, names: Sequence[str]) -> list[FileInfo]:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(name.encode())
    return [FileInfo(str(folder / name), len(name.encode())) for name in names]


def fragments(scan: Scan) -> list[Fragment]:
    columns = (scan.file, scan.offset, scan.length, scan.rows)
    return [Fragment(*row) for row in zip(*(c.tolist() for c in columns), strict=True)]


def chunks(
    folder: Folder, files: list[FileInfo], columns: Sequence[str] | None = None, store: Store = STORE
) -> list[Chunk]:
    scan = folder.scan(store, files)
    schema = scan.schema if columns is None else pa.schema([scan.schema.field(name) for name in columns])
    opened = Opened(store, files, scan.meta)
    return [c for f in fragments(scan) for c in folder.read(opened, f, schema, 0, f.rows, 1000)]


def rows(
    folder: Folder, files: list[FileInfo], columns: Sequence[str] | None = None, store: Store = STORE
) -> list[dict[str, object]]:
    found = chunks(folder, files, columns, store)
    assert not any(chunk.bad for chunk in found)
    return [row for chunk in found for row in chunk.batch.to_pylist()]


def test_folder_is_a_connector() -> None:
    assert isinstance(Folder(), Connector)


def test_class_folders_give_labels(tmp_path: Path) -> None:
    files = save(tmp_path, ["cat/1.jpg", "cat/2.PNG", "ant/1.jpg"])
    scan = Folder().scan(STORE, files)
    assert scan.meta["classes"] == ["ant", "cat"]
    types: dict[str, pa.DataType] = {"path": pa.string(), "bytes": pa.large_binary(), "label": pa.int64()}
    assert scan.schema == pa.schema(types)
    assert rows(Folder(), files) == [
        {"path": "cat/1.jpg", "bytes": b"cat/1.jpg", "label": 1},
        {"path": "cat/2.PNG", "bytes": b"cat/2.PNG", "label": 1},
        {"path": "ant/1.jpg", "bytes": b"ant/1.jpg", "label": 0},
    ]


@pytest.mark.parametrize(
    "names",
    [["1.jpg", "2.jpg"], ["a/1.jpg", "b/c/2.jpg"], ["a/1.jpg", "2.jpg"], ["a/b/1.jpg", "a/c/d/2.jpg"]],
)
def test_without_class_folders_there_are_no_labels(tmp_path: Path, names: list[str]) -> None:
    files = save(tmp_path, names)
    assert [set(row) for row in rows(Folder(), files)] == [{"path", "bytes"}] * 2


def test_labels_can_be_demanded_or_declined(tmp_path: Path) -> None:
    files = save(tmp_path, ["a/1.jpg", "b/c/2.jpg"])
    assert [row["label"] for row in rows(Folder(label=True), files)] == [0, 1]
    assert "label" not in rows(Folder(label=False), save(tmp_path, ["a/1.jpg", "b/2.jpg"]))[0]
    with pytest.raises(DataError, match=r"3\.jpg: lies in no class folder") as caught:
        Folder(label=True).scan(STORE, [*files, *save(tmp_path, ["3.jpg"])])
    assert "label=False" in caught.value.hint


def test_a_root_makes_a_single_folder_a_class(tmp_path: Path) -> None:
    files = save(tmp_path, ["cat/1.jpg", "cat/2.jpg"])
    assert [row["path"] for row in rows(Folder(), files)] == ["1.jpg", "2.jpg"]
    for root in (str(tmp_path), f"{tmp_path}/"):
        assert rows(Folder(root=root), files, ["path", "label"]) == [
            {"path": "cat/1.jpg", "label": 0},
            {"path": "cat/2.jpg", "label": 0},
        ]
    with pytest.raises(DataError, match="does not lie below /elsewhere/") as caught:
        Folder(root="/elsewhere").scan(STORE, files)
    assert "root" in caught.value.hint


def test_given_classes_keep_their_labels_where_one_is_lacking(tmp_path: Path) -> None:
    files = save(tmp_path, ["dog/1.jpg", "cat/1.jpg"])
    folder = Folder(classes=("dog", "ant", "cat"))
    assert [row["label"] for row in rows(folder, files)] == [0, 2]
    assert folder.scan(STORE, files).meta["classes"] == ["dog", "ant", "cat"]
    with pytest.raises(DataError, match="'dogs' is none of the 3 classes") as caught:
        folder.scan(STORE, save(tmp_path, ["cat/1.jpg", "dogs/1.jpg"]))
    assert "did you mean 'dog'" in caught.value.hint


def test_folders_that_share_the_start_of_their_name_are_told_apart(tmp_path: Path) -> None:
    files = save(tmp_path, ["cat/1.jpg", "cats/1.jpg"])
    assert [row["path"] for row in rows(Folder(), files)] == ["cat/1.jpg", "cats/1.jpg"]


def test_odd_names_are_taken_literally(tmp_path: Path) -> None:
    names = ["#[1]@%20/a b.jpg", ".dot/*?.jpg", "ü/{a,b}.jpg"]
    assert [row["bytes"] for row in rows(Folder(), save(tmp_path, names))] == [n.encode() for n in names]


def test_files_of_other_endings_are_left_out(tmp_path: Path) -> None:
    files = save(tmp_path, ["a/x.txt", "a/1.jpg", "a/y.txt", "b/2.jpg", "b/z.txt"])
    assert [row["path"] for row in rows(Folder(), files)] == ["a/1.jpg", "b/2.jpg"]
    assert len(rows(Folder(suffixes=()), files)) == 5
    assert [row["path"] for row in rows(Folder(suffixes=(".txt",)), files)] == [
        "a/x.txt",
        "a/y.txt",
        "b/z.txt",
    ]


def test_a_listing_without_a_file_to_take_is_an_error_an_empty_one_is_not(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"none of the 1 file ends in \.jpeg") as caught:
        Folder().scan(STORE, save(tmp_path, ["a.txt"]))
    assert "suffixes" in caught.value.hint
    assert len(Folder().scan(STORE, []).rows) == 0


def test_an_empty_file_is_a_row_of_no_bytes(tmp_path: Path) -> None:
    files = save(tmp_path, ["1.jpg", "2.jpg"])
    Path(files[0].path).write_bytes(b"")
    assert [row["bytes"] for row in rows(Folder(), files)] == [b"", b"2.jpg"]


def test_a_file_that_is_gone_is_a_bad_row(tmp_path: Path) -> None:
    files = save(tmp_path, ["a/1.jpg", "b/2.jpg", "b/3.jpg"])
    Path(files[1].path).unlink()
    (chunk,) = chunks(Folder(), files)
    assert chunk.batch.to_pylist() == [
        {"path": "a/1.jpg", "bytes": b"a/1.jpg", "label": 0},
        {"path": None, "bytes": None, "label": None},
        {"path": "b/3.jpg", "bytes": b"b/3.jpg", "label": 1},
    ]
    (bad,) = chunk.bad
    assert bad.row == 1
    assert isinstance(bad.error, ConnectorError)
    assert files[1].path in str(bad.error)
    assert bad.error.hint


@pytest.mark.parametrize("content", [b"", b"a", b"abcdef.jpg and more"])
def test_a_file_that_has_another_size_than_was_listed_is_read_as_it_is(
    tmp_path: Path, content: bytes
) -> None:
    files = save(tmp_path, ["a.jpg", "bc.jpg", "def.jpg"])
    (tmp_path / "bc.jpg").write_bytes(content)
    assert [row["bytes"] for row in rows(Folder(), files)] == [b"a.jpg", content, b"def.jpg"]


def test_no_file_is_opened_where_its_bytes_are_not_asked_for(tmp_path: Path) -> None:
    files = save(tmp_path, ["a/1.jpg", "b/2.jpg"])
    for info in files:
        Path(info.path).unlink()
    assert rows(Folder(), files, ["label", "path"]) == [
        {"label": 0, "path": "a/1.jpg"},
        {"label": 1, "path": "b/2.jpg"},
    ]
    assert [chunk.batch.num_rows for chunk in chunks(Folder(), files, [])] == [2]


class Remote(type(fsspec.filesystem("memory"))):  # type: ignore[misc]
    """A store whose connection fails for names with "lost" in them."""

    def cat_file(
        self, path: str, start: int | None = None, end: int | None = None, **options: object
    ) -> bytes:
        if "lost" in path:
            raise ConnectionResetError("connection lost")
        content: bytes = super().cat_file(path, start, end, **options)
        return content


def test_remote_files_are_read_and_one_that_is_gone_is_a_bad_row() -> None:
    store = Store(Remote())
    store.fs.pipe({"/folder/a/[1].jpg": b"one", "/folder/b/2.jpg": b""})
    files = [FileInfo(f"/folder/{name}.jpg", 3) for name in ("a/[1]", "b/2")]
    assert [row["bytes"] for row in rows(Folder(), files, store=store)] == [b"one", b""]
    (chunk,) = chunks(Folder(), [*files, FileInfo("/folder/b/gone.jpg", 3)], store=store)
    assert chunk.batch.column("bytes").to_pylist() == [b"one", b"", None]
    assert [(bad.row, "/folder/b/gone.jpg" in str(bad.error)) for bad in chunk.bad] == [(2, True)]


def test_a_store_that_fails_costs_the_run_not_a_row(tmp_path: Path) -> None:
    store = Store(Remote(), Retry(first_wait_s=0))
    with pytest.raises(
        ConnectorError, match=r"lost\.jpg cannot be read: 10 tries .*connection lost"
    ) as caught:
        chunks(Folder(), [FileInfo("/folder/lost.jpg", 3)], store=store)
    assert caught.value.hint
    with pytest.raises(ConnectorError, match="cannot be opened"):
        chunks(Folder(), [FileInfo(str(tmp_path / ("n" * 300 + ".jpg")), 3)])


@given(
    kinds=st.lists(st.tuples(st.booleans(), st.integers(0, 40)), min_size=1, max_size=30),
    most=st.integers(1, 6),
    limit=st.integers(1, 100),
    data=st.data(),
)
def test_any_range_of_any_fragment_holds_the_files_listed(
    kinds: list[tuple[bool, int]], most: int, limit: int, data: st.DataObject
) -> None:
    files = [FileInfo(f"/d/{k}.{'jpg' if taken else 'txt'}", size) for k, (taken, size) in enumerate(kinds)]
    files.append(FileInfo("/d/last.jpg", 1))
    names = [info.path[3:] for info in files if info.path.endswith("jpg")]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(connectors.folder, "_FRAGMENT_FILES", most)
        patch.setattr(connectors.folder, "_FRAGMENT_BYTES", limit)
        scan = Folder(root="/d").scan(STORE, files)
    row = 0
    wanted = pa.schema([scan.schema.field("path")])
    for fragment in fragments(scan):
        taken = [f for f in files[fragment.file : fragment.file + fragment.length] if f.path.endswith("jpg")]
        assert len(taken) == fragment.rows <= most
        assert fragment.rows == 1 or sum(f.size for f in taken) <= limit
        start = data.draw(st.integers(0, fragment.rows))
        stop = data.draw(st.integers(start, fragment.rows))
        found = list(Folder().read(Opened(STORE, files, scan.meta), fragment, wanted, start, stop, 2))
        assert all(0 < chunk.batch.num_rows <= 2 for chunk in found)
        read = [name for chunk in found for name in chunk.batch.column("path").to_pylist()]
        assert read == names[row + start : row + stop]
        row += fragment.rows
    assert row == len(names)


def test_a_listing_that_was_changed_behind_its_index_is_an_error(tmp_path: Path) -> None:
    files = save(tmp_path, ["a/1.jpg", "b/2.jpg"])
    scan = Folder().scan(STORE, files)
    (fragment,) = fragments(scan)
    others = save(tmp_path, ["a/1.jpg", "c/2.jpg"])
    with pytest.raises(DataError, match="'c' is no class") as caught:
        list(Folder().read(Opened(STORE, others, scan.meta), fragment, scan.schema, 0, 2, 10))
    assert "index again" in caught.value.hint


@pytest.mark.parametrize(
    ("options", "hint"),
    [
        ({"label": "yes"}, "True or False"),
        ({"suffixes": ".jpg"}, "give a tuple"),
        ({"suffixes": (".JPG",)}, "give a tuple"),
        ({"classes": ("a", "a")}, "once"),
    ],
)
def test_a_wrong_option_fails_at_once(options: dict[str, object], hint: str) -> None:
    with pytest.raises(PlanError) as caught:
        Folder(**options)  # type: ignore[arg-type]
    assert hint in caught.value.hint
