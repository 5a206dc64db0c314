from __future__ import annotations

import gzip
import json
import math
from collections.abc import Iterator
from datetime import date, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import connectors.jsonl
import dataflow as flow
from connectors.contract import Chunk, Connector, FileInfo, Fragment, Opened, Scan
from connectors.json_rows import Part, parse
from connectors.jsonl import Jsonl
from connectors.store import Store
from dataflow.errors import DataError, PlanError

STORE = Store()


def save(folder: Path, content: bytes, name: str = "a.jsonl") -> FileInfo:
    path = folder / name
    path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    return FileInfo(str(path), path.stat().st_size)


def lines(*rows: object) -> bytes:
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


def fragments(scan: Scan) -> list[Fragment]:
    columns = (scan.file, scan.offset, scan.length, scan.rows)
    return [Fragment(*row) for row in zip(*(c.tolist() for c in columns), strict=True)]


def chunks(jsonl: Jsonl, info: FileInfo, schema: pa.Schema | None = None) -> list[Chunk]:
    scan = jsonl.scan(STORE, [info])
    opened = Opened(STORE, [info], scan.meta)
    schema = scan.schema if schema is None else schema
    return [c for f in fragments(scan) for c in jsonl.read(opened, f, schema, 0, f.rows, 1000)]


def rows(jsonl: Jsonl, info: FileInfo, schema: pa.Schema | None = None) -> list[dict[str, object]]:
    found = chunks(jsonl, info, schema)
    assert not any(chunk.bad for chunk in found)
    return [row for chunk in found for row in chunk.batch.to_pylist()]


def faults(chunk: Chunk) -> list[tuple[int, str]]:
    return [(bad.row, str(bad.error)) for bad in chunk.bad]


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connectors.jsonl, "_BLOCK_BYTES", 64)


def test_jsonl_is_a_connector() -> None:
    assert isinstance(Jsonl(), Connector)


def test_lines_are_rows_and_names_are_columns(tmp_path: Path) -> None:
    values = [
        {"id": 1, "x": 0.5, "text": "ü", "ok": True, "tags": ["a"], "who": {"name": "n", "n": [[1]]}},
        {"id": 2**63 - 1, "x": 2, "text": "", "ok": False, "tags": [], "who": {"name": None, "n": []}},
    ]
    info = save(tmp_path, lines(*values))
    assert rows(Jsonl(), info) == values
    assert Jsonl().scan(STORE, [info]).schema.field("id").type == pa.int64()


@pytest.mark.parametrize(
    "content",
    [
        b'{"a":1}\n{"a":2}',
        b'{"a":1}\r\n{"a":2}\r\n',
        b'\xef\xbb\xbf{"a":1}\n{"a":2}\n',
        b'\n\n{"a":1}\n \t\r\n\n  {"a":2}  \n\n',
        b'\xef\xbb\xbf\r\n{"a":1}\n{"a":2}\n\r\n',
    ],
)
@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.gz"])
def test_line_ends_blank_lines_and_byte_order_marks_are_no_data(
    tmp_path: Path, content: bytes, name: str
) -> None:
    info = save(tmp_path, content, name)
    assert Jsonl().scan(STORE, [info]).rows.tolist() == [2]
    assert rows(Jsonl(), info) == [{"a": 1}, {"a": 2}]


@pytest.mark.parametrize("content", [b"", b"\n", b" \r\n\n", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.gz"])
def test_a_file_without_rows_is_fine(tmp_path: Path, content: bytes, name: str) -> None:
    scan = Jsonl().scan(STORE, [save(tmp_path, content, name)])
    assert len(scan.rows) == 0
    assert len(scan.schema) == 0


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize(
    ("first", "later", "kind", "read"),
    [
        (None, "text", pa.string(), None),
        (1, 0.5, pa.float64(), 1.0),
        (1, 2**63, pa.float64(), 1.0),
        ("2024-01-02", "no date", pa.string(), "2024-01-02"),
        ("2024-01-02", "2024-01-02T03:04:05.5", pa.string(), "2024-01-02"),
        ([], ["x"], pa.list_(pa.string()), []),
        ([1], [0.5], pa.list_(pa.float64()), [1.0]),
        ({"b": 1}, {"c": "x"}, pa.struct([("b", pa.int64()), ("c", pa.string())]), {"b": 1, "c": None}),
        ({"b": [{}]}, {"b": [{"c": True}]}, None, {"b": [{"c": None}]}),
    ],
)
def test_types_are_those_of_all_the_blocks(
    tmp_path: Path, first: object, later: object, kind: pa.DataType | None, read: object
) -> None:
    info = save(tmp_path, lines(*[{"a": first}] * 20, *[{"a": later}] * 20, {"a": first}))
    scan = Jsonl().scan(STORE, [info])
    assert len(scan.rows) > 2
    found = rows(Jsonl(), info)
    assert [found[k]["a"] for k in (0, 40)] == [read, read]
    if kind is not None and (first, later) != ("2024-01-02", "2024-01-02T03:04:05.5"):
        assert scan.schema.field("a").type == kind


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.gz"])
@pytest.mark.parametrize(
    ("first", "later", "column"),
    [
        (1, "x", "'a'"),
        ("x", 1, "'a'"),
        (True, 1, "'a'"),
        ({"b": 1}, {"b": [1]}, "'a.b'"),
        ([1], ["x"], r"'a.\[\]'"),
    ],
)
def test_types_that_do_not_go_together_are_an_error_that_names_line_and_column(
    tmp_path: Path, name: str, first: object, later: object, column: str
) -> None:
    good = lines(*[{"a": first}] * 20) + b"\n" + lines(*[{"a": None}] * 20)
    info = save(tmp_path, good + lines(*[{"a": later}] * 20), name)
    with pytest.raises(
        DataError, match=f"{name}, byte {len(good)}: column {column} is .* in line 42"
    ) as caught:
        Jsonl().scan(STORE, [info])
    assert "schema" in caught.value.hint


def test_types_that_clash_inside_one_block_are_an_error(tmp_path: Path) -> None:
    info = save(tmp_path, lines({"a": 1}, {"a": 2}, {"a": "x"}, {"a": 3}))
    with pytest.raises(DataError, match="column 'a' is string in line 3, and int64 before"):
        Jsonl().scan(STORE, [info])


@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.gz"])
@pytest.mark.parametrize(
    "wrong",
    [
        b'{"a": 1',
        b"oops",
        b"null",
        b"5",
        b"[1]",
        b'"a"',
        b'{"a": 1} {"a": 2}',
        b'{"a": 1} null',
        b'{"a": 1, "a": 2}',
        b'{"a": "\xff"}',
        b'{"a": "\xed\xa0\x80"}',
        b'{"a": "\\ud800"}',
        b'{"a": 1e999}',
        b'{"a": 1,}',
        b"{'a': 1}",
        b"\0",
        b'{"a":' + b"[" * 200_000 + b"]" * 200_000 + b"}",
    ],
    ids=lambda wrong: repr(wrong[:20]),
)
def test_a_malformed_line_is_a_bad_row_between_good_ones(tmp_path: Path, wrong: bytes, name: str) -> None:
    before, after = lines(*({"a": k} for k in range(5))), lines(*({"a": k} for k in range(6, 9)))
    info = save(tmp_path, before + wrong + b"\n" + after, name)
    assert Jsonl().scan(STORE, [info]).rows.tolist() == [9]
    (chunk,) = chunks(Jsonl(), info)
    assert chunk.batch.column("a").to_pylist() == [0, 1, 2, 3, 4, None, 6, 7, 8]
    (bad,) = chunk.bad
    assert bad.row == 5
    assert isinstance(bad.error, DataError)
    assert bad.error.file == info.path
    assert bad.error.hint
    if name == "a.jsonl":
        assert bad.error.offset == len(before)
    else:
        assert bad.error.row == 5


def test_a_malformed_first_or_last_line_is_a_bad_row(tmp_path: Path) -> None:
    (chunk,) = chunks(Jsonl(), save(tmp_path, b'null\n{"a": 1}\n{"a": 2'))
    assert chunk.batch.to_pylist() == [{"a": None}, {"a": 1}, {"a": None}]
    assert [row for row, _ in faults(chunk)] == [0, 2]


def test_bad_rows_keep_their_place_in_ranges_and_chunks(tmp_path: Path) -> None:
    info = save(tmp_path, lines({"a": 0}, {"a": 1}) + b"x\n" + lines({"a": 3}) + b"y\n" + lines({"a": 5}))
    scan = Jsonl().scan(STORE, [info])
    (fragment,) = fragments(scan)
    found = list(Jsonl().read(Opened(STORE, [info], {}), fragment, scan.schema, 1, 6, 2))
    assert [chunk.batch.column("a").to_pylist() for chunk in found] == [[1, None], [3, None], [5]]
    assert [[bad.row for bad in chunk.bad] for chunk in found] == [[1], [1], []]


def test_only_columns_asked_for_are_read_and_a_field_may_be_missing(tmp_path: Path) -> None:
    info = save(tmp_path, lines({"a": 1, "b": {"x": 1, "y": 2}}, {"c": "z"}))
    wanted = pa.schema([("c", pa.string()), ("b", pa.struct([("y", pa.int64())]))])
    assert rows(Jsonl(), info, wanted) == [{"c": None, "b": {"y": 2}}, {"c": "z", "b": None}]


def test_without_columns_the_rows_are_counted(tmp_path: Path) -> None:
    (chunk,) = chunks(Jsonl(), save(tmp_path, lines({"a": 1}, {"a": 2}) + b"x\n"), pa.schema([]))
    assert (chunk.batch.num_rows, chunk.batch.num_columns) == (3, 0)
    assert [row for row, _ in faults(chunk)] == [2]


def test_a_file_is_read_with_the_wider_types_of_its_source(tmp_path: Path) -> None:
    info = save(tmp_path, lines({"a": 1, "b": None, "c": "2024-01-02"}))
    wanted = pa.schema(
        [("a", pa.float64()), ("b", pa.list_(pa.string())), ("c", pa.string()), ("d", pa.bool_())]
    )
    assert rows(Jsonl(), info, wanted) == [{"a": 1.0, "b": None, "c": "2024-01-02", "d": None}]


def test_iso_times_are_timestamps_in_utc(tmp_path: Path) -> None:
    info = save(tmp_path, lines({"t": "2024-01-02T03:04:05Z"}, {"t": "2024-01-03"}))
    assert Jsonl().scan(STORE, [info]).schema.field("t").type == pa.timestamp("s")
    assert [row["t"] for row in rows(Jsonl(), info)] == [datetime(2024, 1, 2, 3, 4, 5), datetime(2024, 1, 3)]


def test_nan_and_infinity_are_numbers(tmp_path: Path) -> None:
    found = [row["a"] for row in rows(Jsonl(), save(tmp_path, lines({"a": math.nan}, {"a": -math.inf})))]
    assert math.isnan(found[0])  # type: ignore[arg-type]
    assert found[1] == -math.inf


def test_a_schema_gives_the_types_and_makes_what_does_not_fit_bad_rows(tmp_path: Path) -> None:
    schema = pa.schema(
        [("v", pa.list_(pa.float32(), 2)), ("d", pa.date32()), ("k", pa.dictionary(pa.int32(), pa.string()))]
    )
    info = save(
        tmp_path,
        lines({"v": [1, 2], "d": "2024-01-02", "k": "x"}, {"v": [1]}, {"d": "soon"}, {"k": 3}, {}),
    )
    (chunk,) = chunks(Jsonl(schema=schema), info)
    assert chunk.batch.schema == schema
    assert chunk.batch.to_pylist()[0] == {"v": [1.0, 2.0], "d": date(2024, 1, 2), "k": "x"}
    assert [row for row, _ in faults(chunk)] == [1, 2, 3]


def test_extra_fields_are_bad_rows_or_left_out_by_policy(tmp_path: Path) -> None:
    schema = pa.schema([("a", pa.int64()), ("b", pa.int64())])
    info = save(tmp_path, lines({"a": 1, "b": 2}, {"a": 3, "z": 4}))
    (chunk,) = chunks(Jsonl(schema=schema), info, pa.schema([("a", pa.int64())]))
    assert chunk.batch.to_pylist() == [{"a": 1}, {"a": None}]
    ((row, message),) = faults(chunk)
    assert row == 1
    assert "unexpected field" in message
    assert rows(Jsonl(schema=schema, extra="ignore"), info) == [{"a": 1, "b": 2}, {"a": 3, "b": None}]


def test_a_column_that_arrow_cannot_cast_to_its_own_type_stands_beside_one_that_is_cast(
    tmp_path: Path,
) -> None:
    unknown = pa.list_(pa.struct([("b", pa.int64()), ("n", pa.null())]))
    info = save(tmp_path, lines({"a": [{"b": 1, "n": None}, {"b": 2}], "d": "2024-01-02"}))
    (row,) = rows(Jsonl(schema=pa.schema([("a", unknown), ("d", pa.date32())])), info)
    assert row == {"a": [{"b": 1, "n": None}, {"b": 2, "n": None}], "d": date(2024, 1, 2)}


def test_null_in_a_column_that_must_not_be_null_is_a_bad_row(tmp_path: Path) -> None:
    schema = pa.schema([pa.field("a", pa.int64(), nullable=False)])
    (chunk,) = chunks(Jsonl(schema=schema), save(tmp_path, lines({"a": 1}, {}, {"a": 3})))
    ((row, message),) = faults(chunk)
    assert row == 1
    assert "it has no value for 'a'" in message
    assert chunk.batch.column("a").to_pylist() == [1, None, 3]


@pytest.mark.usefixtures("small_blocks")
def test_a_line_longer_than_a_block_makes_a_larger_fragment(tmp_path: Path) -> None:
    values = [{"a": "x" * size} for size in (1, 500, 2, 3, 1000)]
    info = save(tmp_path, lines(*values)[:-1])
    assert max(Jsonl().scan(STORE, [info]).length) > 1000
    assert rows(Jsonl(), info) == values


def test_a_line_without_end_is_an_error_before_memory_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("connectors.lines._MAX_LINE_BYTES", 1000)
    monkeypatch.setattr(connectors.jsonl, "_BLOCK_BYTES", 64)
    with pytest.raises(DataError, match=r"a\.jsonl, byte 8: a line is longer than 1000 bytes") as caught:
        Jsonl().scan(STORE, [save(tmp_path, b'{"a":1}\n' + bytes(5000))])
    assert "one record a line" in caught.value.hint


def test_many_brackets_are_not_deep_and_brackets_in_text_are_none(tmp_path: Path) -> None:
    values = [{"a": [[k] for k in range(5000)], "s": "["}, {"a": [], "s": '\\"[{' * 5000}]
    assert rows(Jsonl(), save(tmp_path, lines(*values))) == values
    hidden = b'{"s":"' + b"]" * 5000 + b'","a":' + b"[" * 5000 + b"]" * 5000 + b"}\n"
    (chunk,) = chunks(Jsonl(), save(tmp_path, lines(*values) + hidden))
    assert "nests too deep" in str(chunk.bad[0].error)


def test_columns_that_nest_too_deep_for_an_index_are_an_error(tmp_path: Path) -> None:
    for deep in (100, 990):
        info = save(tmp_path, b'{"a":' + b"[" * deep + b"]" * deep + b"}\n")
        with pytest.raises(DataError, match=r"a\.jsonl, byte 0: .* deep") as caught:
            Jsonl().scan(STORE, [info])
        assert "schema" in caught.value.hint
        assert rows(Jsonl(schema=pa.schema([("b", pa.int64())]), extra="ignore"), info) == [{"b": None}]


@pytest.mark.parametrize(
    "content",
    [
        b"PAR1" + bytes(range(256)) * 10 + b"PAR1",
        b'[\n  {"a": 1},\n  {"a": 2}\n]\n'.replace(b"{", b"[").replace(b"}", b"]"),
        b"a,b\n1,2\n",
        '{"a": 1}\n'.encode("utf-16"),
        gzip.compress(b'{"a": 1}\n'),
        b"\0" * 5000,
    ],
    ids=["parquet", "array", "csv", "utf-16", "gzip", "zeros"],
)
def test_a_file_of_another_format_is_an_error(tmp_path: Path, content: bytes) -> None:
    for jsonl in (Jsonl(), Jsonl(schema=pa.schema([("a", pa.int64())]))):
        with pytest.raises(DataError, match=r"a\.jsonl, byte 0: the (first|only) line is wrong") as caught:
            jsonl.scan(STORE, [save(tmp_path, content)])
        assert "check the format" in caught.value.hint


@pytest.mark.parametrize("share", [0.5, 0.9])
def test_a_truncated_compressed_file_is_an_error(tmp_path: Path, share: float) -> None:
    info = save(tmp_path, lines(*({"a": k} for k in range(1000))), "a.jsonl.gz")
    path = Path(info.path)
    path.write_bytes(path.read_bytes()[: int(info.size * share)])
    with pytest.raises(DataError, match=r"a\.jsonl\.gz.*ends early") as caught:
        Jsonl().scan(STORE, [FileInfo(info.path, path.stat().st_size)])
    assert caught.value.hint


@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.gz"])
def test_a_file_that_was_changed_behind_its_index_is_an_error(tmp_path: Path, name: str) -> None:
    info = save(tmp_path, lines(*({"a": k} for k in range(9))), name)
    scan = Jsonl().scan(STORE, [info])
    (fragment,) = fragments(scan)
    for content in (lines({"a": 1}), lines(*({"a": k} for k in range(8)))):
        now = save(tmp_path, content, name)
        for seen in (info, FileInfo(now.path, now.size)):
            with pytest.raises(DataError, match=f"{name}: it has changed since it was indexed") as caught:
                list(Jsonl().read(Opened(STORE, [seen], {}), fragment, scan.schema, 0, 9, 100))
            assert "begin anew with flow.read(...)" in caught.value.hint


records = st.lists(
    st.fixed_dictionaries(
        {},
        optional={
            "n": st.integers(-(2**63), 2**63 - 1),
            "x": st.floats(allow_nan=False),
            "s": st.text(st.characters(exclude_categories=["Cs"])).map("_".__add__),
            "l": st.lists(st.booleans(), max_size=4),
        },
    ),
    max_size=30,
)


@given(
    values=records, block=st.integers(1, 300), name=st.sampled_from(["a.jsonl", "a.jsonl.gz"]), data=st.data()
)
def test_any_range_of_any_fragment_holds_the_rows_written(
    tmp_path_factory: pytest.TempPathFactory,
    values: list[dict[str, object]],
    block: int,
    name: str,
    data: st.DataObject,
) -> None:
    ascii_only = data.draw(st.booleans())
    text = "\n".join(json.dumps(value, ensure_ascii=ascii_only) for value in values)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(connectors.jsonl, "_BLOCK_BYTES", block)
        info = save(tmp_path_factory.mktemp("jsonl"), text.encode(), name)
        scan = Jsonl().scan(STORE, [info])
        assert scan.rows.sum() == len(values)
        row = 0
        for fragment in fragments(scan):
            start = data.draw(st.integers(0, fragment.rows))
            stop = data.draw(st.integers(start, fragment.rows))
            max_rows = data.draw(st.integers(1, 7))
            found = list(
                Jsonl().read(Opened(STORE, [info], {}), fragment, scan.schema, start, stop, max_rows)
            )
            assert all(0 < chunk.batch.num_rows <= max_rows and not chunk.bad for chunk in found)
            empty: dict[str, object] = dict.fromkeys(scan.schema.names)
            assert [r for chunk in found for r in chunk.batch.to_pylist()] == [
                empty | values[row + k] for k in range(start, stop)
            ]
            row += fragment.rows


@pytest.mark.parametrize(
    ("options", "hint"),
    [
        ({"extra": "drop"}, "'error' or 'ignore'"),
        ({"schema": pa.schema([("a", pa.int64()), ("a", pa.int64())])}, "each column once"),
        ({"schema": pa.schema([("a", pa.map_(pa.string(), pa.int64()))])}, "cast in the pipeline"),
    ],
)
def test_a_wrong_option_fails_at_once(options: dict[str, object], hint: str) -> None:
    with pytest.raises(PlanError) as caught:
        Jsonl(**options)  # type: ignore[arg-type]
    assert hint in caught.value.hint


def test_half_floats_are_kept(tmp_path: Path) -> None:
    schema = pa.schema([("a", pa.float16())])
    assert rows(Jsonl(schema=schema), save(tmp_path, lines({"a": 0.5}))) == [{"a": np.float16(0.5)}]


def test_a_row_of_digits_beyond_float64_is_no_infinite_number(tmp_path: Path) -> None:
    digits = b"9" * 400
    info = save(tmp_path, b'{"a": [{"b": 1.5}]}\n{"a": [{"b": ' + digits + b'}]}\n{"a": [{"b": Infinity}]}\n')
    (chunk,) = chunks(Jsonl(), info)
    assert chunk.batch.column(0).to_pylist() == [[{"b": 1.5}], None, [{"b": math.inf}]]
    ((row, error),) = faults(chunk)
    assert row == 1
    assert "a number is too large for 64 bits.\n" in error
    text = save(tmp_path, b'{"a": "' + digits + b'", "b": Infinity}\n')
    assert rows(Jsonl(), text) == [{"a": digits.decode(), "b": math.inf}]


def test_lines_that_have_few_of_many_fields_are_built_in_small_parts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # 4 MB of lines with 5 of 2,000 fields took 1.8 GB as one block.
    monkeypatch.setattr(connectors.jsonl, "_MOST_CELLS", 5_000)
    made = [{f"k{(7 * line + k) % 300}": line for k in range(3)} for line in range(2_000)]
    info = save(tmp_path, lines(*made))
    built: list[int] = []

    def noted(*args: Any) -> Iterator[Part]:
        for part in parse(*args):
            built.append(part.rows * (0 if part.table is None else part.table.num_columns))
            yield part

    monkeypatch.setattr("connectors.jsonl.parse", noted)
    found = rows(Jsonl(), info)
    assert [{name: value for name, value in row.items() if value is not None} for row in found] == made
    assert max(built) < 30_000


def test_rows_behind_a_start_are_parsed_in_parts_as_large_as_those_behind_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connectors.jsonl, "_BLOCK_BYTES", 1_000)
    monkeypatch.setattr(connectors.jsonl, "_MOST_CELLS", 40)
    info = save(tmp_path, lines(*({"a": line} for line in range(1_000, 2_000))), "a.jsonl.gz")
    scan = Jsonl().scan(STORE, [info])
    (fragment,) = fragments(scan)
    parsed: list[int] = []

    def noted(*args: Any) -> Iterator[Part]:
        for part in parse(*args):
            parsed.append(part.rows)
            yield part

    def parts_from(start: int) -> list[int]:
        parsed.clear()
        list(Jsonl().read(Opened(STORE, [info], {}), fragment, scan.schema, start, 1_000, 1_000))
        return list(parsed)

    monkeypatch.setattr("connectors.jsonl.parse", noted)
    whole, rest = parts_from(0), parts_from(501)
    assert sum(whole) == 1_000
    assert max(whole) == 40
    assert sum(rest) < 499 + 40
    assert rest == whole[-len(rest) :]


def test_names_that_are_data_are_an_error_before_they_fill_the_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connectors.jsonl, "_MAX_FIELDS", 200)
    info = save(tmp_path, lines(*({"scores": {f"user {line}": line}} for line in range(300))))
    with pytest.raises(DataError, match="more than 200 different fields") as caught:
        Jsonl().scan(STORE, [info])
    assert caught.value.file == info.path
    assert "schema" in caught.value.hint
    known = Jsonl(schema=pa.schema([("scores", pa.struct([("user 7", pa.int64())]))]), extra="ignore")
    assert rows(known, info)[7] == {"scores": {"user 7": 7}}


@pytest.mark.parametrize(
    ("line", "said"), [('{"a": 1, "a": 2}', "specified twice"), ('{"a": "\\ud800"}', "surrogate")]
)
def test_the_only_line_of_a_file_is_said_to_be_wrong_for_its_own_reason(
    tmp_path: Path, line: str, said: str
) -> None:
    (tmp_path / "a.jsonl").write_text(line + "\n")
    with pytest.raises(DataError, match=rf"byte 0: the only line is wrong: .*{said}") as caught:
        flow.read(tmp_path / "a.jsonl").count()
    assert "none of" not in caught.value.message


def test_a_compressed_file_that_is_cut_off_does_not_say_how_far_it_goes(tmp_path: Path) -> None:
    whole = gzip.compress(b'{"a": 1}\n' * 1000)
    (tmp_path / "a.jsonl.gz").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(DataError, match=r"the gzip stream ends early\.\n"):
        flow.read(tmp_path / "a.jsonl.gz").count()
