from __future__ import annotations

import gzip
import struct
import sys
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import connectors.arrow_ipc
from connectors.arrow_ipc import ArrowIpc
from connectors.conform import conformed
from connectors.contract import Chunk, Fragment, Opened
from connectors.paths import resolve
from dataflow.errors import DataError

TABLE = pa.table({"x": range(10), "s": [None if k == 4 else "v" * k for k in range(10)]})


def write(path: Path, table: pa.Table, kind: str = "file", rows: int = 4, **options: Any) -> Path:
    make = pa.ipc.new_file if kind == "file" else pa.ipc.new_stream
    settings = pa.ipc.IpcWriteOptions(**options)
    with pa.OSFile(str(path), "wb") as sink, make(sink, table.schema, options=settings) as writer:
        writer.write_table(table, max_chunksize=rows)
    return path


def scanned(path: Path, connector: ArrowIpc | None = None) -> tuple[Opened, pa.Schema, list[Fragment]]:
    listing = resolve(path)
    scan = (connector or ArrowIpc()).scan(listing.store, listing.files)
    arrays = (scan.file, scan.offset, scan.length, scan.rows)
    fragments = [Fragment(*numbers) for numbers in zip(*(array.tolist() for array in arrays), strict=True)]
    return Opened(listing.store, listing.files, {}), scan.schema, fragments


def read_all(opened: Opened, schema: pa.Schema, fragments: list[Fragment]) -> None:
    for fragment in fragments:
        list(ArrowIpc().read(opened, fragment, schema, 0, fragment.rows, 10))


def table_of(path: Path, schema: pa.Schema | None = None, connector: ArrowIpc | None = None) -> pa.Table:
    used = connector or ArrowIpc()
    opened, found, fragments = scanned(path, used)
    wanted = found if schema is None else schema
    chunks = [chunk for f in fragments for chunk in used.read(opened, f, wanted, 0, f.rows, 3)]
    for bad in [bad for chunk in chunks for bad in chunk.bad]:
        raise bad.error
    return pa.Table.from_batches([chunk.batch for chunk in chunks], wanted)


@pytest.mark.parametrize("kind", ["file", "stream"])
@pytest.mark.parametrize("compression", [None, "lz4", "zstd"])
def test_files_and_streams_have_a_fragment_for_each_batch(
    tmp_path: Path, kind: str, compression: str | None
) -> None:
    # Both are told apart by their content: Hugging Face writes streams named .arrow.
    path = write(tmp_path / "t.arrow", TABLE, kind, compression=compression)
    assert [fragment.rows for fragment in scanned(path)[2]] == [4, 4, 2]
    assert table_of(path).equals(TABLE)


def test_a_stream_of_the_old_format_is_read(tmp_path: Path) -> None:
    path = write(tmp_path / "t.arrows", TABLE, "stream", use_legacy_format=True)
    assert table_of(path).equals(TABLE)


@pytest.mark.parametrize("kind", ["file", "stream"])
@pytest.mark.parametrize("rows", [0, 3])
def test_files_without_batches_rows_or_columns_are_read(tmp_path: Path, kind: str, rows: int) -> None:
    none = write(tmp_path / "none.arrow", TABLE.slice(0, 0), kind)
    opened, schema, fragments = scanned(none)
    assert schema == TABLE.schema
    assert sum(fragment.rows for fragment in fragments) == 0
    bare = write(tmp_path / "bare.arrow", TABLE.slice(0, rows).select([]), kind)
    opened, schema, fragments = scanned(bare)
    assert len(schema) == 0
    chunks = [c for f in fragments for c in ArrowIpc().read(opened, f, schema, 0, f.rows, 10)]
    assert sum(chunk.batch.num_rows for chunk in chunks) == sum(fragment.rows for fragment in fragments)


@given(
    words=st.lists(st.lists(st.none() | st.sampled_from("abcdefgh"), max_size=5), min_size=1, max_size=5),
    deltas=st.booleans(),
    compression=st.sampled_from([None, "zstd"]),
)
def test_each_batch_of_a_stream_has_the_dictionary_it_was_written_with(
    tmp_path_factory: pytest.TempPathFactory,
    words: list[list[str | None]],
    deltas: bool,
    compression: str | None,
) -> None:
    path = tmp_path_factory.mktemp("words") / "t.arrows"
    kind = pa.dictionary(pa.int32(), pa.string())
    pieces = pa.concat_tables(
        pa.table({"w": pa.array(part, kind), "l": pa.array([[w] for w in part], pa.list_(kind))})
        for part in words
    )
    table = pieces.add_column(1, "n", pa.array(range(len(pieces)), pa.int64()))
    write(path, table, "stream", 100, emit_dictionary_deltas=deltas, compression=compression)
    opened, schema, fragments = scanned(path)
    assert schema.types == [pa.string(), pa.int64(), pa.list_(pa.string())]
    for fragment in reversed(fragments):
        first = sum(f.rows for f in fragments if f.offset < fragment.offset)
        chunks = ArrowIpc().read(opened, fragment, schema, 0, fragment.rows, 100)
        got = pa.Table.from_batches([chunk.batch for chunk in chunks], schema)
        assert got.to_pydict() == table.slice(first, fragment.rows).to_pydict()


@pytest.mark.parametrize("pack", ["gzip", "zstd", "lz4"])
@pytest.mark.parametrize("cut", [0, 1, 5])
def test_a_stream_compressed_as_a_whole_is_one_fragment(
    tmp_path: Path, pack: Literal["gzip", "zstd", "lz4"], cut: int
) -> None:
    raw = write(tmp_path / "t.arrows", TABLE, "stream").read_bytes()
    path = tmp_path / "t.arrow"
    with pa.OSFile(str(path), "wb") as sink, pa.CompressedOutputStream(sink, pack) as packed:
        packed.write(raw)
    opened, schema, fragments = scanned(path)
    assert [fragment.rows for fragment in fragments] == [10]
    chunks = ArrowIpc().read(opened, fragments[0], schema, cut, 10 - cut, 3)
    assert pa.Table.from_batches([c.batch for c in chunks], schema).equals(TABLE.slice(cut, 10 - 2 * cut))


def test_a_compressed_stream_that_is_cut_off_is_an_error(tmp_path: Path) -> None:
    raw = gzip.compress(write(tmp_path / "t.arrows", TABLE, "stream").read_bytes())
    path = tmp_path / "t.arrow"
    for length in (20, len(raw) // 2, len(raw) - 30):
        path.write_bytes(raw[:length])
        with pytest.raises(DataError, match=r"t\.arrow") as caught:
            scanned(path)
        assert caught.value.hint


@pytest.mark.parametrize("kind", ["file", "stream"])
def test_the_rows_of_a_local_file_are_a_view_of_it(tmp_path: Path, kind: str) -> None:
    table = pa.table({"x": np.arange(100_000), "y": np.arange(100_000)})
    path = write(tmp_path / "t.arrow", table, kind, rows=50_000)
    opened, schema, fragments = scanned(path)
    before = pa.total_allocated_bytes()
    wanted = pa.schema([schema.field("x")])
    chunk = next(ArrowIpc().read(opened, fragments[1], wanted, 10, 40_000, 50_000))
    assert pa.total_allocated_bytes() - before < 10_000
    assert chunk.batch.column(0)[0].as_py() == 50_010
    with pytest.raises(ValueError, match="read-only"):
        chunk.batch.column(0).to_numpy()[0] = 1


@pytest.mark.parametrize("kind", ["file", "stream"])
def test_only_the_wanted_columns_are_decompressed(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path / "t.arrow", TABLE, kind, compression="zstd")
    seen: list[list[str]] = []

    def noted(batch: pa.RecordBatch, schema: pa.Schema, *, file: str) -> Chunk:
        seen.append(batch.schema.names)
        return conformed(batch, schema, file=file)

    monkeypatch.setattr(connectors.arrow_ipc, "conformed", noted)
    assert table_of(path, pa.schema([("s", pa.large_string())]))["s"].to_pylist() == TABLE["s"].to_pylist()
    assert {name for names in seen for name in names} == {"s"}


def test_names_that_occur_twice_and_the_first_feather_are_errors(tmp_path: Path) -> None:
    twice = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"])
    with pytest.raises(DataError, match="occurs 2 times") as caught:
        scanned(write(tmp_path / "t.arrow", twice))
    assert "rename" in caught.value.hint
    (tmp_path / "old.feather").write_bytes(b"FEA1" + b"\x00" * 100)
    with pytest.raises(DataError, match="Feather version 1") as caught:
        scanned(tmp_path / "old.feather")
    assert "write_feather" in caught.value.hint


def table_or_error(path: Path) -> pa.Table | str:
    """The rows, or the file that a DataError names."""
    try:
        return table_of(path)
    except DataError as error:
        return error.file


@pytest.mark.parametrize("kind", ["file", "stream"])
def test_a_file_cut_off_anywhere_is_an_error_or_whole_batches(tmp_path: Path, kind: str) -> None:
    raw = write(tmp_path / "whole.arrow", TABLE, kind).read_bytes()
    path = tmp_path / "cut.arrow"
    outcomes = set()
    for length in range(0, len(raw) - 1, 4):
        path.write_bytes(raw[:length])
        got = table_or_error(path)
        outcomes.add(got if isinstance(got, str) else got.num_rows)
        # A stream may end at any message: it looks as if it had been written so.
        assert isinstance(got, str) or got.equals(TABLE.slice(0, got.num_rows))
    assert outcomes == ({str(path)} if kind == "file" else {str(path), 0, 4, 8, 10})


@pytest.mark.parametrize("kind", ["file", "stream"])
@given(place=st.integers(0, 1 << 20), garbage=st.binary(min_size=1, max_size=9))
def test_bytes_that_are_damaged_never_crash_nor_take_memory(
    tmp_path_factory: pytest.TempPathFactory, kind: str, place: int, garbage: bytes
) -> None:
    path = tmp_path_factory.mktemp("damaged") / "t.arrow"
    raw = bytearray(write(path, TABLE, kind).read_bytes())
    place %= len(raw) - len(garbage)
    raw[place : place + len(garbage)] = garbage
    path.write_bytes(raw)
    before = pa.total_allocated_bytes()
    got = table_or_error(path)
    assert not isinstance(got, str) or got == str(path)
    del got
    assert pa.total_allocated_bytes() - before < 1 << 20


@pytest.mark.parametrize("kind", ["file", "stream"])
def test_offsets_that_lead_outside_are_an_error_and_not_a_crash(tmp_path: Path, kind: str) -> None:
    path = write(tmp_path / "t.arrow", pa.table({"s": ["aa", "bbb", "c"]}), kind)
    raw = path.read_bytes()
    offsets = struct.pack("<4i", 0, 2, 5, 6)
    assert raw.count(offsets) == 1
    path.write_bytes(raw.replace(offsets, struct.pack("<4i", 0, 2, 5_000_000, 6)))
    with pytest.raises(DataError, match=r"t\.arrow: it cannot be read as Arrow"):
        table_of(path)


def test_a_trusted_file_is_not_checked(tmp_path: Path) -> None:
    path = write(tmp_path / "t.arrow", pa.table({"s": ["aaa"]}))
    path.write_bytes(path.read_bytes().replace(b"aaa", b"\xff\xff\xff"))
    with pytest.raises(DataError, match="UTF8"):
        table_of(path)
    assert table_of(path, connector=ArrowIpc(trusted=True)).num_rows == 1


@pytest.mark.parametrize("kind", ["file", "stream"])
def test_a_file_that_was_written_again_is_an_error(tmp_path: Path, kind: str) -> None:
    path = write(tmp_path / "t.arrow", TABLE, kind)
    opened, schema, fragments = scanned(path)
    write(path, TABLE, kind, rows=3)
    for now in (opened, Opened(opened.store, resolve(path).files, {})):
        with pytest.raises(DataError, match=r"t\.arrow"):
            read_all(now, schema, fragments)


@pytest.mark.parametrize("kind", ["file", "stream"])
def test_the_schema_of_a_file_is_read_once_for_all_its_batches(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path / "t.arrow", TABLE, kind)
    connector = ArrowIpc()
    opened, schema, fragments = scanned(path, connector)
    times: list[int] = []
    real: Any = pa.ipc.read_schema

    def reading(*args: Any) -> Any:
        times.append(1)
        return real(*args)

    monkeypatch.setattr(pa.ipc, "read_schema", reading)
    chunks = [c for f in fragments for c in connector.read(opened, f, schema, 0, f.rows, 10)]
    assert pa.Table.from_batches([chunk.batch for chunk in chunks]) == TABLE
    assert len(fragments) == 3
    assert len(times) == 1


def test_bytes_in_the_other_order_are_left_to_arrows_own_reader(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path / "t.arrow", TABLE)
    monkeypatch.setattr(
        pa.ipc, "read_record_batch", lambda *_: pytest.fail("read without a look at the order")
    )
    monkeypatch.setattr(sys, "byteorder", "little" if sys.byteorder == "big" else "big")
    assert table_of(path) == TABLE
