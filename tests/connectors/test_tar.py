from __future__ import annotations

import gzip
import io
import pickle
import tarfile
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import connectors.tar
from connectors.contract import BadRow, Chunk, Connector, FileInfo, Fragment, Opened, Scan
from connectors.store import Store
from connectors.tar import Tar
from dataflow.errors import DataError, PlanError

STORE = Store()
Files = Sequence[tuple[str, bytes]]


def pack(files: Files) -> bytes:
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode="w") as tar:
        for name, content in files:
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return target.getvalue()


def save(folder: Path, files: Files, name: str = "a.tar") -> FileInfo:
    data = pack(files)
    if name.endswith(".zst"):
        with pa.CompressedOutputStream(str(folder / name), "zstd") as out:
            out.write(data)
    else:
        (folder / name).write_bytes(data if name.endswith(".tar") else gzip.compress(data))
    return listed(folder / name)


def listed(path: Path) -> FileInfo:
    return FileInfo(str(path), path.stat().st_size)


def fragments(scan: Scan) -> list[Fragment]:
    columns = (scan.file, scan.offset, scan.length, scan.rows)
    return [Fragment(*row) for row in zip(*(c.tolist() for c in columns), strict=True)]


def chunks(
    tar: Tar, info: FileInfo, columns: Sequence[str] | None = None, max_rows: int = 1000
) -> list[Chunk]:
    scan = tar.scan(STORE, [info])
    schema = scan.schema if columns is None else pa.schema([scan.schema.field(name) for name in columns])
    opened = Opened(STORE, [info], scan.meta)
    return [chunk for f in fragments(scan) for chunk in tar.read(opened, f, schema, 0, f.rows, max_rows)]


def rows(tar: Tar, info: FileInfo, columns: Sequence[str] | None = None) -> list[dict[str, object]]:
    found = chunks(tar, info, columns)
    assert not any(chunk.bad for chunk in found)
    return [row for chunk in found for row in chunk.batch.to_pylist()]


def bad_rows(tar: Tar, info: FileInfo, columns: Sequence[str] | None = None) -> list[BadRow]:
    return [bad for chunk in chunks(tar, info, columns) for bad in chunk.bad]


def test_tar_is_a_connector() -> None:
    assert isinstance(Tar(), Connector)


def test_neighbours_of_one_key_are_a_sample_with_a_column_for_each_extension(tmp_path: Path) -> None:
    info = save(
        tmp_path,
        [
            *[("a.jpg", b"\xff\xd8"), ("a.cls", b" 7\n"), ("a.json", b'{"x": 1}')],
            *[("b.jpg", b""), ("b.cls", b"-3"), ("b.json", "ü".encode())],
        ],
    )
    types: dict[str, pa.DataType] = {
        "__key__": pa.string(),
        "cls": pa.int64(),
        "jpg": pa.large_binary(),
        "json": pa.string(),
    }
    assert Tar().scan(STORE, [info]).schema == pa.schema(types)
    assert rows(Tar(), info) == [
        {"__key__": "a", "cls": 7, "jpg": b"\xff\xd8", "json": '{"x": 1}'},
        {"__key__": "b", "cls": -3, "jpg": b"", "json": "ü"},
    ]


def test_the_key_ends_at_the_first_dot_of_the_base_name(tmp_path: Path) -> None:
    info = save(tmp_path, [("./v1.2/x.y/a.seg.png", b"1"), ("./v1.2/x.y/a.PNG", b"2")])
    assert rows(Tar(), info) == [{"__key__": "./v1.2/x.y/a", "png": b"2", "seg.png": b"1"}]


def test_the_key_can_end_at_the_last_dot(tmp_path: Path) -> None:
    info = save(tmp_path, [("d.x/a.0.5.png", b"1"), ("d.x/a.0.5.cls", b"2")])
    assert rows(Tar(key_dot="last"), info) == [{"__key__": "d.x/a.0.5", "cls": 2, "png": b"1"}]


def test_the_last_part_of_an_extension_gives_the_type(tmp_path: Path) -> None:
    info = save(tmp_path, [("a.left.cls", b"1"), ("a.note.txt", b"hi"), ("a.x.npy", b"\0")])
    assert rows(Tar(), info) == [{"__key__": "a", "left.cls": 1, "note.txt": "hi", "x.npy": b"\0"}]


def test_extensions_can_be_left_as_bytes(tmp_path: Path) -> None:
    info = save(tmp_path, [("a.id", b"n01"), ("a.txt", b"\xff")])
    assert rows(Tar(text=(), integers=()), info) == [{"__key__": "a", "id": b"n01", "txt": b"\xff"}]


def test_files_without_key_or_extension_are_passed_over(tmp_path: Path) -> None:
    info = save(
        tmp_path, [("README", b"x"), ("d/.DS_Store", b"x"), ("._a.jpg", b"x"), ("a.", b"x"), ("a.jpg", b"1")]
    )
    assert rows(Tar(), info) == [{"__key__": "a", "jpg": b"1"}]


def test_pickles_stay_bytes(tmp_path: Path) -> None:
    bomb = pickle.dumps(pytest.fail)
    info = save(tmp_path, [("a.pyd", bomb), ("a.pickle", bomb), ("a.pth", bomb)])
    assert rows(Tar(), info) == [{"__key__": "a", "pyd": bomb, "pickle": bomb, "pth": bomb}]


@pytest.mark.parametrize("name", ["/etc/a.jpg", "../a.jpg", "x/../../a.jpg"])
def test_a_member_that_leaves_its_folder_is_an_error(tmp_path: Path, name: str) -> None:
    info = save(tmp_path, [("ok.jpg", b""), (name, b"")])
    with pytest.raises(DataError, match=f"a.tar, byte 512: member '{name}' lies outside") as caught:
        Tar().scan(STORE, [info])
    assert "relative names" in caught.value.hint


def test_dots_in_names_are_not_taken_for_a_way_out(tmp_path: Path) -> None:
    assert rows(Tar(), save(tmp_path, [("x..y/a..jpg", b"1")])) == [{"__key__": "x..y/a", ".jpg": b"1"}]


@pytest.mark.parametrize("name", ["a.tar", "a.tar.gz"])
def test_members_of_a_sample_that_are_not_neighbours_are_an_error(tmp_path: Path, name: str) -> None:
    info = save(tmp_path, [("a.jpg", b""), ("b.jpg", b""), ("c.jpg", b""), ("b.cls", b"1")], name)
    with pytest.raises(DataError, match=rf"{name}, byte 1536: member 'b.cls' .* 'b'") as caught:
        Tar().scan(STORE, [info])
    assert "neighbours" in caught.value.hint


def test_keys_that_share_a_hash_are_not_taken_for_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connectors.tar, "hash", lambda key: 1, raising=False)
    assert len(rows(Tar(), save(tmp_path, [("a.jpg", b""), ("b.jpg", b""), ("c.jpg", b"")]))) == 3


def test_a_column_twice_in_a_sample_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"'a.JPG' is the second 'jpg'") as caught:
        Tar().scan(STORE, [save(tmp_path, [("a.jpg", b""), ("a.JPG", b"")])])
    assert "extension" in caught.value.hint


def test_a_column_named_like_the_key_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="__key__") as caught:
        Tar().scan(STORE, [save(tmp_path, [("a.__key__", b"")])])
    assert caught.value.hint


def test_an_empty_archive_has_no_rows(tmp_path: Path) -> None:
    for name in ("a.tar", "a.tar.gz"):
        scan = Tar().scan(STORE, [save(tmp_path, [], name)])
        assert len(scan.rows) == 0
        assert scan.schema == pa.schema({"__key__": pa.string()})


def test_a_file_of_no_bytes_is_truncated_unless_that_is_kept(tmp_path: Path) -> None:
    (tmp_path / "a.tar").write_bytes(b"")
    with pytest.raises(DataError, match="no end mark") as caught:
        Tar().scan(STORE, [listed(tmp_path / "a.tar")])
    assert "keep" in caught.value.hint
    assert len(Tar(truncated="keep").scan(STORE, [listed(tmp_path / "a.tar")]).rows) == 0


@pytest.mark.parametrize(
    ("cut", "kept"),
    [
        (5 * 1024 + 600, ["0", "1"]),  # inside the payload of 2.b: sample 2 is not whole
        (5 * 1024 + 100, ["0", "1"]),  # inside its header
        (4 * 1024 + 600, ["0"]),  # inside 2.a: whether sample 1 was whole cannot be known
        (6 * 1024, ["0", "1", "2"]),  # between two members
    ],
)
def test_a_truncated_archive_is_an_error_or_its_whole_samples_are_kept(
    tmp_path: Path, cut: int, kept: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    save(tmp_path, [(f"{k}.{ext}", b"x" * 512) for k in range(4) for ext in "ab"])
    path = tmp_path / "a.tar"
    path.write_bytes(path.read_bytes()[:cut])
    with pytest.raises(DataError, match=r"a\.tar") as caught:
        Tar().scan(STORE, [listed(path)])
    assert 'truncated="keep"' in caught.value.hint
    assert [row["__key__"] for row in rows(Tar(truncated="keep"), listed(path))] == kept
    samples = "sample before that is" if len(kept) == 1 else "samples before that are"
    assert f"{len(kept)} whole {samples} kept" in caplog.text


def test_a_truncated_compressed_archive_keeps_whole_samples(tmp_path: Path) -> None:
    noise = [bytes((k * 7 + i * i) % 251 for i in range(3000)) for k in range(200)]
    save(tmp_path, [(f"{k:03}.bin", content) for k, content in enumerate(noise)], "a.tgz")
    path = tmp_path / "a.tgz"
    path.write_bytes(path.read_bytes()[: path.stat().st_size * 2 // 3])
    with pytest.raises(DataError, match="stream ends early") as caught:
        Tar().scan(STORE, [listed(path)])
    assert 'truncated="keep"' in caught.value.hint
    kept = rows(Tar(truncated="keep"), listed(path))
    assert 0 < len(kept) < 200
    assert [row["bin"] for row in kept] == noise[: len(kept)]


def test_a_sample_without_a_column_is_a_bad_row(tmp_path: Path) -> None:
    info = save(
        tmp_path, [("a.jpg", b"1"), ("a.cls", b"1"), ("b.jpg", b"2"), ("c.jpg", b"3"), ("c.cls", b"3")]
    )
    (chunk,) = chunks(Tar(), info)
    assert chunk.batch.to_pylist() == [
        {"__key__": "a", "cls": 1, "jpg": b"1"},
        {"__key__": None, "cls": None, "jpg": None},
        {"__key__": "c", "cls": 3, "jpg": b"3"},
    ]
    (bad,) = chunk.bad
    assert bad.row == 1
    assert "the sample 'b' has no 'cls'" in str(bad.error)
    assert isinstance(bad.error, DataError)
    assert "optional" in bad.error.hint


def test_a_column_that_is_not_asked_for_is_not_missed(tmp_path: Path) -> None:
    info = save(tmp_path, [("a.jpg", b"1"), ("a.cls", b"1"), ("b.jpg", b"2")])
    assert rows(Tar(), info, ["jpg"]) == [{"jpg": b"1"}, {"jpg": b"2"}]
    assert sum(chunk.batch.num_rows for chunk in chunks(Tar(), info, [])) == 2


def test_missing_columns_are_null_by_policy_all_or_each(tmp_path: Path) -> None:
    info = save(tmp_path, [("a.jpg", b"1"), ("a.cls", b"1"), ("b.jpg", b"2"), ("c.cls", b"3")])
    assert rows(Tar(missing="null"), info, ["cls", "jpg"]) == [
        {"cls": 1, "jpg": b"1"},
        {"cls": None, "jpg": b"2"},
        {"cls": 3, "jpg": None},
    ]
    assert [bad.row for bad in bad_rows(Tar(optional=("cls",)), info)] == [2]


def test_a_column_that_no_sample_has_is_null_in_the_type_asked_for(tmp_path: Path) -> None:
    info = save(tmp_path, [("a.jpg", b"1")])
    tar = Tar(missing="null")
    scan = tar.scan(STORE, [info])
    (fragment,) = fragments(scan)
    schema = pa.schema({"other": pa.list_(pa.int8()), "jpg": pa.large_binary()})
    (chunk,) = tar.read(Opened(STORE, [info], {}), fragment, schema, 0, 1, 10)
    assert chunk.batch.schema == schema
    assert chunk.batch.to_pylist() == [{"other": None, "jpg": b"1"}]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("cls", b"seven", "not a 64-bit integer"),
        ("cls", b"", "not a 64-bit integer"),
        ("cls", b"9223372036854775808", "not a 64-bit integer"),
        ("cls", b"1_0", "not a 64-bit integer"),
        ("cls", b"9" * 100_000, "not a 64-bit integer"),
        ("txt", b"\xff\xfe", "not UTF-8 text"),
    ],
)
def test_a_value_that_cannot_be_decoded_is_a_bad_row(
    tmp_path: Path, name: str, content: bytes, message: str
) -> None:
    info = save(tmp_path, [("a." + name, b"1"), ("a.b", b"x"), ("b." + name, content), ("b.b", b"x")])
    (chunk,) = chunks(Tar(), info)
    assert chunk.batch.column("b").to_pylist() == [b"x", None]
    (bad,) = chunk.bad
    assert message in str(bad.error)
    assert len(str(bad.error)) < 500
    assert isinstance(bad.error, DataError)
    assert f"without '{name}'" in bad.error.hint


def test_integers_are_exact_at_both_ends(tmp_path: Path) -> None:
    info = save(tmp_path, [("a.cls", b"9223372036854775807"), ("b.cls", b"-9223372036854775808")])
    assert [row["cls"] for row in rows(Tar(), info)] == [2**63 - 1, -(2**63)]


fields = st.dictionaries(st.sampled_from(["jpg", "txt", "a.bin"]), st.binary(max_size=900), min_size=1)


@given(
    samples=st.lists(fields, max_size=12),
    name=st.sampled_from(["a.tar", "a.tgz", "a.tar.zst"]),
    limit=st.integers(1, 6000),
    data=st.data(),
)
def test_any_range_of_any_fragment_holds_the_rows_written(
    tmp_path_factory: pytest.TempPathFactory,
    samples: list[dict[str, bytes]],
    name: str,
    limit: int,
    data: st.DataObject,
) -> None:
    tar = Tar(text=(), missing="null")
    info = save(
        tmp_path_factory.mktemp("tar"),
        [
            (f"{k}.{column}", content)
            for k, fields in enumerate(samples)
            for column, content in fields.items()
        ],
        name,
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(connectors.tar, "_FRAGMENT_BYTES", limit)
        scan = tar.scan(STORE, [info])
        assert scan.rows.sum() == len(samples)
        opened = Opened(STORE, [info], {})
        row = 0
        for fragment in fragments(scan):
            start = data.draw(st.integers(0, fragment.rows))
            stop = data.draw(st.integers(start, fragment.rows))
            max_rows = data.draw(st.integers(1, 5))
            found = list(tar.read(opened, fragment, scan.schema, start, stop, max_rows))
            assert all(0 < chunk.batch.num_rows <= max_rows for chunk in found)
            expected = [
                dict.fromkeys(scan.schema.names) | {"__key__": str(row + k)} | samples[row + k]
                for k in range(start, stop)
            ]
            assert [r for chunk in found for r in chunk.batch.to_pylist()] == expected
            row += fragment.rows


def test_fragments_are_whole_samples_of_some_4_mib(tmp_path: Path) -> None:
    info = save(tmp_path, [(f"{k}.{c}", bytes(300_000)) for k in range(20) for c in "ab"])
    scan = Tar().scan(STORE, [info])
    assert len(scan.rows) > 1
    assert max(scan.length) <= 4 << 20
    assert scan.rows.sum() == 20


def test_an_archive_that_was_changed_behind_its_index_is_an_error(tmp_path: Path) -> None:
    for name in ("a.tar", "a.tgz"):
        info = save(tmp_path, [(f"{k}.txt", b"x") for k in range(5)], name)
        scan = Tar().scan(STORE, [info])
        for changed in ([("0.txt", b"x" * 3000)], [(f"{k // 2}.{k % 2}", b"x") for k in range(5)]):
            save(tmp_path, changed, name)
            (fragment,) = fragments(scan)
            with pytest.raises(DataError, match=name) as caught:
                list(Tar().read(Opened(STORE, [info], {}), fragment, scan.schema, 0, 5, 10))
            assert caught.value.hint


def test_a_file_of_another_format_is_an_error(tmp_path: Path) -> None:
    for name, message in (("a.tar", "is no tar archive|ends inside"), ("a.tgz", "damaged or not gzip")):
        for content in (b"PAR1" + bytes(2000) + b"PAR1", b"hello", gzip.compress(b"hello")[3:] * 40):
            (tmp_path / name).write_bytes(content)
            with pytest.raises(DataError, match=f"{name}.*({message})") as caught:
                Tar().scan(STORE, [listed(tmp_path / name)])
            assert caught.value.hint


@pytest.mark.parametrize(
    ("options", "hint"),
    [
        ({"key_dot": "third"}, "'first' or 'last'"),
        ({"missing": "skip"}, "'error' or 'null'"),
        ({"truncated": "no"}, "'error' or 'keep'"),
        ({"text": ("cls",)}, "one of them"),
    ],
)
def test_a_wrong_option_fails_at_once(options: dict[str, str], hint: str) -> None:
    with pytest.raises(PlanError) as caught:
        Tar(**options)  # type: ignore[arg-type]
    assert hint in caught.value.hint


def test_a_scan_remarks_the_columns_that_some_samples_lack(tmp_path: Path) -> None:
    info = save(tmp_path, [("1.a", b"x"), ("1.b", b"x"), ("2.a", b"x"), ("3.b", b"x"), ("3.c", b"x")])

    def remarks(tar: Tar) -> tuple[str, ...]:
        return tar.scan(Store(), [info]).remarks

    assert [said.split("'")[1] for said in remarks(Tar())] == ["a", "b", "c"]
    assert remarks(Tar())[2] == (
        "samples without 'c', which are bad rows where it is read; Tar(optional=(\"c\",)) makes it null."
    )
    assert remarks(Tar(optional=("c",)))[2] == "samples without 'c', which is null there."
    assert remarks(Tar(missing="null"))[0] == "samples without 'a', which is null there."


def test_a_scan_of_whole_samples_remarks_nothing(tmp_path: Path) -> None:
    info = save(tmp_path, [("1.a", b"x"), ("1.b", b"x"), ("2.a", b"x"), ("2.b", b"x")])
    assert Tar().scan(Store(), [info]).remarks == ()
