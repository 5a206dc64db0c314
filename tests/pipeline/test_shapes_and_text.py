"""Lists, fixed shapes, structs, maps, text, bytes and dictionaries arrive whole."""

from __future__ import annotations

import subprocess
import sys
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from delivered import arrow, numpy, parquet, torch_of
from hypothesis import given, settings
from hypothesis import strategies as st

import dataflow as flow
from dataflow import DataError, PlanError, StageError

RAGGED = [[1, 2, 3], [], [4], [5, 6, 7, 8, 9], [10], [], [11, 12]]


def test_ragged_lists_keep_every_element_the_last_included(tmp_path: Path) -> None:
    column = pa.array(RAGGED, pa.list_(pa.int16()))
    for pipe in (
        flow.read(parquet(tmp_path / "a.parquet", {"v": column}, 3)),
        flow.from_arrow(pa.table({"v": column})),
        flow.from_arrow(pa.table({"v": column.cast(pa.large_list(pa.int16()))})),
        flow.from_arrow(pa.table({"v": pa.concat_arrays([column, column]).slice(7)})),
    ):
        tensors = torch_of(pipe, "v", 3)
        assert [t.tolist() for t in tensors] == RAGGED
        assert all(t.dtype == torch.int16 for t in tensors)
        assert [v.tolist() for v in numpy(pipe, "v", 3)] == RAGGED
        assert arrow(pipe, 3)["v"].to_pylist() == RAGGED
        assert [pipe[i]["v"].tolist() for i in range(7)] == RAGGED


@settings(max_examples=25)
@given(st.data())
def test_any_ragged_column_comes_whole_in_any_order(data: st.DataObject) -> None:
    rows = data.draw(st.lists(st.lists(st.integers(-100, 100), max_size=5), min_size=1, max_size=30))
    window = data.draw(st.integers(1, 10))
    size = data.draw(st.integers(1, 7))
    lanes = data.draw(st.sampled_from([lanes for lanes in (1, 2, 3) if size % lanes == 0]))
    table = pa.table({"v": pa.array(rows, pa.list_(pa.int32())), "s": [repr(row) for row in rows]})
    cut = data.draw(st.integers(0, len(rows)))
    pipe = (
        flow.concat(flow.from_arrow(table.slice(0, cut)), flow.from_arrow(table.slice(cut)))
        if 0 < cut < len(rows)
        else flow.from_arrow(table)
    )
    batched = pipe.shuffle(window).batch(size, lanes=lanes, remainder="keep")
    with batched.loader(output="numpy", ids=True) as loader:
        batches = list(loader)
    got = [value.tolist() for batch in batches for value in batch["v"]]
    assert sorted(got) == sorted(rows)
    assert [repr(value) for value in got] == [text for batch in batches for text in batch["s"]]


def test_each_ragged_tensor_can_be_written_to_without_changing_another(tmp_path: Path) -> None:
    pipe = flow.from_arrow(pa.table({"v": pa.array(RAGGED, pa.list_(pa.int64()))}))
    for _ in range(2):
        (tensors,) = [torch_of(pipe, "v", 7)]
        for tensor in tensors:
            tensor += 100
        assert [t.tolist() for t in tensors] == [[x + 100 for x in row] for row in RAGGED]


def test_pad_brings_lists_to_one_length_with_a_mask(tmp_path: Path) -> None:
    pipe = flow.read(parquet(tmp_path / "a.parquet", {"v": pa.array(RAGGED, pa.list_(pa.int16()))}, 3))
    padded = pipe.pad({"v": 5}, value=-1, mask=True)
    got = torch_of(padded, "v", 3)
    assert got.dtype == torch.int16
    assert got.tolist() == [row + [-1] * (5 - len(row)) for row in RAGGED]
    assert torch_of(padded, "v__mask").tolist() == [[k < len(row) for k in range(5)] for row in RAGGED]
    assert numpy(pipe.pad({"v": 2}, truncate=True), "v").tolist() == [[*row, 0, 0][:2] for row in RAGGED]
    with pytest.raises(DataError, match="a list of 5 values in column 'v' is longer than 4") as caught:
        arrow(pipe.pad({"v": 4}))
    assert caught.value.hint == "use a larger length, or truncate=True"
    kept = arrow(pipe.pad({"v": 4}), on_error="skip")
    assert kept["v"].to_pylist() == [row + [0] * (4 - len(row)) for row in RAGGED if len(row) < 5]
    with pytest.raises(PlanError, match="'v' is string, no list"):
        flow.from_columns({"v": ["a"]}).pad({"v": 3}).schema  # noqa: B018


def test_a_padding_value_that_the_column_cannot_hold_is_refused() -> None:
    pipe = flow.from_arrow(pa.table({"v": pa.array([[1], [2, 3]], pa.list_(pa.uint8()))}))
    for value in (-1, 300, 0.5):
        with pytest.raises(PlanError, match=f"{value}"):
            arrow(pipe.pad({"v": 2}, value=value))


def test_a_null_list_is_refused_in_tensors_and_kept_in_arrow() -> None:
    column = pa.array([[1], None, [2, None]], pa.list_(pa.int32()))
    pipe = flow.from_arrow(pa.table({"v": column}))
    assert arrow(pipe)["v"].to_pylist() == [[1], None, [2, None]]
    with pytest.raises(DataError, match="column 'v' has 1 null"):
        torch_of(pipe.take(2), "v")
    with pytest.raises(DataError, match="column 'v' has 1 null"):
        torch_of(pipe.skip(2), "v")
    assert pipe[1] == {"v": None}
    assert pipe[2] == {"v": [2, None]}


@pytest.mark.parametrize(
    ("column", "wanted"),
    [
        (pa.array([1, None], pa.int8()), [1, 0]),
        (pa.array([0.5, None], pa.float32()), [0.5, 0.0]),
        (pa.array([True, None]), [True, False]),
        (pa.array([[1, 2], None], pa.list_(pa.int32())), [[1, 2], []]),
        (pa.array([[1, 2], None], pa.list_(pa.int32(), 2)), [[1, 2], [0, 0]]),
        (pa.array([[1, 2], [None, 3]], pa.list_(pa.int32())), [[1, 2], [0, 3]]),
        (pa.array([[1, 2], [None, 3]], pa.list_(pa.int32(), 2)), [[1, 2], [0, 3]]),
    ],
    ids=["int", "float", "bool", "list", "fixed", "in list", "in fixed"],
)
def test_doing_what_the_hint_about_nulls_says_helps(column: Any, wanted: list[Any]) -> None:
    pipe = flow.from_arrow(pa.table({"v": column}))
    with pytest.raises(DataError, match=r"column 'v' has 1 null.*sample 0:1") as caught:
        torch_of(pipe, "v")
    call = caught.value.hint.partition("with ")[2].split(", or ")[0]
    assert call.startswith(".nulls(")
    filled = eval(f"pipe{call}", {"pipe": pipe})
    assert [value.tolist() for value in torch_of(filled, "v")] == wanted


def test_fixed_size_lists_and_tensors_are_one_array(tmp_path: Path) -> None:
    flat = np.arange(7 * 3, dtype=np.float32).reshape(7, 3)
    cube = np.arange(7 * 24, dtype=np.int32).reshape(7, 2, 3, 4)
    pipe = flow.from_columns({"flat": flat, "cube": cube})
    assert np.array_equal(numpy(pipe, "flat", 3), flat)
    assert np.array_equal(torch_of(pipe, "cube", 3).numpy(), cube)
    table = arrow(pipe, 3)
    assert table.schema == pipe.schema
    path = tmp_path / "a.parquet"
    pq.write_table(table, path, row_group_size=2)
    again = flow.read(path)
    assert np.array_equal(numpy(again, "cube", 3), cube)
    assert np.array_equal(numpy(again, "flat", 3), flat)
    assert np.array_equal(again[4]["cube"], cube[4])


def test_fixed_shapes_with_nulls_are_refused_filled_and_kept(tmp_path: Path) -> None:
    values = [[1, 2], None, [3, 4], [5, 6], [7, 8]]
    column = pa.array(values, pa.list_(pa.int64(), 2))
    pipe = flow.read(parquet(tmp_path / "a.parquet", {"v": column}, 2))
    assert arrow(pipe, 2)["v"].to_pylist() == values
    with pytest.raises(DataError, match="column 'v' has"):
        torch_of(pipe, "v")
    filled = pipe.nulls("v", value=-1, mask=True)
    assert torch_of(filled, "v", 2).tolist() == [[1, 2], [-1, -1], [3, 4], [5, 6], [7, 8]]
    assert torch_of(filled, "v__mask").tolist() == [True, False, True, True, True]


@pytest.mark.parametrize("lanes", [1, 2])
def test_nulls_inside_fixed_shapes_are_refused_and_kept(lanes: int) -> None:
    values = [[1, 2], [None, 3], [3, 4], [5, 6]]
    column = pa.array(values, pa.list_(pa.int64(), 2))
    pipe = flow.from_arrow(pa.table({"v": column, "n": range(4)}))
    with pipe.batch(2, lanes=lanes).loader(output="arrow") as loader:
        rows = [row for batch in loader for row in batch.to_pylist()]
    assert sorted((row["n"], row["v"]) for row in rows) == list(enumerate(values))
    with pytest.raises(DataError, match="null"):
        torch_of(pipe, "v")


def test_nested_fixed_shapes_keep_their_type_through_operators() -> None:
    kind = pa.list_(pa.list_(pa.int32(), 2), 3)
    column = pa.array([[[i, 1], [2, 3], [4, 5]] for i in range(6)], kind)
    pipe = flow.from_arrow(pa.table({"v": column, "n": range(6)}))
    assert torch_of(pipe, "v").shape == (6, 3, 2)
    assert arrow(pipe).schema == pipe.schema
    for kept in (
        pipe.filter(lambda row: row["n"] % 3 == 0),
        pipe.filter([("n", "in", [0, 3])]),
        pipe.map(lambda row: {"n": row["n"]}, add=True).filter(lambda row: row["n"] % 3 == 0),
    ):
        table = arrow(kept, 1)
        assert table["v"].to_pylist() == [column[0].as_py(), column[3].as_py()]
        assert table.schema.field("v").type == kind


def test_structs_maps_and_lists_of_them_are_whole(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [
        {"s": {"a": 1, "b": {"c": ["x", "y"]}}, "m": [("k", 1)], "l": [{"q": 1}, {"q": None}], "t": [["a"], []]},
        {"s": {"a": None, "b": None}, "m": [], "l": [], "t": [[], ["b", "c"]]},
        {"s": None, "m": None, "l": None, "t": None},
        {"s": {"a": 4, "b": {"c": []}}, "m": [("k", 2), ("j", None)], "l": [{"q": 3}], "t": [["d"]]},
    ]  # fmt: skip
    inner = pa.struct([("c", pa.list_(pa.string()))])
    schema = pa.schema(
        [
            pa.field("s", pa.struct([pa.field("a", pa.int64()), pa.field("b", inner)])),
            pa.field("m", pa.map_(pa.string(), pa.int32())),
            pa.field("l", pa.list_(pa.struct([("q", pa.int8())]))),
            pa.field("t", pa.list_(pa.list_(pa.string()))),
        ]
    )
    table = pa.Table.from_pylist(rows, schema=schema)
    for pipe in (flow.from_arrow(table), flow.read(parquet(tmp_path / "a.parquet", table, 2))):
        assert arrow(pipe, 3).to_pylist() == rows
        for name in schema.names:
            assert torch_of(pipe, name, 3) == [row[name] for row in rows]
        shuffled = pipe.shuffle(3).seed(1).batch(2, lanes=2)
        with shuffled.loader(output="arrow") as loader:
            found = [row for batch in loader for row in batch.to_pylist()]
        assert sorted(map(repr, found)) == sorted(map(repr, rows))


TEXTS = ["a", "", "ü𝄞", "d" * 1000, "e"]


@pytest.mark.parametrize(
    "kind",
    [
        pa.string(), pa.large_string(), pa.string_view(), pa.binary(), pa.large_binary(), pa.binary_view(),
        pa.list_(pa.string_view()), pa.struct([("a", pa.string_view())]),
    ],
    ids=str,
)  # fmt: skip
@pytest.mark.parametrize("lanes", [1, 2])
def test_text_and_bytes_of_every_arrow_form_are_str_and_bytes(kind: pa.DataType, lanes: int) -> None:
    values: list[Any] = TEXTS
    if "binary" in str(kind):
        values = [text.encode() for text in TEXTS]
    elif pa.types.is_list(kind):
        values = [[text, text] for text in TEXTS]
    elif pa.types.is_struct(kind):
        values = [{"a": text} for text in TEXTS]
    pipe = flow.from_arrow(pa.table({"s": pa.array(values, kind), "n": range(5)}))
    assert torch_of(pipe, "s", 2) == values
    assert pipe[2]["s"] == values[2]
    with pipe.shuffle(3).batch(2, lanes=lanes, remainder="keep").loader() as loader:
        batches = list(loader)
    assert sorted(n for batch in batches for n in batch["n"].tolist()) == list(range(5))
    assert all(s == values[n] for b in batches for n, s in zip(b["n"].tolist(), b["s"], strict=True))
    assert arrow(pipe.filter(lambda row: row["n"] > 2))["s"].to_pylist() == values[3:]


def test_binary_of_fixed_size_is_bytes() -> None:
    pipe = flow.from_arrow(pa.table({"s": pa.array([b"ab", b"cd"], pa.binary(2))}))
    assert torch_of(pipe, "s", 2) == [b"ab", b"cd"]


def test_a_function_sees_calendar_intervals() -> None:
    # In a process of its own: once it crashed the interpreter.
    code = """if True:
        import pyarrow as pa, dataflow as flow
        spans = pa.array([(1, 2, 3), (4, 5, 6)], pa.month_day_nano_interval())
        print([tuple(flow.from_arrow(pa.table({"s": spans}))[i]["s"]) for i in range(2)])
    """
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.strip()) == (0, "[(1, 2, 3), (4, 5, 6)]"), done.stderr


@pytest.mark.parametrize("lanes", [1, 2])
def test_dictionary_text_whose_dictionaries_differ_comes_as_its_values(lanes: int, tmp_path: Path) -> None:
    parts: list[list[str | None]] = [["a", "b", "a"], ["c", "a", None], ["b", "b", "d"]]
    table = pa.concat_tables(
        pa.table({"s": pa.array(part).dictionary_encode(), "n": range(3 * k, 3 * k + 3)})
        for k, part in enumerate(parts)
    )
    wanted = list(chain(*parts))
    parquet(tmp_path / "a.parquet", table, 3)
    with pa.ipc.new_stream(str(tmp_path / "a.arrows"), table.schema) as out:
        out.write_table(table)
    for pipe in (flow.from_arrow(table), flow.read(tmp_path / "a.parquet"), flow.read(tmp_path / "a.arrows")):
        assert torch_of(pipe, "s", 4) == wanted
        assert arrow(pipe)["s"].to_pylist() == wanted
        assert pipe[3]["s"] == "c"
        with pipe.shuffle(4).batch(4, lanes=lanes, remainder="keep").loader() as loader:
            batches = list(loader)
        assert sorted(chain(*(b["n"].tolist() for b in batches))) == list(range(9))
        assert all(wanted[n] == s for b in batches for n, s in zip(b["n"].tolist(), b["s"], strict=True))
        assert arrow(pipe.filter([("s", "=", "b")]))["n"].to_pylist() == [1, 6, 7]
        assert arrow(pipe.filter(lambda row: row["s"] == "b"))["n"].to_pylist() == [1, 6, 7]


def test_a_column_that_is_only_nulls_first_and_text_later_has_one_type(tmp_path: Path) -> None:
    parquet(tmp_path / "1.parquet", {"s": pa.nulls(3), "n": [0, 1, 2]})
    parquet(tmp_path / "2.parquet", {"s": ["a", "b"], "n": [3, 4]})
    pipe = flow.read(tmp_path / "*.parquet")
    assert pipe.schema is not None
    assert pipe.schema.field("s").type == pa.string()
    assert torch_of(pipe, "s", 4) == [None, None, None, "a", "b"]
    assert arrow(pipe, 4).schema == pipe.schema
    (tmp_path / "a.jsonl").write_text('{"s": null}\n' * 400_0 + '{"s": "late"}\n')
    lines = flow.read(tmp_path / "a.jsonl")
    assert lines[4000] == {"s": "late"}
    assert lines[0] == {"s": None}


def test_a_column_of_nothing_but_nulls_is_a_list_of_none(tmp_path: Path) -> None:
    pipe = flow.read(parquet(tmp_path / "a.parquet", {"s": pa.nulls(3), "n": [0, 1, 2]}, 2))
    assert torch_of(pipe, "s", 2) == [None, None, None]
    assert torch_of(pipe, "n", 2).tolist() == [0, 1, 2]


def test_files_whose_types_differ_are_widened_and_those_that_do_not_fit_are_named(tmp_path: Path) -> None:
    parquet(tmp_path / "1.parquet", {"x": pa.array([1, 2], pa.int32()), "only1": [1, 2]})
    parquet(tmp_path / "2.parquet", {"x": pa.array([2**40], pa.int64())})
    pipe = flow.read(tmp_path / "*.parquet")
    assert arrow(pipe).to_pylist() == [
        {"x": 1, "only1": 1},
        {"x": 2, "only1": 2},
        {"x": 2**40, "only1": None},
    ]
    parquet(tmp_path / "3.parquet", {"x": ["text"]})
    with pytest.raises(DataError, match=r"x.*3\.parquet|3\.parquet.*x"):
        flow.read(tmp_path / "*.parquet").schema  # noqa: B018


def test_two_columns_of_one_name_are_an_error_that_names_file_and_column(tmp_path: Path) -> None:
    twice = pa.table([pa.array([1]), pa.array([2])], names=["x", "x"])
    pq.write_table(twice, tmp_path / "a.parquet")
    with pytest.raises(DataError, match=r"a\.parquet: column 'x' occurs 2 times"):
        flow.read(tmp_path / "a.parquet").schema  # noqa: B018
    with pytest.raises(flow.DataflowError, match="'x'"):
        flow.from_arrow(twice).schema  # noqa: B018
    (tmp_path / "a.jsonl").write_text('{"x": 1}\n{"x": 2, "x": 3}\n{"x": 4}\n')
    pipe = flow.read(tmp_path / "a.jsonl")
    with pytest.raises(DataError, match="twice"):
        arrow(pipe)
    assert arrow(pipe, on_error="skip")["x"].to_pylist() == [1, 4]


def uneven(columns: dict[str, Any]) -> dict[str, Any]:
    """A batched function whose columns do not have the length of the block."""
    return {"x": columns["x"], "y": columns["x"][:-1]}


def test_a_batched_map_with_columns_of_unequal_length_is_an_error_that_names_the_function() -> None:
    pipe = flow.from_columns({"x": np.arange(10)}).map(uneven, batched=True, batch_size=5)
    with pytest.raises(
        StageError, match=r"uneven.*returned \d+ values for column 'y', and got \d+ rows"
    ) as caught:
        arrow(pipe)
    assert caught.value.hint == "return one value a row; use flat_map to change the number of rows"


def test_a_batched_function_never_gets_more_rows_than_it_asked_for() -> None:
    sizes: list[int] = []

    def noted(columns: dict[str, Any]) -> dict[str, Any]:
        sizes.append(len(columns["x"]))
        return columns

    arrow(flow.from_columns({"x": np.arange(23)}).map(noted, batched=True, batch_size=5))
    assert max(sizes) == 5


def test_what_a_map_returns_is_what_is_delivered() -> None:
    """Every kind of value a function may return, and what it becomes."""

    def made(row: dict[str, Any]) -> dict[str, Any]:
        n = int(row["n"])
        return {
            "int": n, "float": n / 2, "f16": np.float16(n), "f32": np.float32(n), "bool": n > 1, "text": f"t{n}",
            "np_text": np.str_(f"t{n}"), "bytes": b"b" * n, "vector": np.arange(3, dtype=np.int8) + n,
            "image": np.full((2, 2, 3), n, np.uint8), "ragged": np.arange(n), "list": list(range(n)),
            "nested": {"a": n}, "tensor": torch.full((2,), n, dtype=torch.int32), "maybe": None if n == 1 else n,
            "when": np.datetime64("2024-01-01", "s") + n,
        }  # fmt: skip

    pipe = flow.from_columns({"n": np.arange(4)}).map(made)
    with pipe.nulls("maybe", value=-1).batch(4).loader() as loader:
        (batch,) = loader
    for name, dtype in (
        ("int", torch.int64), ("float", torch.float64), ("f16", torch.float16), ("f32", torch.float32),
        ("bool", torch.bool), ("vector", torch.int8), ("image", torch.uint8), ("tensor", torch.int32),
        ("when", torch.int64),
    ):  # fmt: skip
        assert batch[name].dtype == dtype, name
    assert batch["text"] == batch["np_text"] == ["t0", "t1", "t2", "t3"]
    assert batch["bytes"] == [b"", b"b", b"bb", b"bbb"]
    assert batch["vector"].tolist() == [[n, n + 1, n + 2] for n in range(4)]
    assert batch["image"].shape == (4, 2, 2, 3)
    assert (
        [v.tolist() for v in batch["ragged"]]
        == [v.tolist() for v in batch["list"]]
        == [list(range(n)) for n in range(4)]
    )
    assert batch["nested"] == [{"a": n} for n in range(4)]
    assert batch["maybe"].tolist() == [0, -1, 2, 3]
    assert batch["when"].tolist() == [1704067200 + n for n in range(4)]


@pytest.mark.parametrize("step", ["bare", "shuffle", "filter", "filter and shuffle", "map"])
@pytest.mark.parametrize("world", [1, 2, 3])
def test_nulls_inside_fixed_lists_stay_in_their_rows_where_a_rank_takes_some_of_them(
    step: str, world: int, tmp_path: Path
) -> None:
    lists = [[float(n), None if n % 7 == 0 else n + 0.5] for n in range(120)]
    table = pa.table({"n": np.arange(120), "v": pa.array(lists, pa.list_(pa.float64(), 2))})
    for pipe in (flow.from_arrow(table), flow.read(parquet(tmp_path / "a.parquet", table, 25))):
        if "filter" in step:
            pipe = pipe.filter([("n", ">", 30)])
        if "shuffle" in step:
            pipe = pipe.shuffle(50)
        if step == "map":
            pipe = pipe.map(lambda row: {"m": row["n"]}, add=True, schema={"m": "int64"})
        pipe = pipe.batch(global_size=12, lanes=1, remainder="keep")
        seen: list[int] = []
        for rank in range(world):
            with pipe.loader(rank=rank, world_size=world, output="arrow") as loader:
                found: list[dict[str, Any]] = [row for batch in loader for row in batch.to_pylist()]
            seen += [row["n"] for row in found]
            assert [row["v"] for row in found] == [lists[row["n"]] for row in found]
        assert sorted(seen) == list(range(31 if "filter" in step else 0, 120))


def test_functions_get_lists_with_nulls_inside_as_lists_and_the_others_as_arrays() -> None:
    column = pa.array([[1.0, 2.0], [3.0, None]], pa.list_(pa.float64(), 2))
    got: dict[int, Any] = {}  # by row: the next epoch is read ahead, and calls come in any order

    def seen(row: dict[str, Any]) -> dict[str, Any]:
        got[int(row["n"])] = row["v"]
        return {"x": 1}

    pipe = flow.from_arrow(pa.table({"v": column, "n": [0, 1]})).map(seen, schema={"x": "int64"})
    assert numpy(pipe, "x", 2).tolist() == [1, 1]
    assert isinstance(got[0], np.ndarray)
    assert [got[0].tolist(), got[1]] == [[1.0, 2.0], [3.0, None]]
