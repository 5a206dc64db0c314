from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from connectors.conform import conform, plain
from dataflow.errors import DataError


def one(values: list[Any], source: pa.DataType, target: pa.DataType) -> pa.Array[Any]:
    """The column after `conform`, made from a slice so that offsets matter."""
    column = pa.array([values[0], *values, values[0]], source)
    batch = pa.RecordBatch.from_arrays([column], names=["x"]).slice(1, len(values))
    done = conform(batch, pa.schema([("x", target)]), file="a.parquet")
    done.validate(full=True)
    assert done.schema == pa.schema([("x", target)])
    return done.column(0)


TENSOR = pa.fixed_shape_tensor(pa.int32(), [2])
# pyarrow's own cast makes invalid arrays of lists of these.
UNKNOWN = pa.struct([("a", pa.int8()), ("n", pa.null())])
WIDENINGS: list[tuple[list[Any], pa.DataType, pa.DataType, list[Any]]] = [
    ([None, None], pa.null(), pa.int64(), [None, None]),
    ([None, None], pa.null(), pa.struct([("a", pa.string())]), [None, None]),
    ([1, None, -3], pa.int8(), pa.int64(), [1, None, -3]),
    ([255], pa.uint8(), pa.int16(), [255]),
    ([1, 2], pa.uint16(), pa.uint64(), [1, 2]),
    ([3, None], pa.int64(), pa.float64(), [3.0, None]),
    ([3], pa.int64(), pa.decimal128(22, 2), [Decimal("3.00")]),
    ([0.5], pa.float16(), pa.float32(), [0.5]),
    ([0.1], pa.float32(), pa.float64(), [pa.scalar(0.1, pa.float32()).as_py()]),
    (["a", None], pa.string(), pa.large_string(), ["a", None]),
    (["a"], pa.string(), pa.binary(), [b"a"]),
    ([b"a"], pa.binary(), pa.large_binary(), [b"a"]),
    ([b"ab"], pa.binary(2), pa.binary(), [b"ab"]),
    (["a", None, "a"], pa.dictionary(pa.int8(), pa.string()), pa.string(), ["a", None, "a"]),
    (["a", None, "b"], pa.string(), pa.dictionary(pa.int32(), pa.string()), ["a", None, "b"]),
    (
        ["a", "b"],
        pa.dictionary(pa.int8(), pa.string()),
        pa.dictionary(pa.int32(), pa.large_string()),
        ["a", "b"],
    ),
    ([datetime(2024, 1, 2)], pa.timestamp("s"), pa.timestamp("us"), [datetime(2024, 1, 2)]),
    ([date(2024, 1, 2)], pa.date32(), pa.timestamp("us"), [datetime(2024, 1, 2)]),
    ([5], pa.duration("s"), pa.duration("ms"), [pa.scalar(5000, pa.duration("ms")).as_py()]),
    ([Decimal("1.5")], pa.decimal128(3, 1), pa.decimal128(10, 2), [Decimal("1.50")]),
    ([7, 7, None], pa.run_end_encoded(pa.int32(), pa.int8()), pa.int16(), [7, 7, None]),
    ([[1], None, [2, 3]], pa.list_(pa.int8()), pa.list_(pa.int64()), [[1], None, [2, 3]]),
    ([[1], [], [2, 3]], pa.list_(pa.int8()), pa.large_list(pa.int8()), [[1], [], [2, 3]]),
    ([[1, 2], None], pa.list_(pa.int8(), 2), pa.list_(pa.int32()), [[1, 2], None]),
    ([[1, 2], None], pa.list_(pa.int8()), pa.list_(pa.int32(), 2), [[1, 2], None]),
    ([[None], []], pa.list_(pa.null()), pa.list_(pa.string()), [[None], []]),
    ([[], None], pa.list_(pa.int8(), 0), pa.list_(pa.int64(), 0), [[], None]),
    ([[], None], pa.list_(pa.int8(), 0), pa.list_(pa.int8()), [[], None]),
    ([[], None], pa.list_(pa.int8()), pa.list_(pa.int64(), 0), [[], None]),
    (
        [[("k", {"a": 1, "n": None})], None],
        pa.map_(pa.string(), UNKNOWN),
        pa.map_(pa.large_string(), UNKNOWN),
        [[("k", {"a": 1, "n": None})], None],
    ),
    (
        [{"a": 1}, None],
        pa.struct([("a", pa.int8())]),
        pa.struct([("b", pa.string()), ("a", pa.int64())]),
        [{"b": None, "a": 1}, None],
    ),
    ([{"a": 1, "b": 2}], pa.struct([("a", pa.int8()), ("b", pa.int8())]), pa.struct([]), [{}]),
    (
        [[{"a": 1}], None, [], [{"a": 2}, None]],
        pa.list_(pa.struct([("a", pa.int8())])),
        pa.large_list(pa.struct([("a", pa.int16()), ("c", pa.bool_())])),
        [[{"a": 1, "c": None}], None, [], [{"a": 2, "c": None}, None]],
    ),
    (
        [[("k", 1)], None],
        pa.map_(pa.string(), pa.int8()),
        pa.map_(pa.string(), pa.int64()),
        [[("k", 1)], None],
    ),
]


@pytest.mark.parametrize(("values", "source", "target", "expected"), WIDENINGS, ids=str)
def test_a_narrower_type_is_widened(
    values: list[Any], source: pa.DataType, target: pa.DataType, expected: list[Any]
) -> None:
    assert one(values, source, target).to_pylist() == expected


@pytest.mark.parametrize("values", [UNKNOWN, pa.struct([("a", pa.int64()), ("n", pa.null())])], ids=str)
@pytest.mark.parametrize("target", [pa.list_, pa.large_list, lambda values: pa.list_(values, 2)])
@pytest.mark.parametrize(
    "source", [pa.list_(pa.field("element", UNKNOWN)), pa.large_list(UNKNOWN), pa.list_(UNKNOWN, 2)], ids=str
)
def test_lists_of_structs_whose_field_is_all_null_take_each_form(
    source: pa.DataType, target: Callable[[pa.DataType], pa.DataType], values: pa.DataType
) -> None:
    rows = [[{"a": 1, "n": None}, {"a": 2, "n": None}], None, [None, {"a": 3, "n": None}]]
    assert one(rows, source, target(values)).to_pylist() == rows


def test_a_tensor_and_its_list_take_each_others_place() -> None:
    assert one([[1, 2]], pa.list_(pa.int32(), 2), TENSOR).type == TENSOR
    storage = pa.array([[1, 2], [3, 4]], pa.list_(pa.int32(), 2))
    batch = pa.record_batch({"x": pa.ExtensionArray.from_storage(TENSOR, storage)})
    done = conform(batch, pa.schema([("x", pa.list_(pa.int64(), 2))]), file="f")
    assert done.to_pydict() == {"x": [[1, 2], [3, 4]]}


@pytest.mark.parametrize(
    ("values", "source", "target"),
    [
        (["a"], pa.string(), pa.int64()),
        ([1], pa.int64(), pa.int32()),
        ([1], pa.int8(), pa.uint8()),
        ([1], pa.uint64(), pa.int64()),
        ([2**53 + 1], pa.int64(), pa.float64()),
        ([0.1], pa.float64(), pa.float32()),
        ([b"a"], pa.binary(), pa.string()),
        ([1], pa.int64(), pa.string()),
        ([True], pa.bool_(), pa.int8()),
        ([datetime(2024, 1, 2)], pa.timestamp("us"), pa.timestamp("us", "UTC")),
        ([datetime(2024, 1, 2)], pa.timestamp("us"), pa.timestamp("s")),
        ([datetime(9999, 1, 2)], pa.timestamp("s"), pa.timestamp("ns")),
        ([[1, 2, 3]], pa.list_(pa.int8()), pa.list_(pa.int8(), 2)),
        ([["a"]], pa.list_(pa.string()), pa.list_(pa.int8())),
        ([{"a": "x"}], pa.struct([("a", pa.string())]), pa.struct([("a", pa.int8())])),
        ([1], pa.int64(), pa.list_(pa.int64())),
        ([1], pa.int64(), TENSOR),
    ],
    ids=str,
)
def test_what_would_change_a_value_is_an_error_that_names_file_and_column(
    values: list[Any], source: pa.DataType, target: pa.DataType
) -> None:
    with pytest.raises(DataError, match=r"a\.parquet.*'x'") as caught:
        one(values, source, target)
    assert "compatible" in caught.value.hint


def test_columns_come_in_the_order_asked_for_and_missing_ones_are_null() -> None:
    batch = pa.record_batch({"a": [1, 2], "b": ["x", "y"], "c": [True, False]})
    schema = pa.schema([("c", pa.bool_()), ("new", pa.list_(pa.int8())), ("a", pa.int64())])
    done = conform(batch, schema, file="f")
    assert done.schema == schema
    assert done.to_pydict() == {"c": [True, False], "new": [None, None], "a": [1, 2]}


def test_a_batch_without_columns_keeps_its_rows() -> None:
    batch = pa.record_batch({"a": [1, 2, 3]})
    assert conform(batch, pa.schema([]), file="f").num_rows == 3
    assert conform(batch.select([]), pa.schema([("z", pa.int8())]), file="f").to_pydict() == {"z": [None] * 3}


def addresses(batch: pa.RecordBatch) -> list[int]:
    """Where the buffers of the first column lie in memory."""
    return [buffer.address for buffer in batch.column(0).buffers() if buffer is not None]


def test_metadata_are_those_of_the_schema_and_nothing_is_copied() -> None:
    batch = pa.record_batch({"a": pa.array([1, 2])})
    schema = pa.schema([pa.field("a", pa.int64(), nullable=False)], metadata={b"k": b"v"})
    done = conform(batch, schema, file="f")
    assert done.schema.equals(schema, check_metadata=True)
    assert addresses(done) == addresses(batch)
    assert conform(done, schema, file="f") is done


def test_a_name_that_occurs_twice_is_an_error() -> None:
    batch = pa.RecordBatch.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"])
    with pytest.raises(DataError, match="occurs 2 times") as caught:
        conform(batch, pa.schema([("a", pa.int64())]), file="f")
    assert "rename" in caught.value.hint


def test_a_plain_schema_has_values_for_dictionaries_and_no_metadata_at_any_depth() -> None:
    words = pa.dictionary(pa.int8(), pa.string())
    marked = pa.field("a", words, nullable=False, metadata={"PARQUET:field_id": "1"})
    schema = pa.schema(
        [
            marked,
            pa.field("b", pa.struct([marked])),
            pa.field("c", pa.list_(marked)),
            pa.field("d", pa.large_list(words)),
            pa.field("e", pa.list_(words, 2)),
            pa.field("f", pa.map_(pa.string(), words)),
            pa.field("g", pa.run_end_encoded(pa.int32(), pa.int8())),
            pa.field("h", TENSOR),
        ],
        metadata={"pandas": "{}"},
    )
    text = pa.field("a", pa.string(), nullable=False)
    expected = pa.schema(
        [
            text,
            pa.field("b", pa.struct([text])),
            pa.field("c", pa.list_(text)),
            pa.field("d", pa.large_list(pa.string())),
            pa.field("e", pa.list_(pa.string(), 2)),
            pa.field("f", pa.map_(pa.string(), pa.string())),
            pa.field("g", pa.int8()),
            pa.field("h", TENSOR),
        ]
    )
    assert plain(schema, file="f").equals(expected, check_metadata=True)


def test_rows_with_dictionaries_at_any_depth_conform_to_the_plain_schema() -> None:
    words = pa.dictionary(pa.int8(), pa.string())
    rows: list[dict[str, Any]] = [
        {"a": "x", "b": {"c": "y"}, "d": ["x", None]},
        {"a": None, "b": None, "d": None},
        {"a": "z", "b": {"c": "z"}, "d": []},
    ]
    schema = pa.schema([("a", words), ("b", pa.struct([("c", words)])), ("d", pa.list_(words))])
    batch = pa.RecordBatch.from_pylist(rows, schema).slice(1)
    done = conform(batch, plain(schema, file="f"), file="f")
    assert done.schema == plain(schema, file="f")
    assert done.to_pylist() == rows[1:]


def test_a_schema_with_a_name_twice_is_an_error() -> None:
    with pytest.raises(DataError, match=r"f: column 'a' occurs 2 times") as caught:
        plain(pa.schema([("a", pa.int8()), ("b", pa.int8()), ("a", pa.int8())]), file="f")
    assert "rename" in caught.value.hint


def test_dictionaries_and_structs_inside_of_maps_are_widened() -> None:
    words = pa.dictionary(pa.int8(), pa.string())
    before = pa.map_(pa.string(), pa.struct([("w", words), ("n", pa.int8())]))
    values = [[("a", {"w": "x", "n": 1}), ("b", None)], None, [], [("c", {"w": None, "n": 2})]]
    batch = pa.record_batch({"m": pa.array(values, before)}).slice(1)
    wanted = pa.schema([("m", pa.map_(pa.string(), pa.struct([("w", pa.string()), ("n", pa.int64())])))])
    got = conform(batch, wanted, file="f")
    assert got.schema == wanted
    assert got.column(0).to_pylist() == values[1:]
