"""Numbers, truth values and times arrive exactly: their type, their value, and their nulls by policy."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from delivered import arrow, numpy, parquet, torch_of

import dataflow as flow
from dataflow import DataError, PlanError

BIG = 2**63 - 1
NUMBERS: dict[str, list[Any]] = {
    "int8": [-128, 127, 0, 1, 5],
    "int16": [-(2**15), 2**15 - 1, 0, 1, 5],
    "int32": [-(2**31), 2**31 - 1, 0, 1, 5],
    "int64": [-BIG - 1, BIG, 2**53 + 1, 1, 5],
    "uint8": [0, 255, 1, 2, 5],
    "uint16": [0, 2**16 - 1, 1, 2, 5],
    "uint32": [0, 2**32 - 1, 1, 2, 5],
    "uint64": [0, 2**64 - 1, 1, 2, 5],
    "float16": [0.0999755859375, -65504.0, 0.0, 1.0, 6e-8],
    "float32": [0.10000000149011612, 3.4028234663852886e38, 0.0, 1.0, 5.0],
    "float64": [0.1, 1.7976931348623157e308, 5e-324, 1.0, 2**53 + 2.0],
    "bool": [True, False, True, True, False],
}
SOURCES: dict[str, Callable[[Path, pa.Table], flow.Pipeline]] = {
    "parquet": lambda folder, table: flow.read(parquet(folder / "a.parquet", table, group=2)),
    "memory": lambda folder, table: flow.from_arrow(table),
}
each_source = pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES)


def kind_of(name: str) -> pa.DataType:
    return pa.bool_() if name == "bool" else getattr(pa, name)()


@each_source
@pytest.mark.parametrize("name", NUMBERS)
@pytest.mark.parametrize("size", [2, 5])
def test_a_number_keeps_its_type_and_value(
    source: Callable[[Path, pa.Table], flow.Pipeline], name: str, size: int, tmp_path: Path
) -> None:
    column: pa.Array[Any] = pa.array(NUMBERS[name], kind_of(name))
    pipe = source(tmp_path, pa.table({"x": column}))
    want = column.to_numpy(zero_copy_only=False)
    got = numpy(pipe, "x", size)
    assert got.dtype == want.dtype
    assert got.tolist() == want.tolist()
    tensor = torch_of(pipe, "x", size)
    assert tensor.dtype == torch.from_numpy(want.copy()).dtype
    assert tensor.tolist() == want.tolist()
    table = arrow(pipe, size)
    assert table.schema.field("x").type == column.type
    assert table["x"].to_pylist() == column.to_pylist()
    assert [pipe[i]["x"] for i in range(5)] == want.tolist()


@pytest.mark.parametrize("name", [name for name in NUMBERS if name != "bool"])
@pytest.mark.parametrize("lanes", [1, 2])
def test_a_null_among_numbers_is_an_error_or_filled_exactly_with_a_mask(
    name: str, lanes: int, tmp_path: Path
) -> None:
    values = [None, *NUMBERS[name][:3], None, *NUMBERS[name][3:], 7, 1]
    column: pa.Array[Any] = pa.array(values, kind_of(name))
    # The first and the second row group have nulls, the third has none.
    pipe = flow.read(parquet(tmp_path / "a.parquet", {"x": column, "n": range(9)}, group=3))
    with pytest.raises(DataError, match=r"'x' has 1 null \(first in sample 0:0\)") as caught:
        numpy(pipe, "x", 3)
    assert caught.value.hint == "fill them with .nulls('x', value=0), or .nulls('x', value=0, mask=True)"
    filled = pipe.nulls("x", value=3, mask=True).batch(4, lanes=lanes, remainder="keep")
    with filled.loader() as loader:
        batches = list(loader)
    dtype = torch.from_numpy(np.zeros(1, kind_of(name).to_pandas_dtype())).dtype
    exact = [3 if value is None else value for value in column.to_pylist()]
    seen = 0
    for batch in batches:
        assert batch["x"].dtype == dtype
        assert batch["x__mask"].dtype == torch.bool
        for row, value, mask in zip(
            batch["n"].tolist(), batch["x"].tolist(), batch["x__mask"].tolist(), strict=True
        ):
            assert value == exact[row]
            assert mask is (values[row] is not None)
            seen += 1
    assert seen == 9


def test_nulls_stay_nulls_in_arrow_batches_and_are_none_in_rows(tmp_path: Path) -> None:
    pipe = flow.read(parquet(tmp_path / "a.parquet", {"x": pa.array([2**53 + 1, None, 3, 4], pa.int64())}, 2))
    assert arrow(pipe)["x"].to_pylist() == [2**53 + 1, None, 3, 4]
    assert arrow(pipe)["x"].type == pa.int64()
    assert pipe[1] == {"x": None}
    seen = arrow(pipe.map(lambda row: {"none": row["x"] is None, "x": row["x"]}))
    assert seen.to_pylist() == [
        {"none": False, "x": 2**53 + 1}, {"none": True, "x": None},
        {"none": False, "x": 3}, {"none": False, "x": 4},
    ]  # fmt: skip


def test_nulls_among_truth_values_are_filled(tmp_path: Path) -> None:
    pipe = flow.from_arrow(pa.table({"x": [True, None, False]}))
    filled = pipe.nulls("x", value=True, mask=True)
    assert numpy(filled, "x").tolist() == [True, True, False]
    assert numpy(filled, "x__mask").tolist() == [True, False, True]


def test_nulls_of_a_value_that_does_not_fit_are_refused_when_written() -> None:
    pipe = flow.from_arrow(pa.table({"x": pa.array([1, None], pa.int8()), "s": ["a", None]}))
    for column, value in (("x", 300), ("x", "no"), ("x", 1.5), ("s", 0)):
        with pytest.raises(PlanError, match=f"nulls: .* is no value for column '{column}'") as caught:
            pipe.nulls(column, value=value).schema  # noqa: B018
        assert caught.value.hint == "give value= of that type"
    with pytest.raises(PlanError, match="two columns would be called"):
        pipe.rename({"s": "x__mask"}).nulls("x", mask=True).schema  # noqa: B018


def test_nulls_in_text_are_filled_and_masked() -> None:
    pipe = flow.from_arrow(pa.table({"s": ["a", None, "c"]}))
    assert numpy(pipe, "s") == ["a", None, "c"]
    filled = pipe.nulls("s", value="-", mask=True)
    assert numpy(filled, "s") == ["a", "-", "c"]
    assert numpy(filled, "s__mask").tolist() == [True, False, True]


TIMES: dict[str, tuple[pa.DataType, list[Any], list[int], Any]] = {
    "timestamp[us]": (
        pa.timestamp("us"),
        [datetime(2024, 2, 29, 12, 0, 0, 1), datetime(1969, 12, 31)],
        [1709208000000001, -86400000000],
        np.int64,
    ),
    "timestamp[ns, UTC]": (
        pa.timestamp("ns", "UTC"),
        [datetime(2024, 2, 29, tzinfo=UTC), datetime(1970, 1, 1, tzinfo=UTC)],
        [1709164800000000000, 0],
        np.int64,
    ),
    "date32": (pa.date32(), [date(2024, 2, 29), date(1969, 12, 31)], [19782, -1], np.int32),
    "date64": (pa.date64(), [date(2024, 2, 29), date(1970, 1, 1)], [1709164800000, 0], np.int64),
    "time32[s]": (pa.time32("s"), [time(1, 2, 3), time(0)], [3723, 0], np.int32),
    "time64[us]": (pa.time64("us"), [time(1, 2, 3, 4), time(0)], [3723000004, 0], np.int64),
    "duration[ms]": (
        pa.duration("ms"),
        [timedelta(seconds=2), timedelta(days=-1)],
        [2000, -86400000],
        np.int64,
    ),
}


@pytest.mark.parametrize("name", TIMES)
@pytest.mark.parametrize("lanes", [1, 2])
def test_times_are_counts_of_their_unit_in_tensors_and_times_in_arrow(
    name: str, lanes: int, tmp_path: Path
) -> None:
    kind, values, counts, dtype = TIMES[name]
    table = pa.table({"t": pa.array(values * 3, kind), "n": range(6)})
    # Parquet has neither: it stores dates as date32, and no time coarser than milliseconds.
    in_parquet = name not in ("date64", "time32[s]")
    sources = [flow.from_arrow(table)]
    if in_parquet:
        sources.append(flow.read(parquet(tmp_path / "a.parquet", table, 4)))
    for pipe in sources:
        batched = pipe.batch(4, lanes=lanes, remainder="keep")
        with batched.loader() as loader:
            tensors = list(loader)
        for batch in tensors:
            assert batch["t"].numpy().dtype == dtype
            assert batch["t"].tolist() == [counts[n % 2] for n in batch["n"].tolist()]
        with batched.loader(output="arrow") as loader:
            for batch in loader:
                assert pa.types.is_temporal(batch.schema.field("t").type)
                found: list[dict[str, Any]] = batch.to_pylist()
                expected: list[Any] = table["t"].to_pylist()
                assert [str(row["t"]) for row in found] == [str(expected[row["n"]]) for row in found]


def test_functions_and_filters_see_times_whether_or_not_there_are_nulls(tmp_path: Path) -> None:
    first = datetime(2024, 1, 1)
    for values in ([first, datetime(2025, 1, 1)], [first, None, datetime(2025, 1, 1)]):
        pipe = flow.from_arrow(pa.table({"t": pa.array(values, pa.timestamp("us"))}))
        kept = pipe.filter([("t", ">=", datetime(2024, 6, 1))])
        assert arrow(kept)["t"].to_pylist() == [datetime(2025, 1, 1)]
        seen: list[Any] = []
        mapped = pipe.map(lambda row, seen=seen: (seen.append(row["t"]), {"x": 1})[1], schema={"x": "int64"})
        arrow(mapped)
        kinds = {type(np.datetime64(value, "us").item()) for value in seen if value is not None}
        assert kinds == {datetime}
        # The next epoch may have been begun.
        assert {str(value).replace("T", " ")[:10] for value in seen if value is not None} == {
            str(value.date()) for value in values if value is not None
        }


def test_nulls_among_times_are_refused_and_filled_in_the_same_unit(tmp_path: Path) -> None:
    column = pa.array([datetime(2024, 1, 1), None, None, datetime(2024, 1, 2)], pa.timestamp("ms"))
    pipe = flow.read(parquet(tmp_path / "a.parquet", {"t": column}, 2))
    with pytest.raises(DataError, match="'t' has"):
        torch_of(pipe, "t")
    assert torch_of(pipe.nulls("t", value=0), "t").tolist() == [1704067200000, 0, 0, 1704153600000]


def test_decimals_are_exact_lists_and_become_numbers_by_cast(tmp_path: Path) -> None:
    values = [Decimal("0.10"), Decimal("-12345678901234567890.12"), None, Decimal("3.00")]
    pipe = flow.read(parquet(tmp_path / "a.parquet", {"d": pa.array(values, pa.decimal128(30, 2))}, 2))
    assert torch_of(pipe, "d") == values
    assert arrow(pipe)["d"].to_pylist() == values
    small = flow.from_arrow(
        pa.table({"d": pa.array([Decimal("0.10"), Decimal("3.00")], pa.decimal128(5, 2))})
    )
    assert torch_of(small.cast({"d": "float64"}), "d").tolist() == [0.1, 3.0]


def test_cast_refuses_to_lose_and_cuts_when_told(tmp_path: Path) -> None:
    pipe = flow.from_columns({"x": np.array([1.0, 2.5, 300.0])})
    with pytest.raises(flow.DataflowError, match="cast"):
        arrow(pipe.cast({"x": "int8"}))
    assert arrow(pipe.cast({"x": "int8"}), on_error="skip")["x"].to_pylist() == [1]
    assert arrow(pipe.cast({"x": "int32"}, safe=False))["x"].to_pylist() == [1, 2, 300]
    for name, dtype in (("float16", np.float16), ("float32", np.float32), ("int64", np.int64)):
        got = numpy(flow.from_columns({"x": np.array([1, 2, 3], np.int16)}).cast({"x": name}), "x")
        assert got.dtype == dtype
        assert got.tolist() == [1, 2, 3]
    with pytest.raises(PlanError, match="'flot32' is no type"):
        pipe.cast({"x": "flot32"})
    with pytest.raises(PlanError, match="no column 'z'"):
        pipe.cast({"z": "int8"}).schema  # noqa: B018


@pytest.mark.parametrize("first", [[1, 2], [0.5, None]])
def test_whole_numbers_of_one_file_are_the_floats_of_another(tmp_path: Path, first: list[Any]) -> None:
    parts = [first, [0.5, None] if first == [1, 2] else [1, 2]]
    for number, values in enumerate(parts):
        pq.write_table(pa.table({"x": values}), tmp_path / f"{number}.parquet")
    pipe = flow.read(tmp_path)
    assert pipe.schema == pa.schema({"x": pa.float64()})
    with pipe.batch(4, lanes=1).loader(output="arrow") as loader:
        assert next(iter(loader))["x"].to_pylist() == [*parts[0], *parts[1]]


def test_a_whole_number_that_no_float_has_is_an_error_that_names_file_and_number(tmp_path: Path) -> None:
    for number, values in enumerate(([1, 2**53 + 1], [0.5])):
        pq.write_table(pa.table({"x": values}), tmp_path / f"{number}.parquet")
    with (
        flow.read(tmp_path).batch(3).loader(output="numpy") as loader,
        pytest.raises(DataError, match=r"0\.parquet: column 'x' is int64, .* double: .*9007199254740993"),
    ):
        next(iter(loader))
