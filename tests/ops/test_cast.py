"""`cast`: values that the new type cannot hold."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from gathered import rows, values

import dataflow as flow
from dataflow.errors import DataError

NANOSECOND = pa.array([1], pa.timestamp("ns"))


@pytest.mark.parametrize(
    ("column", "kind", "said", "hint"),
    [
        (pa.array([1, 300]), "int8", "'x' (int64) has a value that is no int8: 300 (", "safe=False"),
        (pa.array([1.5]), "int32", "'x' (double) has a value that is no int32: 1.5 (", "safe=False"),
        (pa.array(["7", "seven"]), "int64", "'x' (string) has a value that is no int64: "
         '"seven" (', "on_error='skip'"),
        (pa.array([None, b"\xff"]), "string", "'x' (binary) has a value that is no string: FF (", "on_error='skip'"),
        (NANOSECOND, "timestamp[us]", "no timestamp[us]: 1970-01-01 00:00:00.000000001 (", "on_error='skip'"),
        (pa.array([["a" * 100]]), "list<int8>", "has a value that is no list<item: int8>: [ ",
         "on_error='skip'"),
    ],
)  # fmt: skip
def test_a_value_that_does_not_fit_is_an_error_with_column_types_value_and_row(
    tmp_path: Path, column: Any, kind: str, said: str, hint: str
) -> None:
    pq.write_table(pa.table({"x": column}), tmp_path / "a.parquet")
    pipe = flow.read(tmp_path / "a.parquet").cast({"x": kind})
    with pytest.raises(DataError) as caught:
        rows(pipe)
    last = len(column) - 1
    assert (caught.value.file, caught.value.row) == ("a.parquet", last)
    assert caught.value.message.startswith(f"a.parquet, row {last}: cast: column 'x'")
    assert said in caught.value.message
    assert len(caught.value.message) < 300
    assert hint in caught.value.hint
    assert isinstance(caught.value.__cause__, pa.ArrowException)
    with pytest.raises(DataError, match="cast: column 'x'"):
        pipe[last]


def test_only_the_rows_with_such_values_are_left_out_or_replaced() -> None:
    pipe = flow.from_columns({"x": [1, 300, 3, 400, 5]}).cast({"x": "int8"})
    assert values(pipe, on_error="skip") == [1, 3, 5]
    assert set(values(pipe, on_error="replace")) == {1, 3, 5}
    assert values(flow.from_columns({"x": [1, 300]}).cast({"x": "int8"}, safe=False)) == [1, 44]


@pytest.mark.parametrize(
    ("column", "kind", "wrong", "value"),
    [
        (pa.array([[1], [300], None]), "list<int8>", 1, "[ 300 ]"),
        (pa.array([[1], None, [], [2, 300], [3]]), "list<int8>", 3, "[ 2, 300 ]"),
        (pa.array([[1], [2], [300]], pa.large_list(pa.int64())), "list<int8>", 2, "[ 300 ]"),
        (pa.array([[1, 2], [3, 300], None], pa.list_(pa.int64(), 2)), "int8[2]", 1, "[ 3, 300 ]"),
        (pa.array([[[1], []], [[2], [300]], [None]]), "list<list<int8>>", 1, "[ [ 2 ], [ 300 ] ]"),
        (pa.array([[["a"]], [["7"], None]]), "list<list<int8>>", 0, '[ [ "a" ] ]'),
    ],
)  # fmt: skip
def test_of_lists_the_row_is_the_outermost_one(column: Any, kind: str, wrong: int, value: str) -> None:
    pipe = flow.from_arrow(pa.table({"x": column, "row": range(len(column))})).cast({"x": kind})
    with pytest.raises(DataError) as caught:
        rows(pipe)
    assert caught.value.row == wrong
    assert f": {value} (" in caught.value.message
    left = [row["row"] for row in rows(pipe, on_error="skip")]
    assert left == [row for row in range(len(column)) if row != wrong]


def test_what_lies_below_a_null_list_is_no_value() -> None:
    hidden = pa.ListArray.from_arrays([0, 1, 2], pa.array([1, 300]), mask=pa.array([False, True]))
    pipe = flow.from_arrow(pa.table({"x": hidden})).cast({"x": "list<int8>"})
    assert [row["x"] for row in rows(pipe)] == [[1], None]
