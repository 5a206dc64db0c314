from __future__ import annotations

import io
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from connectors.forward import Truncated
from connectors.tar_members import FileArchive, ForwardArchive, Member, Members, MemoryArchive
from dataflow.errors import DataError

FORMATS = (tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT)


def archive(files: list[tuple[str, bytes]], form: int = tarfile.PAX_FORMAT, **facts: object) -> bytes:
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode="w", format=form) as tar:
        for name, content in files:
            info = tarfile.TarInfo(name)
            info.size = len(content)
            for fact, value in facts.items():
                setattr(info, fact, value)
            tar.addfile(info, io.BytesIO(content))
    return target.getvalue()


def walk(data: bytes) -> list[Member]:
    return list(Members(MemoryArchive(pa.py_buffer(data), 0), "a.tar"))


def contents(data: bytes) -> list[tuple[str, bytes]]:
    return [(m.name, data[m.data : m.data + m.size]) for m in walk(data)]


def short(stream: bytes, size: int) -> Iterator[bytes]:
    for at in range(0, len(stream), size):
        yield stream[at : at + size]


part = st.text(st.characters(exclude_characters="/\0", exclude_categories=["Cs"]), min_size=1, max_size=60)
# A name that ends in a slash, and "." and "..", are folders to tarfile.
names = st.lists(part, min_size=1, max_size=5).map("/".join).filter(lambda n: n.strip("./") == n)
files = st.lists(st.tuples(names, st.binary(max_size=1500)), max_size=6)


@given(files=files, form=st.sampled_from(FORMATS[1:]), window=st.integers(1, 3000))
def test_names_and_contents_are_those_that_tarfile_wrote(
    files: list[tuple[str, bytes]], form: int, window: int
) -> None:
    data = archive(files, form, mtime=1.5)
    assert contents(data) == files
    forward = ForwardArchive(short(data, window))
    assert [(m.name, forward.at(m.data, m.size)) for m in Members(forward, "a.tar")] == files


@pytest.mark.parametrize("form", FORMATS)
def test_names_split_between_prefix_and_name_are_joined(form: int) -> None:
    name = "folder/" * 20 + "n" * 90 + ".jpg"
    assert contents(archive([(name, b"x")], form)) == [(name, b"x")]


def test_a_file_is_walked_like_memory_and_payloads_are_not_read(tmp_path: Path) -> None:
    data = archive([(f"{k}.bin", bytes(k * 9000)) for k in range(9)])
    (tmp_path / "a.tar").write_bytes(data)
    with pa.OSFile(str(tmp_path / "a.tar"), "rb") as file:
        assert list(Members(FileArchive(file, "a.tar"), "a.tar")) == walk(data)


def test_a_member_starts_at_its_first_extended_header() -> None:
    data = archive([("a.txt", b"1"), ("b" * 200, b"2")])
    first, second = walk(data)
    assert (first.start, first.end) == (0, 1024)
    assert second.start == first.end
    assert second.data > second.start + 512
    part = pa.py_buffer(data[second.start : second.end])
    assert list(Members(MemoryArchive(part, second.start), "a.tar", second.start, second.end)) == [second]


def test_folders_links_devices_and_pipes_are_passed_over() -> None:
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode="w") as tar:
        kinds = (tarfile.DIRTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE)
        for number, kind in enumerate(kinds):
            info = tarfile.TarInfo(f"{number}.jpg")
            info.type, info.linkname = kind, "elsewhere" * 30
            tar.addfile(info)
        tar.addfile(tarfile.TarInfo("real.jpg"))
    assert contents(target.getvalue()) == [("real.jpg", b"")]


def test_archives_behind_one_another_are_one() -> None:
    both = archive([("a.txt", b"1")]) + archive([("b.txt", b"2")])
    assert contents(both) == [("a.txt", b"1"), ("b.txt", b"2")]


def test_names_that_are_not_utf8_are_escaped() -> None:
    data = archive([("\udcff.txt", b"1")], tarfile.GNU_FORMAT, mtime=0)
    assert contents(data) == [("\\xff.txt", b"1")]


def test_sizes_beyond_octal_digits_are_read() -> None:
    info = tarfile.TarInfo("a.bin")
    info.size = 9 << 33
    data = info.tobuf(tarfile.GNU_FORMAT)
    members = Members(ForwardArchive(iter([data])), "a.tar")
    assert next(iter(members)).size == 9 << 33


@pytest.mark.parametrize("cut", [1, 511, 513, 700, 1023])
def test_an_archive_that_ends_inside_a_member_is_truncated(cut: int) -> None:
    data = archive([("a.txt", b"1" * 512), ("b.txt", b"2" * 512)])[: 1024 + cut]
    with pytest.raises(Truncated, match=r"a\.tar, byte 1024") as caught:
        walk(data)
    assert "copy it again" in caught.value.hint
    with pytest.raises(Truncated):
        list(Members(ForwardArchive(iter([data])), "a.tar"))


def test_the_end_mark_is_noticed() -> None:
    data = archive([("a.txt", b"1")])
    for stored, marked in ((data, True), (data[:1024], False), (data[:1536], True), (b"", False)):
        members = Members(MemoryArchive(pa.py_buffer(stored), 0), "a.tar")
        list(members)
        assert members.marked is marked


def test_a_size_larger_than_the_archive_takes_no_memory() -> None:
    info = tarfile.TarInfo("a.bin")
    info.size = 1 << 60
    with pytest.raises(Truncated, match=r"a\.tar, byte 0"):
        walk(info.tobuf(tarfile.GNU_FORMAT) + bytes(1024))


@pytest.mark.parametrize("place", [0, 50, 124, 130, 148, 156, 257, 511])
def test_a_changed_byte_in_a_header_is_an_error_that_names_the_offset(place: int) -> None:
    data = bytearray(archive([("a.txt", b"1"), ("b.txt", b"2")]))
    data[1024 + place] ^= 0x15
    with pytest.raises(DataError, match=r"a\.tar, byte 1024: the tar header here is damaged") as caught:
        walk(bytes(data))
    assert "copy it again" in caught.value.hint


def test_checksums_of_signed_bytes_are_taken() -> None:
    data = bytearray(archive([("\xe9.txt", b"1")], tarfile.GNU_FORMAT))
    signed = sum(b - 256 * (b > 127) for b in data[:148] + b" " * 8 + data[156:512])
    data[148:156] = b"%06o\0 " % signed
    assert [m.name for m in walk(bytes(data))] == ["\xe9.txt"]


def extended(kind: bytes, payload: bytes) -> bytes:
    info = tarfile.TarInfo("x")
    info.type, info.size = kind, len(payload)
    return (
        info.tobuf(tarfile.USTAR_FORMAT) + payload + bytes(-len(payload) % 512) + archive([("a.txt", b"1")])
    )


@pytest.mark.parametrize(
    ("kind", "payload", "message"),
    [
        (b"x", b"hello world", "extended header is damaged"),
        (b"x", b"-5 path=b\n", "extended header is damaged"),
        (b"x", b"9 path=b\n" * 3 + b"0 path=b\n", "extended header is damaged"),
        (b"x", b"11 size=-1\n", "size '-1'"),
        (b"x", b"22 GNU.sparse.major=1\n", "sparse"),
        (b"g", b"9 path=b\n", "global header"),
        (b"x", bytes(2 << 20), "extended header has 2,097,152 bytes"),
    ],
)
def test_a_hostile_extended_header_is_an_error(kind: bytes, payload: bytes, message: str) -> None:
    with pytest.raises(DataError, match=message) as caught:
        walk(extended(kind, payload))
    assert caught.value.hint


def test_a_sparse_member_is_an_error() -> None:
    info = tarfile.TarInfo("a.bin")
    info.type = tarfile.GNUTYPE_SPARSE
    with pytest.raises(DataError, match="sparse") as caught:
        walk(info.tobuf(tarfile.GNU_FORMAT) + bytes(1024))
    assert "--sparse" in caught.value.hint


def test_a_global_header_without_names_is_passed_over() -> None:
    assert contents(extended(b"g", b"13 comment=x\n")) == [("a.txt", b"1")]


def test_an_extended_header_may_have_very_many_records() -> None:
    # Where each record was cut off the rest, one such header took seven seconds.
    many = {f"k{number:05d}": "v" for number in range(60_000)}
    data = archive([("a.txt", b"a"), ("b.txt", b"b")], pax_headers=many)
    assert contents(data) == [("a.txt", b"a"), ("b.txt", b"b")]


@pytest.mark.parametrize(
    "record", [b"0 a=b\n", b"-6 a=b\n", b"3 \n", b" 7 a=bc\n", b"99 a=b\n", b"6 a=b ", b"6 abc\n"]
)
def test_records_that_do_not_lie_behind_each_other_are_damaged(record: bytes) -> None:
    data = archive([("a.txt", b"a")], pax_headers={"k": "v" * 20})
    place = data.index(b"26 k=" + b"v" * 20)
    with pytest.raises(DataError, match="an extended header is damaged") as caught:
        walk(data[:place] + record.ljust(26, b"\0") + data[place + 26 :])
    assert caught.value.offset == 0
