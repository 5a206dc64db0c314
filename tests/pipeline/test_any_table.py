"""Whatever the columns, pieces and operators: each row comes once, unchanged, and typed as promised."""

from __future__ import annotations

import tempfile
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import given, settings
from hypothesis import strategies as st

import dataflow as flow

Draw = st.DataObject

KINDS: dict[pa.DataType, st.SearchStrategy[Any]] = {
    pa.int8(): st.integers(-128, 127),
    pa.int64(): st.integers(-(2**63), 2**63 - 1),
    pa.uint64(): st.integers(0, 2**64 - 1),
    pa.float16(): st.floats(width=16, allow_nan=False),
    pa.float32(): st.floats(width=32, allow_nan=False),
    pa.float64(): st.floats(allow_nan=False),
    pa.bool_(): st.booleans(),
    pa.string(): st.text(max_size=4),
    pa.large_binary(): st.binary(max_size=4),
    pa.binary(2): st.binary(min_size=2, max_size=2),
    pa.date32(): st.dates(date(1900, 1, 1), date(2100, 1, 1)),
    pa.timestamp("us"): st.datetimes(datetime(1900, 1, 1), datetime(2100, 1, 1)),
    pa.timestamp("ms", "UTC"): st.integers(0, 2**40).map(lambda n: datetime.fromtimestamp(n // 1000, UTC)),
    pa.duration("s"): st.integers(-(10**6), 10**6).map(lambda n: timedelta(seconds=n)),
    pa.decimal128(9, 2): st.integers(-(10**8), 10**8).map(lambda n: Decimal(n) / 100),
    pa.list_(pa.int16()): st.lists(st.integers(-9, 9), max_size=3),
    pa.list_(pa.string()): st.lists(st.text(max_size=2), max_size=3),
    pa.list_(pa.float32(), 2): st.lists(st.floats(width=32, allow_nan=False), min_size=2, max_size=2),
    pa.list_(pa.list_(pa.int32(), 2), 2): st.lists(
        st.lists(st.integers(-9, 9), min_size=2, max_size=2), min_size=2, max_size=2
    ),
    pa.struct([pa.field("a", pa.int32()), pa.field("b", pa.list_(pa.string()))]): st.fixed_dictionaries(
        {"a": st.integers(0, 9), "b": st.lists(st.text(max_size=2), max_size=2)}
    ),
    pa.map_(pa.string(), pa.int8()): st.lists(st.tuples(st.text(max_size=2), st.integers(0, 9)), max_size=2),
}


@st.composite
def tables(draw: st.DrawFn, name: str = "c") -> pa.Table:
    """A table of one to four columns, with nulls in some, in one to four pieces, after a column `n` of row numbers."""
    rows = draw(st.integers(1, 24))
    columns: dict[str, Any] = {f"{name}n": pa.array(range(rows), pa.int64())}
    for place, kind in enumerate(draw(st.lists(st.sampled_from(list(KINDS)), min_size=1, max_size=4))):
        values = st.one_of(st.none(), KINDS[kind]) if draw(st.booleans()) else KINDS[kind]
        columns[f"{name}{place}"] = pa.array(draw(st.lists(values, min_size=rows, max_size=rows)), kind)
    table = pa.table(columns)
    cuts = sorted({0, rows, *draw(st.lists(st.integers(0, rows), max_size=3))})
    return pa.concat_tables([table.slice(a, b - a) for a, b in pairwise(cuts)])


def delivered(pipe: flow.Pipeline, data: Draw) -> pa.Table:
    """One epoch in Arrow batches, with a window, batch size, lanes and remainder that hypothesis draws."""
    lanes = data.draw(st.integers(1, 3))
    if data.draw(st.booleans()):
        pipe = pipe.shuffle(data.draw(st.integers(1, 9))).seed(data.draw(st.integers(0, 3)))
    batched = pipe.batch(lanes * data.draw(st.integers(1, 3)), lanes=lanes, remainder="keep")
    with batched.loader(output="arrow", threads=2) as loader:
        batches = list(loader)
    return pa.Table.from_batches(batches)


def check(got: pa.Table, want: pa.Table) -> None:
    """The rows of `want`, whatever their order, by the first column; with its types."""
    assert got.schema.names == want.schema.names
    assert got.schema.types == want.schema.types
    order = np.argsort(got.column(0).to_numpy(), kind="stable")
    assert got.take(order).to_pylist() == want.to_pylist()


@settings(max_examples=25)
@given(table=tables(), data=st.data())
def test_any_table_in_memory(table: pa.Table, data: Draw) -> None:
    check(delivered(flow.from_arrow(table), data), table)


@settings(max_examples=25)
@given(table=tables(), data=st.data())
def test_any_table_in_parquet(table: pa.Table, data: Draw) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.parquet"
        pq.write_table(table, path, row_group_size=data.draw(st.integers(1, 30)))
        check(delivered(flow.read(path), data), table)


@settings(max_examples=25)
@given(table=tables(), data=st.data())
def test_any_table_in_an_arrow_file(table: pa.Table, data: Draw) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.arrow"
        with pa.ipc.new_file(str(path), table.schema) as out:
            out.write_table(table)
        check(delivered(flow.read(path), data), table)


@settings(max_examples=25)
@given(table=tables(), keep=st.integers(1, 4), counted=st.booleans(), data=st.data())
def test_any_table_through_a_filter_by_function(
    table: pa.Table, keep: int, counted: bool, data: Draw
) -> None:
    kept = flow.from_arrow(table).filter(lambda row: row["cn"] % keep == 0)
    want = table.take(pa.array(range(0, table.num_rows, keep)))
    check(delivered(kept.counted() if counted else kept, data), want)


@settings(max_examples=25)
@given(table=tables(), data=st.data())
def test_any_table_beside_a_column_that_a_function_adds(table: pa.Table, data: Draw) -> None:
    mapped = flow.from_arrow(table).map(lambda row: {"twice": row["cn"] * 2}, add=True)
    want = table.append_column("twice", pa.array([2 * n for n in range(table.num_rows)], pa.int64()))
    check(delivered(mapped, data), want)


@settings(max_examples=25)
@given(table=tables(), data=st.data())
def test_any_table_through_functions_that_return_what_they_get(table: pa.Table, data: Draw) -> None:
    for pipe in (
        flow.from_arrow(table).map(lambda row: row, schema=table.schema),
        flow.from_arrow(table).map(lambda columns: columns, batched=True, batch_size=5, schema=table.schema),
        flow.from_arrow(table).flat_map(lambda row: [row], schema=table.schema),
    ):
        check(delivered(pipe, data), table)


@settings(max_examples=25)
@given(first=tables(), data=st.data())
def test_any_table_joined_with_itself_end_to_end(first: pa.Table, data: Draw) -> None:
    second = first.set_column(0, "cn", pa.array(range(first.num_rows, 2 * first.num_rows), pa.int64()))
    joined = flow.concat(flow.from_arrow(first), flow.from_arrow(second).filter(lambda row: True).counted())
    check(delivered(joined, data), pa.concat_tables([first, second]))


@settings(max_examples=25)
@given(first=tables("a"), second=tables("b"), data=st.data())
def test_any_two_tables_side_by_side(first: pa.Table, second: pa.Table, data: Draw) -> None:
    rows = min(first.num_rows, second.num_rows)
    pairs = flow.zip(flow.from_arrow(first).take(rows), flow.from_arrow(second).take(rows))
    want = first.slice(0, rows)
    for name in second.schema.names:
        want = want.append_column(name, second[name].slice(0, rows))
    check(delivered(pairs, data), want)


@settings(max_examples=25)
@given(table=tables(), data=st.data())
def test_any_table_by_row_number_is_what_the_batches_hold(table: pa.Table, data: Draw) -> None:
    pipe = flow.from_arrow(table)
    row = data.draw(st.integers(0, table.num_rows - 1))
    got = pipe[row]
    for name, want in table.slice(row, 1).to_pylist()[0].items():
        value = got[name]
        if isinstance(value, np.ndarray):
            assert value.tolist() == want
        elif isinstance(value, np.datetime64 | np.timedelta64):
            # NumPy's times have no zone: those that had one are in UTC.
            assert value.item() == (want.replace(tzinfo=None) if isinstance(want, datetime) else want)
        else:
            assert value == want
