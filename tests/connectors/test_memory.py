from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch

from connectors.contract import Fragment, Opened
from connectors.memory import InMemory, from_arrow, from_columns
from connectors.store import Store
from dataflow.errors import DataError, PlanError


def fragments_of(memory: InMemory) -> tuple[pa.Schema, list[Fragment]]:
    scan = memory.scan(Store(), memory.files())
    arrays = (scan.file, scan.offset, scan.length, scan.rows)
    return scan.schema, [Fragment(*numbers) for numbers in zip(*(a.tolist() for a in arrays), strict=True)]


def table_of(memory: InMemory) -> pa.Table:
    schema, fragments = fragments_of(memory)
    opened = Opened(Store(), memory.files(), {})
    chunks = [c for f in fragments for c in memory.read(opened, f, schema, 0, f.rows, 1 << 20)]
    return pa.Table.from_batches([chunk.batch for chunk in chunks], schema)


def test_a_table_is_cut_into_fragments_of_at_most_65536_rows_at_its_chunks() -> None:
    table = pa.concat_tables([pa.table({"x": np.arange(n)}) for n in (70_000, 5_000, 0, 65_536)])
    assert [f.rows for f in fragments_of(InMemory(table))[1]] == [65_536, 4_464, 5_000, 65_536]
    assert table_of(InMemory(table)).equals(table)


def test_a_table_of_tiny_chunks_is_joined() -> None:
    table = pa.concat_tables([pa.table({"x": [k]}) for k in range(3000)])
    assert [f.rows for f in fragments_of(InMemory(table))[1]] == [3000]
    assert table_of(InMemory(table)).equals(table)


def test_nothing_is_copied() -> None:
    values = np.arange(200_000)
    memory = from_columns(
        {"x": values, "y": values.reshape(-1, 1), "z": values.astype(np.float32).reshape(-1, 1, 1)}
    )
    schema, fragments = fragments_of(memory)
    opened = Opened(Store(), memory.files(), {})
    (chunk,) = memory.read(opened, fragments[1], schema, 10, 20, 100)
    assert np.shares_memory(chunk.batch.column("x").to_numpy(), values)
    assert chunk.batch.column("x")[0].as_py() == 65_546


@pytest.mark.parametrize("rows", [0, 3])
def test_tables_without_rows_or_columns_are_read(rows: int) -> None:
    table = pa.table({"x": pa.array(range(rows), pa.int64())})
    assert table_of(InMemory(table)).equals(table)
    schema, fragments = fragments_of(InMemory(table.select([])))
    assert schema == pa.schema([])
    assert sum(fragment.rows for fragment in fragments) == rows
    assert from_columns({}).table.num_rows == 0


def test_arrow_data_of_any_kind_is_taken() -> None:
    table = pa.table({"x": [1, 2], "w": pa.array(["a", "b"]).dictionary_encode()})
    plain = pa.table({"x": [1, 2], "w": ["a", "b"]})

    class Frame:
        """A data frame of another library."""

        def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
            return table.__arrow_c_stream__(requested_schema)

    for rows in (table, table.to_batches()[0], table.to_reader(), Frame()):
        assert table_of(from_arrow(rows)).equals(plain)


def test_what_is_not_arrow_data_is_an_error() -> None:
    wrong: Any = {"x": [1]}
    with pytest.raises(PlanError, match="a dict") as caught:
        from_arrow(wrong)
    assert "from_columns" in caught.value.hint
    twice = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"])
    with pytest.raises(PlanError, match="'a' occurs 2 times") as caught:
        from_arrow(twice)
    assert "rename" in caught.value.hint


def test_columns_of_every_kind_become_arrow_columns() -> None:
    memory = from_columns(
        {
            "list": [1, None],
            "text": ["a", "b"],
            "words": np.array(["c", "dd"]),
            "nested": [{"a": [1]}, {"a": []}],
            "ints": np.array([1, 2], np.uint8),
            "bools": np.array([True, False]),
            "rows": np.ones((2, 3), np.float16),
            "image": np.ones((2, 3, 4, 5), np.uint8),
            "tensor": torch.ones(2, 3, requires_grad=True),
            "list of arrays": [np.zeros(2), np.zeros(3)],
            "list of images": [np.zeros((2, 2)), np.ones((2, 2))],
            "list of tensors": [torch.zeros(2, 2), torch.ones(2, 2)],
            "times": np.array(["2024-01-01", "NaT"], "M8[us]"),
            "masked": np.ma.MaskedArray([1, 2], [False, True]),
            "arrow": pa.chunked_array([[1], [2]]),
        }
    )
    types = dict(zip(memory.table.schema.names, memory.table.schema.types, strict=True))
    assert types == {
        "list": pa.int64(),
        "text": pa.string(),
        "words": pa.string(),
        "nested": pa.struct([("a", pa.list_(pa.int64()))]),
        "ints": pa.uint8(),
        "bools": pa.bool_(),
        "rows": pa.list_(pa.float16(), 3),
        "image": pa.fixed_shape_tensor(pa.uint8(), (3, 4, 5)),
        "tensor": pa.list_(pa.float32(), 3),
        "list of arrays": pa.list_(pa.float64()),
        "list of images": pa.fixed_shape_tensor(pa.float64(), (2, 2)),
        "list of tensors": pa.fixed_shape_tensor(pa.float32(), (2, 2)),
        "times": pa.timestamp("us"),
        "masked": pa.int64(),
        "arrow": pa.int64(),
    }
    assert memory.table["masked"].to_pylist() == [1, None]
    assert memory.table["times"].null_count == 1
    assert table_of(memory).num_rows == 2


@pytest.mark.parametrize(
    ("columns", "said", "hint"),
    [
        ({"a": [1, 2], "b": [1]}, "'a' 2, 'b' 1", "one length"),
        ({"a": [object()]}, "'a' cannot become", "of one type"),
        ({"a": [1, "x"]}, "'a' cannot become", "of one type"),
        ({"a": np.ones(2, complex)}, "'a' cannot become", "of one type"),
        ({"a": [np.ones((2, 2)), np.ones((3, 3))]}, "'a' cannot become", "of one type"),
        ({"a": "text"}, "'a' is a str", "sequence"),
        ({"a": 3}, "'a' is a int", "sequence"),
        ({"a": iter([1])}, "'a' is a list_iterator", "sequence"),
        ({"a": torch.ones(2, dtype=torch.bfloat16)}, "'a' cannot become", "of one type"),
        ({"a": np.array(5)}, "'a': an array without axes has no rows.\n  hint: [^\n]*$", "at least one axis"),
    ],
)
def test_columns_that_do_not_fit_are_an_error(columns: dict[str, Any], said: str, hint: str) -> None:
    with pytest.raises(PlanError, match=said) as caught:
        from_columns(columns)
    assert hint in caught.value.hint


def test_another_table_has_another_etag_and_an_equal_one_the_same() -> None:
    def etag(table: pa.Table) -> str:
        return from_arrow(table).files()[0].etag

    table = pa.table({"x": np.arange(1000)})
    assert etag(table) == etag(pa.table({"x": np.arange(1000)}))
    assert etag(table) != etag(pa.table({"x": np.arange(1000)[::-1].copy()}))
    assert etag(table) != etag(pa.table({"y": np.arange(1000)}))
    assert etag(table.slice(0, 0)) == etag(pa.table({"x": pa.array([], pa.int64())}))
    words = pa.chunked_array([pa.array(["a"]).dictionary_encode(), pa.array(["b"]).dictionary_encode()])
    assert etag(pa.table({"w": words}))


def test_a_table_travels_to_other_processes_without_its_fragments() -> None:
    memory = InMemory(pa.table({"x": np.arange(100_000)}))
    size = len(pickle.dumps(memory))
    fragments_of(memory)
    assert len(pickle.dumps(memory)) == size
    assert table_of(pickle.loads(pickle.dumps(memory))).equals(memory.table)


def test_a_fragment_of_another_table_is_an_error() -> None:
    memory = InMemory(pa.table({"x": [1, 2, 3]}))
    opened = Opened(Store(), memory.files(), {})
    for fragment in (Fragment(0, 1, 1, 3), Fragment(0, 0, 1, 4)):
        with pytest.raises(DataError, match="is not in the table") as caught:
            list(memory.read(opened, fragment, memory.table.schema, 0, 3, 10))
        assert "resume" in caught.value.hint
