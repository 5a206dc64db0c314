"""WebDataset tar shards through the whole line: keys, fields, archives that are cut, empty or wrong."""

from __future__ import annotations

import io
import json
import tarfile
from pathlib import Path

import pytest
from delivered import arrow, tar, torch_of

import dataflow as flow
from connectors.tar import Tar
from dataflow import DataError, DataflowError

SAMPLES = [(f"s{i:02}.{kind}", f"{i}".encode()) for i in range(12) for kind in ("cls", "txt")]


def test_the_key_ends_at_the_first_dot_of_the_base_name_and_can_end_at_the_last(tmp_path: Path) -> None:
    path = tar(
        tmp_path / "a.tar",
        [
            ("v1.0/x.left.txt", b"l"),
            ("v1.0/x.right.txt", b"r"),
            ("v1.0/y.left.txt", b"L"),
            ("v1.0/y.right.txt", b"R"),
        ],
    )
    first = arrow(flow.read(path)).to_pylist()
    assert first == [
        {"__key__": "v1.0/x", "left.txt": "l", "right.txt": "r"},
        {"__key__": "v1.0/y", "left.txt": "L", "right.txt": "R"},
    ]
    last = arrow(flow.read(path, format=Tar(key_dot="last"))).to_pylist()
    assert last == [
        {"__key__": key, "txt": text}
        for key, text in (
            ("v1.0/x.left", "l"),
            ("v1.0/x.right", "r"),
            ("v1.0/y.left", "L"),
            ("v1.0/y.right", "R"),
        )
    ]


def test_members_of_a_sample_that_are_apart_are_an_error_that_names_archive_and_member(
    tmp_path: Path,
) -> None:
    path = tar(tmp_path / "apart.tar", [("a.txt", b"1"), ("b.txt", b"2"), ("a.cls", b"3")])
    with pytest.raises(DataError, match=r"apart\.tar.*'a") as caught:
        flow.read(path).schema  # noqa: B018
    assert caught.value.hint


def test_a_cut_archive_is_an_error_or_its_good_part_is_kept(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    whole = tar(tmp_path / "a.tar", SAMPLES).read_bytes()
    tar(tmp_path / "b.tar", [("z.cls", b"99"), ("z.txt", b"z")])
    (tmp_path / "a.tar").write_bytes(whole[: 1024 * 13 + 300])
    with pytest.raises(DataError, match=r"a\.tar") as caught:
        flow.read(tmp_path / "*.tar").schema  # noqa: B018
    assert 'truncated="keep"' in caught.value.hint
    pipe = flow.read(tmp_path / "*.tar", format=Tar(truncated="keep"))
    assert torch_of(pipe, "cls").tolist() == [0, 1, 2, 3, 4, 5, 99]
    assert "whole samples" in caplog.text


def test_an_empty_archive_is_fine_among_others(tmp_path: Path) -> None:
    tar(tmp_path / "1.tar", [])
    tar(tmp_path / "2.tar", SAMPLES)
    with flow.read(tmp_path / "*.tar").shuffle(5).batch(4).loader() as loader:
        assert sum(len(batch["cls"]) for batch in loader) == 12


@pytest.mark.parametrize("on_error", ["raise", "skip", "replace"])
def test_a_sample_without_a_field_is_a_bad_row_by_policy(on_error: str, tmp_path: Path) -> None:
    members = [m for m in SAMPLES if m[0] not in ("s03.txt", "s07.cls")]
    path = tar(tmp_path / "a.tar", members)
    pipe = flow.read(path)
    note = tmp_path / "bad.jsonl"
    if on_error == "raise":
        with pytest.raises(DataError, match=r"a\.tar.*s03|s03.*a\.tar"):
            arrow(pipe)
        return
    table = arrow(pipe, on_error=on_error, quarantine=note)
    good = [i for i in range(12) if i not in (3, 7)]
    if on_error == "skip":
        assert table["cls"].to_pylist() == good
    else:
        assert [n for i, n in enumerate(table["cls"].to_pylist()) if i in good] == good
        assert set(table["cls"].to_pylist()) == set(good)
        assert all(row["txt"] == str(row["cls"]) for row in table.to_pylist())
    written = [json.loads(line) for line in note.read_text().splitlines()]
    assert [(line["file"], line["row"]) for line in written] == [("a.tar", 3), ("a.tar", 7)]


def test_a_missing_field_is_null_where_the_policy_says_so_for_all_or_for_one(tmp_path: Path) -> None:
    path = tar(tmp_path / "a.tar", [m for m in SAMPLES if m[0] not in ("s03.txt", "s07.cls")])
    for policy in (Tar(missing="null"), Tar(optional=("txt", "cls"))):
        rows = arrow(flow.read(path, format=policy)).to_pylist()
        assert [row["txt"] for row in rows] == [None if i == 3 else str(i) for i in range(12)]
        assert [row["cls"] for row in rows] == [None if i == 7 else i for i in range(12)]
    one = flow.read(path, format=Tar(optional=("txt",)))
    assert torch_of(one, "cls", on_error="skip").tolist() == [i for i in range(12) if i != 7]


def test_a_field_that_is_not_asked_for_may_be_missing(tmp_path: Path) -> None:
    path = tar(tmp_path / "a.tar", [m for m in SAMPLES if m[0] != "s03.txt"])
    assert torch_of(flow.read(path, columns=["cls"]), "cls").tolist() == list(range(12))


def test_nothing_is_unpickled_and_no_member_leaves_its_folder(tmp_path: Path) -> None:
    marker = tmp_path / "ran"
    evil = b"cos\nsystem\n(S'touch " + str(marker).encode() + b"'\ntR."
    path = tar(tmp_path / "a.tar", [("a.pyd", evil), ("a.pkl", evil), ("a.pth", evil), ("a.npy", evil)])
    row = arrow(flow.read(path)).to_pylist()[0]
    assert row["pkl"] == row["pyd"] == row["pth"] == row["npy"] == evil
    assert not marker.exists()
    for name in ("../out.txt", "/etc/passwd.txt", "a/../../b.txt"):
        tar(tmp_path / "out.tar", [(name, b"x")])
        with pytest.raises(DataError, match=r"out\.tar"):
            flow.read(tmp_path / "out.tar").schema  # noqa: B018


def test_links_folders_and_hidden_files_are_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "a.tar"
    with tarfile.open(path, "w") as archive:
        for name, kind in (("d", tarfile.DIRTYPE), ("l.txt", tarfile.SYMTYPE), ("h.txt", tarfile.LNKTYPE)):
            info = tarfile.TarInfo(name)
            info.type, info.linkname = kind, "/etc/passwd"
            archive.addfile(info)
        for name in ("a.txt", ".hidden.txt", "noextension"):
            info = tarfile.TarInfo(name)
            info.size = 1
            archive.addfile(info, io.BytesIO(b"x"))
    assert arrow(flow.read(path)).to_pylist() == [{"__key__": "a", "txt": "x"}]


def test_text_and_integers_that_cannot_be_decoded_are_bad_rows(tmp_path: Path) -> None:
    path = tar(tmp_path / "a.tar", [("a.cls", b"1"), ("b.cls", b"two"), ("c.cls", b"3")])
    with pytest.raises(DataflowError, match=r"a\.tar"):
        torch_of(flow.read(path), "cls")
    assert torch_of(flow.read(path), "cls", on_error="skip").tolist() == [1, 3]
