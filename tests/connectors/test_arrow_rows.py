from __future__ import annotations

import random
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import fsspec
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from connectors.arrow_ipc import ArrowIpc
from connectors.arrow_layout import Codec
from connectors.arrow_rows import can_be_cut
from connectors.conform import conform
from connectors.contract import Fragment, Opened, Scan
from connectors.file_info import FileInfo
from connectors.store import Store
from dataflow.errors import DataError

ROWS = 50
WORDS = pa.dictionary(pa.int8(), pa.string())
INNER = pa.struct([("a", pa.int16()), ("b", pa.string()), ("c", pa.list_(pa.bool_()))])
TEXTS = [None, "", "short", "a text that does not lie in its view", "é" * 20]


class Remote(fsspec.get_filesystem_class("memory")):  # type: ignore[misc]  # fsspec has no types
    """Not the class that `Store` knows, so that its files are read as those of any other store."""

    protocol = "remote"
    store: dict[str, Any] = {}  # noqa: RUF012  # as fsspec has it
    cachable = False


def column(values: Sequence[object], kind: pa.DataType) -> pa.Array[Any]:
    return pa.array([values[row % len(values)] for row in range(ROWS)], kind)


COLUMNS = {
    "null": column([None], pa.null()),
    "bool": column([True, None, False], pa.bool_()),
    "int": pa.array(range(ROWS), pa.int64()),
    "half": pa.array(np.arange(ROWS, dtype=np.float16)),
    "fixed": column([b"abcd", None, b"efgh"], pa.binary(4)),
    "string": column(TEXTS, pa.string()),
    "large": column(TEXTS, pa.large_string()),
    "view": column(TEXTS, pa.string_view()),
    "views in lists": column([TEXTS, None, [], TEXTS[:2]], pa.list_(pa.string_view())),
    "list": column([[1, 2], None, [], [3]], pa.large_list(pa.int32())),
    "vector": column([[1, 2, 3], None, [None, 5, 6]], pa.list_(pa.int8(), 3)),
    "matrix": pa.ExtensionArray.from_storage(
        pa.fixed_shape_tensor(pa.float32(), (2, 2)),
        pa.FixedSizeListArray.from_arrays(pa.array(np.arange(4 * ROWS, dtype=np.float32)), 4),
    ),
    "struct": column([{"a": 1, "b": "x", "c": [True, None]}, None, {"a": None, "b": None, "c": []}], INNER),
    "map": column([[("k", {"a": 1, "b": "y", "c": []})], None, []], pa.map_(pa.string(), INNER)),
    "word": column(["red", None, "blue"], WORDS),
    "words": column([["red", "tan"], None, []], pa.list_(WORDS)),
    "words by key": column([[(1, "red"), (2, None)], []], pa.map_(pa.int8(), WORDS)),
    "no fields": column([{}, None], pa.struct([])),
}
TABLE = pa.table(COLUMNS)


def written(table: pa.Table, kind: str, compression: Codec | None, rows: int = 21) -> bytes:
    make = pa.ipc.new_file if kind == "file" else pa.ipc.new_stream
    options = pa.ipc.IpcWriteOptions(compression=compression, unify_dictionaries=kind == "file")
    sink = pa.BufferOutputStream()
    with make(sink, table.schema, options=options) as writer:
        writer.write_table(table, max_chunksize=rows)
    content: bytes = sink.getvalue().to_pybytes()
    return content


def stored(content: bytes, folder: Path | None) -> tuple[Store, FileInfo]:
    """On the local disk, or (`folder` None) in another store."""
    if folder is None:
        fs = Remote()
        fs.pipe_file("/t.arrow", content)
        return Store(fs), FileInfo("/t.arrow", len(content))
    path = folder / "t.arrow"
    path.write_bytes(content)
    return Store(), FileInfo(str(path), len(content))


def fragments_of(scan: Scan) -> list[Fragment]:
    arrays = (scan.file, scan.offset, scan.length, scan.rows)
    return [Fragment(*numbers) for numbers in zip(*(array.tolist() for array in arrays), strict=True)]


@pytest.mark.parametrize("kind", ["file", "stream"])
@pytest.mark.parametrize("compression", [None, "lz4", "zstd"])
@pytest.mark.parametrize("is_local", [True, False])
def test_rows_and_columns_that_are_read_alone_are_those_of_the_table(
    tmp_path: Path, kind: str, compression: Codec | None, is_local: bool
) -> None:
    store, info = stored(written(TABLE, kind, compression), tmp_path if is_local else None)
    connector, choose = ArrowIpc(), random.Random(7)
    scan = connector.scan(store, [info])
    opened = Opened(store, [info], scan.meta)
    before = 0
    for fragment in fragments_of(scan):
        for start, stop in [(0, fragment.rows), (3, 4), (8, 17), (5, fragment.rows), (1, 7)]:
            if stop > fragment.rows:
                continue
            names = choose.sample(TABLE.schema.names, 4) if start else TABLE.schema.names
            schema = pa.schema([scan.schema.field(name) for name in names])
            chunks = connector.read(opened, fragment, schema, start, stop, 6)
            got = pa.Table.from_batches([chunk.batch for chunk in chunks], schema)
            part = TABLE.slice(before + start, stop - start).combine_chunks().to_batches()[0]
            assert got.to_pydict() == {
                n: conform(part, schema, file="t").column(n).to_pylist() for n in names
            }
        before += fragment.rows
    assert before == ROWS


@pytest.mark.parametrize("is_local", [True, False])
@pytest.mark.parametrize("compression", [None, "zstd"])
@given(place=st.integers(0, 1 << 20), garbage=st.binary(min_size=1, max_size=9))
def test_damage_to_any_type_is_an_error_and_no_crash(
    tmp_path_factory: pytest.TempPathFactory,
    is_local: bool,
    compression: Codec | None,
    place: int,
    garbage: bytes,
) -> None:
    content = bytearray(written(TABLE, "file", compression))
    place %= len(content) - len(garbage)
    content[place : place + len(garbage)] = garbage
    store, info = stored(bytes(content), tmp_path_factory.mktemp("damaged") if is_local else None)
    connector = ArrowIpc()
    with suppress(DataError):
        scan = connector.scan(store, [info])
        opened = Opened(store, [info], scan.meta)
        for fragment in fragments_of(scan):
            list(connector.read(opened, fragment, scan.schema, 2, max(2, fragment.rows - 2), 10))


def test_what_the_view_of_a_null_has_in_it_is_not_looked_at() -> None:
    _, views, text = pa.array(["a text that does not lie in its view"] * 2, pa.string_view()).buffers()
    assert views is not None
    damaged = views.to_pybytes()[:16] + b"\xff" * 16
    nulled = pa.Array.from_buffers(pa.string_view(), 2, [pa.py_buffer(b"\x01"), pa.py_buffer(damaged), text])
    store, info = stored(written(pa.table({"v": nulled, "x": [1, 2]}), "file", None), None)
    connector = ArrowIpc(trusted=True)
    scan = connector.scan(store, [info])
    (fragment,) = fragments_of(scan)
    wanted = pa.schema([scan.schema.field("v")])
    (chunk,) = connector.read(Opened(store, [info], {}), fragment, wanted, 0, 2, 10)
    assert chunk.batch.column(0).to_pylist() == ["a text that does not lie in its view", None]


@pytest.mark.parametrize("kind", [pa.run_end_encoded(pa.int32(), pa.int8()), pa.list_view(pa.int8())])
def test_types_of_which_no_part_can_be_read_alone_are_said_so(kind: pa.DataType) -> None:
    assert not can_be_cut(kind)
    assert not can_be_cut(pa.list_(pa.struct([("a", kind)])))


@pytest.mark.parametrize("compression", [None, "zstd"])
def test_record_batches_have_cheap_row_ranges_unless_they_are_compressed(compression: Codec | None) -> None:
    store, info = stored(written(TABLE, "file", compression), None)
    traits = ArrowIpc().traits_of(ArrowIpc().scan(store, [info]).meta)
    assert traits.row_ranges == traits.single_rows == (compression is None)
