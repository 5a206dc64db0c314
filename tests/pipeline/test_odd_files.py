"""Empty files, files of no rows, uneven row groups, large offsets, JSON lines with other fields."""

from __future__ import annotations

import gzip
import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from delivered import arrow, numpy, parquet, tar, torch_of
from hypothesis import given, settings
from hypothesis import strategies as st

import dataflow as flow
from connectors.folder import Folder
from connectors.jsonl import Jsonl
from dataflow import DataError, PlanError


@settings(max_examples=20)
@given(groups=st.lists(st.integers(1, 9), min_size=1, max_size=8), window=st.integers(1, 20))
def test_row_i_is_row_i_whatever_the_row_groups(
    groups: list[int], window: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("groups") / "a.parquet"
    rows = sum(groups)
    table = pa.table({"x": range(rows), "s": [str(i) for i in range(rows)]})
    ends = np.cumsum([0, *groups])
    with pq.ParquetWriter(path, table.schema) as writer:
        for start, stop in pairwise(ends.tolist()):
            writer.write_table(table.slice(start, stop - start), row_group_size=stop - start)
    assert pq.ParquetFile(path).num_row_groups == len(groups)
    pipe = flow.read(path)
    assert [pipe[i] for i in range(rows)] == [{"x": i, "s": str(i)} for i in range(rows)]
    with pipe.shuffle(window).batch(1).loader(output="numpy", ids=True) as loader:
        batches = list(loader)
    assert sorted(int(b["x"][0]) for b in batches) == list(range(rows))
    assert all(int(b["__id__"][0]) == int(b["x"][0]) == int(b["s"][0]) for b in batches)


def test_files_of_no_rows_are_passed_over(tmp_path: Path) -> None:
    empty = pa.table({"x": pa.array([], pa.int64())})
    parquet(tmp_path / "1.parquet", empty)
    parquet(tmp_path / "2.parquet", {"x": [1, 2, 3]})
    parquet(tmp_path / "3.parquet", empty)
    pipe = flow.read(tmp_path / "*.parquet")
    assert pipe.count() == 3
    assert numpy(pipe.shuffle(2), "x", 3).sum() == 6
    assert pipe[2] == {"x": 3}
    for suffix, make in (("arrow", pa.ipc.new_file), ("arrows", pa.ipc.new_stream)):
        for number, table in ((1, empty), (2, pa.table({"x": [1, 2, 3]})), (3, empty)):
            with make(str(tmp_path / f"{number}.{suffix}"), table.schema) as out:
                out.write_table(table)
        assert numpy(flow.read(tmp_path / f"*.{suffix}"), "x").tolist() == [1, 2, 3]
    tar(tmp_path / "1.tar", [])
    tar(tmp_path / "2.tar", [("a.cls", b"7")])
    assert torch_of(flow.read(tmp_path / "*.tar"), "cls").tolist() == [7]
    (tmp_path / "1.jsonl").write_text("")
    (tmp_path / "2.jsonl").write_text('\n{"x": 5}\n\n')
    (tmp_path / "3.jsonl.gz").write_bytes(gzip.compress(b""))
    assert numpy(
        flow.read([tmp_path / f"{n}" for n in ("1.jsonl", "2.jsonl", "3.jsonl.gz")]), "x"
    ).tolist() == [5]


def test_a_source_without_any_row_is_an_error_where_the_loader_is_made(tmp_path: Path) -> None:
    pipe = flow.read(parquet(tmp_path / "a.parquet", pa.table({"x": pa.array([], pa.int64())})))
    assert pipe.count() == 0
    assert pipe.schema is not None
    assert pipe.schema.names == ["x"]
    with pytest.raises(PlanError, match=r"no batch|empty|0 rows") as caught:
        pipe.batch(2).loader()
    assert "empty" in caught.value.hint
    with pytest.raises(IndexError):
        pipe[0]
    tar(tmp_path / "a.tar", [])
    with pytest.raises(PlanError):
        flow.read(tmp_path / "a.tar").batch(1).loader()


@pytest.mark.parametrize("name", ["a.parquet", "a.arrow", "a.arrows"])
def test_a_file_of_zero_bytes_is_an_error_that_names_it(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(b"")
    with pytest.raises(DataError, match=name.replace(".", r"\.")):
        flow.read(tmp_path / name).schema  # noqa: B018


@pytest.mark.parametrize(
    "name", ["a.parquet", "a.arrow", "a.arrows", "a.tar", "a.tar.gz", "a.jsonl", "a.jsonl.gz"]
)
def test_a_file_of_another_format_is_an_error_that_names_it(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(bytes(range(256)) * 8)
    with pytest.raises(DataError, match=name.replace(".", r"\.")):
        flow.read(tmp_path / name).schema  # noqa: B018


def test_a_wrong_path_names_what_is_like_it(tmp_path: Path) -> None:
    parquet(tmp_path / "train.parquet", {"x": [1]})
    with pytest.raises(flow.ConnectorError, match=r"trian\.parquet") as caught:
        flow.read(tmp_path / "trian.parquet").schema  # noqa: B018
    assert "train.parquet" in caught.value.hint
    (tmp_path / "b.jsonl").write_text("{}")
    with pytest.raises(PlanError, match="do not have one format"):
        flow.read(tmp_path).schema  # noqa: B018
    with pytest.raises(PlanError, match="'parkay' is unknown") as unknown:
        flow.read(tmp_path / "train.parquet", format="parkay").schema  # noqa: B018
    assert "parquet" in unknown.value.hint


LINES: list[dict[str, Any]] = [
    {"a": 1, "b": "x"}, {"a": 2}, {"b": "y", "c": [1, 2]}, {"a": 4, "c": [], "d": {"e": 1}}, {"a": None},
]  # fmt: skip


def test_missing_fields_of_json_lines_are_null_and_new_ones_are_columns(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in LINES))
    pipe = flow.read(path)
    assert pipe.schema is not None
    assert pipe.schema.names == ["a", "b", "c", "d"]
    wanted = [{name: line.get(name) for name in "abcd"} for line in LINES]
    assert arrow(pipe, 2).to_pylist() == wanted
    assert torch_of(pipe.select("a").nulls("a", value=-1), "a").tolist() == [1, 2, -1, 4, -1]
    assert torch_of(pipe.select("b"), "b") == ["x", None, "y", None, None]
    assert torch_of(pipe.select("d"), "d") == [None, None, None, {"e": 1}, None]


def test_a_field_beside_the_schema_of_json_lines_is_bad_or_left_out(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"a": 1}\n{"a": 2, "z": 9}\n{}\n')
    schema = pa.schema({"a": pa.int32()})
    strict = flow.read(path, format=Jsonl(schema=schema))
    with pytest.raises(DataError, match=r"a\.jsonl, byte 9: .*unexpected field"):
        arrow(strict)
    assert arrow(strict, on_error="skip").to_pylist() == [{"a": 1}, {"a": None}]
    loose = flow.read(path, format=Jsonl(schema=schema, extra="ignore"))
    assert arrow(loose).to_pylist() == [{"a": 1}, {"a": 2}, {"a": None}]
    assert arrow(loose).schema == schema


def test_a_bad_line_costs_that_line_and_is_written_down(tmp_path: Path) -> None:
    good = [json.dumps({"n": i}) for i in range(30)]
    lines = [*good[:12], '{"n": 12, ', *good[13:20], "[1]", *good[21:]]
    (tmp_path / "a.jsonl").write_text("\n".join(lines) + "\n")
    pipe = flow.read(tmp_path / "a.jsonl")
    with pytest.raises(DataError, match=r"a\.jsonl, row 12|a\.jsonl, byte"):
        arrow(pipe)
    note = tmp_path / "bad.jsonl"
    kept = arrow(pipe, on_error="skip", quarantine=note)
    assert kept["n"].to_pylist() == [i for i in range(30) if i not in (12, 20)]
    written = [json.loads(line) for line in note.read_text().splitlines()]
    assert [(line["file"], line["row"], line["operator"]) for line in written] == [
        ("a.jsonl", 12, "read"), ("a.jsonl", 20, "read"),
    ]  # fmt: skip
    replaced = arrow(pipe, on_error="replace")["n"].to_pylist()
    assert len(replaced) == 30
    assert set(replaced) == {i for i in range(30) if i not in (12, 20)}
    assert [n for i, n in enumerate(replaced) if i not in (12, 20)] == [
        i for i in range(30) if i not in (12, 20)
    ]


def test_a_damaged_parquet_page_is_an_error_or_costs_its_row_group(tmp_path: Path) -> None:
    path = parquet(tmp_path / "a.parquet", {"x": np.random.default_rng(0).integers(0, 2**60, 4000)}, 1000)
    meta = pq.read_metadata(path).row_group(2).column(0)
    raw = bytearray(path.read_bytes())
    start = meta.data_page_offset if meta.dictionary_page_offset is None else meta.dictionary_page_offset
    raw[start : start + 200] = b"\xff" * 200
    path.write_bytes(raw)
    pipe = flow.read(path)
    with pytest.raises(DataError, match=r"a\.parquet"):
        numpy(pipe, "x", 500)
    kept = numpy(pipe, "x", 500, on_error="skip")
    assert len(kept) == 3000
    assert len(numpy(pipe.shuffle(4000), "x", 500, on_error="replace")) == 4000


def test_text_beyond_32_bit_offsets_comes_whole() -> None:
    # Values of 2 MB that share their bytes: together they do not fit the 32-bit offsets of one string array.
    value = "x" * (2 << 20)
    shared = pa.concat_arrays([pa.array([value], pa.string_view())] * 1100)
    pipe = flow.from_arrow(pa.table({"s": shared, "n": range(1100)})).filter([("n", ">=", 1090)])
    with pipe.batch(5).loader() as loader:
        batches = list(loader)
    assert [n for batch in batches for n in batch["n"].tolist()] == list(range(1090, 1100))
    assert all(text == value for batch in batches for text in batch["s"])


def test_lists_whose_offsets_begin_far_behind_zero_are_exact() -> None:
    values = pa.array(range(100), pa.int64())
    far = pa.ListArray.from_arrays(pa.array([90, 93, 93, 99], pa.int32()), values)
    large = pa.LargeListArray.from_arrays(pa.array([90, 93, 93, 99], pa.int64()), values)
    for column in (far, large):
        pipe = flow.from_arrow(pa.table({"v": column}))
        assert [v.tolist() for v in numpy(pipe, "v", 2)] == [[90, 91, 92], [], list(range(93, 99))]
        assert [v.tolist() for v in numpy(pipe.skip(1), "v", 2)] == [[], list(range(93, 99))]


def test_a_bad_image_among_captions_is_named_in_the_quarantine(tmp_path: Path) -> None:
    def refuse(row: dict[str, Any]) -> dict[str, Any]:
        if row["path"] == "k0/2.jpg":
            raise ValueError("no image")
        return {"path": row["path"]}

    for name in ("k0/1.jpg", "k0/1.txt", "k0/2.jpg", "k0/2.txt", "k1/3.jpg"):
        (tmp_path / "data" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "data" / name).write_bytes(b"x")
    pipe = flow.read(tmp_path / "data", format=Folder()).map(refuse, schema={"path": "string"})
    bad = tmp_path / "bad.jsonl"
    with pipe.batch(2).loader(output="numpy", on_error="skip", quarantine=bad) as loader:
        assert [name for batch in loader for name in batch["path"]] == ["k0/1.jpg", "k1/3.jpg"]
    (line,) = map(json.loads, bad.read_text().splitlines())
    assert (line["file"], line["row"]) == ("k0/2.jpg", 0)
