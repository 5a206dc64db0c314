from __future__ import annotations

import pickle
import subprocess
import sys
from collections.abc import Sequence
from datetime import date, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import connectors.parquet
from connectors.contract import FileInfo, Fragment, Opened, Prunes
from connectors.parquet import Parquet
from connectors.paths import resolve
from connectors.store import Store
from dataflow.errors import ConnectorError, DataError


def scanned(path: Path | str, connector: Parquet | None = None) -> tuple[Opened, pa.Schema, list[Fragment]]:
    listing = resolve(path)
    scan = (connector or Parquet()).scan(listing.store, listing.files)
    arrays = (scan.file, scan.offset, scan.length, scan.rows)
    fragments = [Fragment(*numbers) for numbers in zip(*(array.tolist() for array in arrays), strict=True)]
    return Opened(listing.store, listing.files, scan.meta), scan.schema, fragments


def table_of(path: Path, schema: pa.Schema | None = None, max_rows: int = 1 << 20) -> pa.Table:
    opened, found, fragments = scanned(path)
    wanted = found if schema is None else schema
    chunks = [c for f in fragments for c in Parquet().read(opened, f, wanted, 0, f.rows, max_rows)]
    return pa.Table.from_batches([chunk.batch for chunk in chunks], wanted)


def spy_reads(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The columns that pyarrow is asked to read, one entry a call."""
    asked: list[list[str]] = []
    whole, batches = pq.ParquetFile.read_row_group, pq.ParquetFile.iter_batches

    def read_row_group(self: Any, group: int, columns: list[str], **options: Any) -> pa.Table:
        asked.append(columns)
        return whole(self, group, columns=columns, **options)

    def iter_batches(self: Any, size: int, groups: list[int], columns: list[str], **options: Any) -> Any:
        asked.append(columns)
        return batches(self, size, groups, columns=columns, **options)

    monkeypatch.setattr(pq.ParquetFile, "read_row_group", read_row_group)
    monkeypatch.setattr(pq.ParquetFile, "iter_batches", iter_batches)
    return asked


@given(
    rows=st.integers(0, 60),
    group=st.integers(1, 25),
    max_rows=st.integers(1, 30),
    edges=st.tuples(st.integers(0, 60), st.integers(0, 60)),
    slice_bytes=st.sampled_from([1, 100, 1 << 20]),
)
def test_row_i_is_row_i_whatever_the_row_groups_and_slices(
    tmp_path_factory: pytest.TempPathFactory,
    rows: int,
    group: int,
    max_rows: int,
    edges: tuple[int, int],
    slice_bytes: int,
) -> None:
    path = tmp_path_factory.mktemp("rows") / "t.parquet"
    table = pa.table({"x": range(rows), "s": [["a"] * (k % 3) for k in range(rows)]})
    pq.write_table(table, path, row_group_size=group)
    opened, schema, fragments = scanned(path)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(connectors.parquet, "SLICE_BYTES", slice_bytes)
        patch.setattr(connectors.parquet, "SLICE_BYTES_PER_COLUMN", 0)
        first = 0
        for fragment in fragments:
            start, stop = sorted(min(edge, fragment.rows) for edge in edges)
            chunks = list(Parquet().read(opened, fragment, schema, start, stop, max_rows))
            assert all(0 < chunk.batch.num_rows <= max_rows for chunk in chunks)
            got = pa.Table.from_batches([chunk.batch for chunk in chunks], schema)
            assert got.to_pydict() == table.slice(first + start, stop - start).to_pydict()
            first += fragment.rows
    assert first == rows


def test_only_the_leaves_that_are_wanted_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    item = pa.struct([("x", pa.int64()), ("y", pa.int64())])
    schema = pa.schema(
        [
            ("a", pa.int64()),
            ("s", pa.struct([("p", pa.int64()), ("q", pa.struct([("r", pa.int64()), ("t", pa.string())]))])),
            ("m", pa.map_(pa.string(), pa.int64())),
            ("l", pa.list_(item)),
            ("z", pa.string()),
        ]
    )
    row = {"a": 1, "s": {"p": 2, "q": {"r": 3, "t": "4"}}, "m": [("k", 5)], "l": [{"x": 6, "y": 7}], "z": "8"}
    pq.write_table(pa.Table.from_pylist([row, {}], schema), tmp_path / "n.parquet")
    asked = spy_reads(monkeypatch)

    def read(*wanted: pa.Field[Any]) -> list[dict[str, Any]]:
        asked.clear()
        return table_of(tmp_path / "n.parquet", pa.schema(wanted)).to_pylist()

    assert read(pa.field("z", pa.string()), schema.field("a")) == [{"z": "8", "a": 1}, {"z": None, "a": None}]
    assert sorted(asked[0]) == ["a", "z"]
    deep = pa.field("s", pa.struct([("q", pa.struct([("t", pa.string())]))]))
    assert read(deep) == [{"s": {"q": {"t": "4"}}}, {"s": None}]
    assert asked == [["s.q.t"]]
    assert read(pa.field("l", pa.list_(pa.struct([("y", pa.int64())])))) == [{"l": [{"y": 7}]}, {"l": None}]
    assert asked == [["l.list.element.y"]]
    assert read(schema.field("m")) == [{"m": [("k", 5)]}, {"m": None}]
    assert asked == [["m.key_value.key", "m.key_value.value"]]
    lacking = pa.field("s", pa.struct([("new", pa.int8())]))
    assert read(lacking) == [{"s": {"new": None}}, {"s": None}]
    assert read(pa.field("nowhere", pa.int8())) == [{"nowhere": None}] * 2
    assert asked == []


def test_names_with_dots_are_columns_of_their_own(tmp_path: Path) -> None:
    table = pa.table(
        {"a.b": [1, 2], "a": [{"b": 3}, {"b": 4}], "a.b.c": ["x", "y"], "a b": [5, 6], "": [7, 8]}
    )
    pq.write_table(table, tmp_path / "d.parquet")
    for name in table.column_names:
        assert table_of(tmp_path / "d.parquet", pa.schema([table.schema.field(name)])).equals(
            table.select([name])
        )


ROWS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "half": (pa.float16(), [0.5, None, -2.0]),
    "double": (pa.float64(), [0.1, None, 1e300]),
    "big": (pa.int64(), [2**63 - 1, None, -(2**63)]),
    "unsigned": (pa.uint64(), [2**64 - 1, None, 0]),
    "flag": (pa.bool_(), [True, None, False]),
    "moment": (pa.timestamp("us", "UTC"), [datetime.fromisoformat("2024-02-29T12:00:00+00:00"), None, None]),
    "nanos": (pa.timestamp("ns"), [1_700_000_000_123_456_789, None, 0]),
    "day": (pa.date32(), [date(1969, 12, 31), None, date(2024, 2, 29)]),
    "money": (pa.decimal128(20, 2), [None, None, None]),
    "text": (pa.large_string(), ["é", None, ""]),
    "bytes": (pa.binary(), [b"\x00\xff", None, b""]),
    "fixed": (pa.list_(pa.int32(), 2), [[1, 2], None, [3, 4]]),
    "ragged": (pa.list_(pa.list_(pa.string())), [[["a"], []], None, [["b", None, "c"]]]),
    "record": (
        pa.struct([("a", pa.int8()), ("b", pa.list_(pa.float32()))]),
        [{"a": 1, "b": [1.5]}, None, {}],
    ),
    "tensor": (pa.fixed_shape_tensor(pa.int16(), (2, 1)), [[1, 2], None, [3, 4]]),
    "empty": (pa.null(), [None, None, None]),
}


@pytest.mark.parametrize("max_rows", [1, 2, 100])
def test_every_type_comes_back_as_it_was_written(tmp_path: Path, max_rows: int) -> None:
    columns: dict[str, pa.Array[Any]] = {}
    for name, (kind, values) in ROWS.items():
        if isinstance(kind, pa.FixedShapeTensorType):
            storage = pa.array(values, kind.storage_type)
            columns[name] = pa.ExtensionArray.from_storage(kind, storage)
        else:
            columns[name] = pa.array(values, kind)
    table = pa.table(columns)
    pq.write_table(table, tmp_path / "t.parquet")
    got = table_of(tmp_path / "t.parquet", max_rows=max_rows)
    assert got.schema == table.schema
    assert got.combine_chunks().equals(table)


def test_dictionaries_are_delivered_as_their_values(tmp_path: Path) -> None:
    words = pa.array(["a", None, "b", "a"]).dictionary_encode()
    path = tmp_path / "d.parquet"
    pq.write_table(pa.table({"w": words, "l": pa.array([["x"]] * 4)}), path, row_group_size=2)
    got = table_of(path)
    assert got.schema == pa.schema([("w", pa.string()), ("l", pa.list_(pa.string()))])
    assert got["w"].to_pylist() == ["a", None, "b", "a"]
    encoded = pa.schema([("w", pa.dictionary(pa.int32(), pa.string()))])
    assert table_of(path, encoded)["w"].to_pylist() == ["a", None, "b", "a"]


def test_a_file_with_narrower_types_widens_and_a_column_of_another_type_is_an_error(tmp_path: Path) -> None:
    pq.write_table(pa.table({"x": pa.array([1, 2], pa.int32()), "n": pa.nulls(2)}), tmp_path / "t.parquet")
    types: dict[str, pa.DataType] = {"n": pa.string(), "x": pa.int64(), "new": pa.float32()}
    schema = pa.schema(types)
    assert table_of(tmp_path / "t.parquet", schema).to_pylist() == [
        {"n": None, "x": 1, "new": None},
        {"n": None, "x": 2, "new": None},
    ]
    with pytest.raises(DataError, match=r"t\.parquet.*'x' is int32, which does not fit string") as caught:
        table_of(tmp_path / "t.parquet", pa.schema([("x", pa.string())]))
    assert "compatible" in caught.value.hint


def test_files_without_rows_or_columns_are_read(tmp_path: Path) -> None:
    pq.write_table(pa.table({"x": pa.array([], pa.int32())}), tmp_path / "rows.parquet")
    opened, schema, fragments = scanned(tmp_path / "rows.parquet")
    assert schema == pa.schema([("x", pa.int32())])
    assert sum(fragment.rows for fragment in fragments) == 0
    assert [c for f in fragments for c in Parquet().read(opened, f, schema, 0, 0, 10)] == []
    pq.write_table(pa.table({"x": [1, 2, 3]}).select([]), tmp_path / "columns.parquet")
    opened, schema, fragments = scanned(tmp_path / "columns.parquet")
    assert len(schema) == 0
    assert sum(fragment.rows for fragment in fragments) in (0, 3)


def test_column_names_that_occur_twice_are_an_error_of_the_scan(tmp_path: Path) -> None:
    twice = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"])
    pq.write_table(twice, tmp_path / "t.parquet")
    with pytest.raises(DataError, match=r"t\.parquet: column 'a' occurs 2 times") as caught:
        scanned(tmp_path / "t.parquet")
    assert "rename" in caught.value.hint


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda good: b"", "it is empty"),
        (lambda good: b"PAR1", "only 4 bytes"),
        (lambda good: good[:-1], "it ends with"),
        (lambda good: good[: len(good) // 2], "it ends with"),
        (lambda good: b"a,b\n1,2\n" * 9, "it ends with"),
        (lambda good: good[:-4] + b"PARE", "encrypted"),
        (lambda good: good[:-8] + b"\xff\xff\xff\x7f" + b"PAR1", "footer of 2,147,483,647 bytes"),
        (lambda good: good[:-200] + b"\xaa" * 192 + good[-8:], "cannot be read as Parquet"),
        (lambda good: b"PAR1" + (0).to_bytes(4, "little") + b"PAR1", "cannot be read as Parquet"),
    ],
)
def test_a_damaged_footer_is_an_error_that_names_the_file(tmp_path: Path, damage: Any, said: str) -> None:
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"x": range(100)}), path)
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(DataError, match=said) as caught:
        scanned(path)
    assert caught.value.file == str(path)
    assert caught.value.hint


def test_damaged_pages_are_an_error_that_names_the_file(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"x": np.arange(10_000)}), path, compression="zstd", use_dictionary=False)
    good = path.read_bytes()
    path.write_bytes(good[:40] + b"\xff" * 4000 + good[4040:])
    with pytest.raises(DataError, match="cannot be read as Parquet") as caught:
        table_of(path)
    assert caught.value.file == str(path)


def test_a_file_that_was_written_again_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"x": range(10)}), path, row_group_size=5)
    opened, schema, fragments = scanned(path)
    for rows in (4, 12):
        pq.write_table(pa.table({"x": range(rows)}), path, row_group_size=6)
        now = Opened(opened.store, resolve(path).files, {})
        with pytest.raises(DataError, match=r"row group 1 with 5 rows is not in it") as caught:
            list(Parquet().read(now, fragments[1], schema, 0, 5, 10))
        assert "begin anew with flow.read(...)" in caught.value.hint


def test_a_store_that_fails_in_the_middle_is_no_fault_of_the_data(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"x": range(10)}), path)
    opened, schema, fragments = scanned(path)

    def broken(*_: Any, **__: Any) -> None:
        raise ConnectionResetError(104, "the peer has gone")

    monkeypatch.setattr(pq.ParquetFile, "read_row_group", broken)
    with pytest.raises(ConnectorError, match="the peer has gone") as caught:
        list(Parquet().read(opened, fragments[0], schema, 0, 10, 10))
    assert "connection" in caught.value.hint


def test_a_footer_is_parsed_once_for_all_the_row_groups_of_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"x": range(100)}), path, row_group_size=10)
    parsed: list[int] = []
    real = pq.read_metadata

    def noted(source: pa.NativeFile) -> pq.FileMetaData:
        parsed.append(1)
        return real(source)

    monkeypatch.setattr(pq, "read_metadata", noted)
    connector = Parquet()
    opened, schema, fragments = scanned(path, connector)
    for fragment in fragments:
        list(connector.read(opened, fragment, schema, 0, 10, 10))
    assert len(parsed) == 1
    list(pickle.loads(pickle.dumps(connector)).read(opened, fragments[0], schema, 0, 10, 10))
    assert len(parsed) == 2


def test_a_large_footer_costs_two_requests_and_a_small_one_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads: list[int] = []
    real = Store.read

    def noted(store: Store, *range_of: Any) -> pa.Buffer:
        reads.append(1)
        return real(store, *range_of)

    monkeypatch.setattr(Store, "read", noted)
    pq.write_table(pa.table({"x": [1]}), tmp_path / "small.parquet")
    scanned(tmp_path / "small.parquet")
    assert len(reads) == 1
    wide = {f"column with a long name, number {k:05d}": [k] for k in range(1500)}
    pq.write_table(pa.table(wide), tmp_path / "wide.parquet")
    assert len(scanned(tmp_path / "wide.parquet")[1]) == 1500
    assert len(reads) == 3


NESTED_TOO_LARGE = "Nested data conversions not implemented for chunked array outputs"


@pytest.mark.parametrize("fits", [1, 3, 7])
def test_nested_values_too_large_for_one_array_are_read_in_smaller_slices(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fits: int
) -> None:
    path = tmp_path / "t.parquet"
    table = pa.table({"x": [[str(k)] * 3 for k in range(20)]})
    pq.write_table(table, path)
    real = pq.ParquetFile.iter_batches

    def whole(*_: Any, **__: Any) -> None:
        raise pa.ArrowNotImplementedError(NESTED_TOO_LARGE)

    def batches(self: Any, size: int, *where: Any, **options: Any) -> Any:
        yielded = 0
        for batch in real(self, size, *where, **options):
            # Small values first: the failure comes in the middle of the row group.
            if batch.num_rows > fits and yielded >= 10:
                raise pa.ArrowNotImplementedError(NESTED_TOO_LARGE)
            yielded += batch.num_rows
            yield batch

    monkeypatch.setattr(pq.ParquetFile, "read_row_group", whole)
    monkeypatch.setattr(pq.ParquetFile, "iter_batches", batches)
    assert table_of(path).equals(table)
    assert table_of(path, max_rows=10).equals(table)


def test_slices_are_as_small_as_the_rows_of_their_own_row_group_demand(tmp_path: Path) -> None:
    path, rows, wide = tmp_path / "t.parquet", 500, 20_000
    schema = pa.schema([("text", pa.string())])
    with pq.ParquetWriter(path, schema, use_dictionary=False) as writer:
        writer.write_table(pa.table({"text": ["a"] * rows}, schema))
        writer.write_table(pa.table({"text": ["a" * wide] * rows}, schema))
    opened, schema, fragments = scanned(path)
    small, large = (
        [chunk.batch.nbytes for chunk in Parquet().read(opened, fragment, schema, 0, rows, rows)]
        for fragment in fragments
    )
    assert len(small) == 1
    assert sum(large) >= rows * wide
    assert max(large) < 2 * connectors.parquet.SLICE_BYTES


def _dictionary_texts(
    path: Path, sizes: Sequence[int], rows: int
) -> tuple[Opened, pa.Schema, list[Fragment]]:
    """Row groups of texts, of 20 different ones in each group; so many bytes each."""
    schema = pa.schema([("text", pa.string())])
    with pq.ParquetWriter(path, schema) as writer:
        for size in sizes:
            texts = [chr(97 + row % 20) * size for row in range(rows)]
            writer.write_table(pa.table({"text": texts}, schema))
    return scanned(path)


def _slices(
    connector: Parquet, opened: Opened, fragment: Fragment, schema: pa.Schema
) -> list[pa.RecordBatch]:
    rows = fragment.rows
    return [chunk.batch for chunk in connector.read(opened, fragment, schema, 0, rows, rows)]


def test_slices_of_text_that_a_dictionary_hides_are_small(tmp_path: Path) -> None:
    opened, schema, fragments = _dictionary_texts(tmp_path / "t.parquet", [1, 20_000], 1_000)
    connector = Parquet()
    small, large = (_slices(connector, opened, fragment, schema) for fragment in fragments)
    assert [batch.num_rows for batch in small] == [1_000]
    assert max(batch.nbytes for batch in large) < connectors.parquet.FAR * connectors.parquet.SLICE_BYTES
    assert [len(text) for batch in large for text in batch.to_pydict()["text"]] == [20_000] * 1_000


def test_slices_become_smaller_where_rows_of_a_row_group_grow(tmp_path: Path) -> None:
    path, slice_bytes = tmp_path / "t.parquet", connectors.parquet.SLICE_BYTES
    texts = ["a"] * 300 + [chr(97 + row % 4) * 200_000 for row in range(400)]
    pq.write_table(pa.table({"text": texts}), path)
    opened, schema, (fragment,) = scanned(path)
    slices = _slices(Parquet(), opened, fragment, schema)
    assert [text for batch in slices for text in batch.to_pydict()["text"]] == texts
    # Nothing says so in front of the first.
    assert sum(batch.nbytes > connectors.parquet.FAR * slice_bytes for batch in slices) == 1


def test_a_row_group_of_small_text_is_read_at_once_when_one_like_it_has_been_read(tmp_path: Path) -> None:
    opened, schema, fragments = _dictionary_texts(tmp_path / "t.parquet", [100] * 3 + [20_000], 5_000)
    connector = Parquet()
    slices = [len(_slices(connector, opened, fragment, schema)) for fragment in fragments]
    assert slices[0] == -(-5_000 // connectors.parquet.UNKNOWN_ROWS)
    assert slices[1:3] == [1, 1]
    # The footer of the last one is another one: nothing is concluded from small text.
    assert slices[3] > 20
    again = pickle.loads(pickle.dumps(connector))
    assert len(_slices(again, opened, fragments[0], schema)) == 1


@pytest.mark.parametrize("max_rows", [1000, 1_000_000])
def test_a_row_group_larger_than_memory_should_be_is_streamed(tmp_path: Path, max_rows: int) -> None:
    path = tmp_path / "big.parquet"
    tokens = np.random.default_rng(0).integers(0, 50_000, 512 * 40_000).astype(np.int32)
    table = pa.table({"tokens": pa.FixedSizeListArray.from_arrays(pa.array(tokens), 512)})
    pq.write_table(table, path, row_group_size=len(table), compression="zstd")
    program = (
        "import resource, sys\n"
        "from connectors.contract import Fragment, Opened\n"
        "from connectors.parquet import Parquet\n"
        "from connectors.paths import resolve\n"
        "listing, connector = resolve(sys.argv[1]), Parquet()\n"
        "scan = connector.scan(listing.store, listing.files)\n"
        "opened = Opened(listing.store, listing.files, {})\n"
        "fragment = Fragment(0, 0, 1, int(scan.rows[0]))\n"
        "peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "next(connector.read(opened, fragment, scan.schema, 0, 10, 10))\n"
        "before = peak()\n"
        "chunks = connector.read(opened, fragment, scan.schema, 0, fragment.rows, int(sys.argv[2]))\n"
        "print(sum(c.batch.num_rows for c in chunks), peak() - before)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(path), str(max_rows)],
        check=True,
        capture_output=True,
        env={"PYTHONPATH": ":".join(p for p in sys.path if p)},
    )
    rows, grown_kb = map(int, done.stdout.split())
    assert rows == 40_000
    # The rows are 80 MB decoded and take some 350 MB if they are decoded at once.
    assert grown_kb < 60_000


def pruned(path: Path, expression: pc.Expression) -> list[bool]:
    opened, _, fragments = scanned(path)
    connector = Parquet()
    assert isinstance(connector, Prunes)
    return [bool(kept) for kept in connector.prune(opened, fragments, expression)]


def test_a_filter_leaves_out_row_groups_whose_statistics_exclude_it(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    table = pa.table({"x": [1, 2, 10, 20, 30, None], "s": ["a", "b", "c", "d", "e", "f"]})
    pq.write_table(table, path, row_group_size=2)
    x, s = pc.field("x"), pc.field("s")
    assert pruned(path, x > 15) == [False, True, True]
    assert pruned(path, (x > 15) & (s == "c")) == [False, True, False]
    assert pruned(path, s.isin(["a", "f"])) == [True, False, True]
    assert pruned(path, x.is_null()) == [False, False, True]
    assert pruned(path, x == 2.0) == [True, False, False]
    assert pruned(path, pc.field("nowhere") > 3) == [True, True, True]
    # Arrow takes no statistics from a column that was a dictionary when it was written.
    pq.write_table(pa.table({"s": table["s"].dictionary_encode()}), path, row_group_size=2)
    assert pruned(path, s == "c") == [True, True, True]


@pytest.mark.parametrize(
    "expression",
    [
        pc.field("x") != 5,
        ~(pc.field("x") == 5),
        pc.field("x").is_nan(),
        ~(pc.field("x") <= 5),
        pc.field("x") > 5,
    ],
    ids=str,
)
def test_statistics_that_leave_out_nan_prove_nothing(tmp_path: Path, expression: pc.Expression) -> None:
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"x": [5.0, float("nan"), 5.0], "y": [1, 1, 1]}), path)
    assert pruned(path, expression) == [True]
    assert pruned(path, pc.field("y") == 2) == [False]


@given(
    groups=st.lists(st.lists(st.none() | st.integers(-3, 3), min_size=1, max_size=4), min_size=1, max_size=4),
    bound=st.integers(-4, 4),
    which=st.sampled_from(["==", "!=", "<", ">=", "not <", "null", "not null", "in"]),
)
def test_no_row_group_that_has_a_match_is_left_out(
    tmp_path_factory: pytest.TempPathFactory, groups: list[list[int | None]], bound: int, which: str
) -> None:
    path = tmp_path_factory.mktemp("prune") / "t.parquet"
    schema = pa.schema([("x", pa.int32())])
    with pq.ParquetWriter(path, schema) as writer:
        for group in groups:
            writer.write_table(pa.table({"x": group}, schema))
    x = pc.field("x")
    expressions: dict[str, pc.Expression] = {
        "==": x == bound,
        "!=": x != bound,
        "<": x < bound,
        ">=": x >= bound,
        "not <": ~(x < bound),
        "null": x.is_null(),
        "not null": pc.is_valid(x),
        "in": x.isin([bound, bound + 1]),
    }
    expression = expressions[which]
    kept = pruned(path, expression)
    for group, keep in zip(groups, kept, strict=True):
        has_match = pa.table({"x": group}, schema).filter(expression).num_rows > 0
        assert keep or not has_match


def test_pruning_answers_for_the_fragments_asked_for_in_their_order(tmp_path: Path) -> None:
    for name, start in (("a", 0), ("b", 100)):
        pq.write_table(
            pa.table({"x": range(start, start + 4)}), tmp_path / f"{name}.parquet", row_group_size=2
        )
    opened, _, fragments = scanned(tmp_path)
    asked: Sequence[Fragment] = [fragments[k] for k in (3, 0, 2, 1)]
    assert Parquet().prune(opened, asked, pc.field("x") >= 102).tolist() == [True, False, False, False]
    assert Parquet().prune(opened, [], pc.field("x") >= 102).tolist() == []


def test_a_small_file_is_read_with_one_request(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"x": range(10), "y": range(10)}), path)
    opened, schema, fragments = scanned(path)
    asked: list[FileInfo | str] = []
    real = Store.open

    def opening(store: Store, file: FileInfo | str, **options: bool) -> pa.NativeFile:
        asked.append(file)
        return real(store, file, **options)

    monkeypatch.setattr(Store, "open", opening)
    (chunk,) = Parquet().read(opened, fragments[0], schema, 0, 10, 10)
    assert chunk.batch.to_pydict() == {"x": [*range(10)], "y": [*range(10)]}
    assert asked == [opened.files[0]]


def test_each_file_is_read_by_its_own_schema_whatever_came_before_it(tmp_path: Path) -> None:
    tables = [
        pa.table({"a": [1], "b": ["x"]}),
        pa.table({"b": ["y"], "a": [2]}),
        pa.table({"a": pa.array([3], pa.int32()), "b": pa.array(["z"], pa.large_string())}),
        pa.table({"b": pa.array([None], pa.string()), "c": [4]}),
    ]
    for number, table in enumerate([*tables, *tables[::-1]]):
        pq.write_table(table, tmp_path / f"{number}.parquet")
    found = table_of(tmp_path)
    once = [(1, "x"), (2, "y"), (3, "z"), (None, None)]
    assert list(zip(*(found[name].to_pylist() for name in "ab"), strict=True)) == once + once[::-1]
