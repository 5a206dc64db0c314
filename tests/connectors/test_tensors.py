from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from connectors.tensors import shape_of, to_arrow, to_numpy
from dataflow.errors import DataError, PlanError

NUMBERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
NUMBERS += ["float16", "float32", "float64"]


def dense_arrays() -> st.SearchStrategy[Any]:
    shapes = hnp.array_shapes(min_dims=1, max_dims=4, min_side=0, max_side=5)
    return st.sampled_from([*NUMBERS, "bool"]).flatmap(lambda dtype: hnp.arrays(dtype, shapes))


@given(dense_arrays())
def test_an_array_comes_back_from_arrow_as_it_was(values: np.ndarray[Any, Any]) -> None:
    column = to_arrow(values)
    column.validate(full=True)
    assert len(column) == len(values)
    assert shape_of(column.type) == (values.dtype, values.shape[1:])
    back = to_numpy(column)
    assert back.dtype == values.dtype
    np.testing.assert_array_equal(back, values)


@given(dense_arrays(), st.data())
def test_a_slice_has_the_rows_of_the_slice(values: np.ndarray[Any, Any], data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(values)))
    stop = data.draw(st.integers(start, len(values)))
    again = data.draw(st.integers(0, stop - start))
    column = to_arrow(values).slice(start, stop - start).slice(again)
    np.testing.assert_array_equal(to_numpy(column), values[start + again : stop])


@pytest.mark.parametrize("dtype", NUMBERS)
@pytest.mark.parametrize("shape", [(6,), (6, 4), (6, 2, 3)])
def test_numbers_are_not_copied_either_way(dtype: str, shape: tuple[int, ...]) -> None:
    values = np.ones(shape, dtype)
    assert np.shares_memory(to_numpy(to_arrow(values)), values)
    assert np.shares_memory(to_numpy(to_arrow(values).slice(2)), values)


def test_what_comes_from_arrow_cannot_be_written_and_outlives_the_arrow_array() -> None:
    column = to_arrow(np.arange(1000))
    view = to_numpy(column)
    del column
    gc.collect()
    with pytest.raises(ValueError, match="read-only"):
        view[0] = 1
    assert view.sum() == 499_500


def test_arrays_that_are_not_contiguous_or_not_native_are_copied_right() -> None:
    values = np.arange(24).reshape(4, 6)
    np.testing.assert_array_equal(to_numpy(to_arrow(values.T)), values.T)
    np.testing.assert_array_equal(to_numpy(to_arrow(values[:, ::-2])), values[:, ::-2])
    np.testing.assert_array_equal(to_numpy(to_arrow(values.astype(">i4"))), values)


@pytest.mark.parametrize(
    ("kind", "storage"),
    [
        (pa.timestamp("us", "UTC"), np.int64),
        (pa.timestamp("ns"), np.int64),
        (pa.duration("ms"), np.int64),
        (pa.date64(), np.int64),
        (pa.time64("ns"), np.int64),
        (pa.date32(), np.int32),
        (pa.time32("s"), np.int32),
    ],
)
def test_times_are_the_integers_of_their_unit(kind: pa.DataType, storage: type) -> None:
    integers = np.array([0, 86_400_000 * 2, 86_400_000 * 5], np.int64)
    if pa.types.is_time(kind) or pa.types.is_date32(kind):
        integers = np.array([0, 1, 86_000])
    column = pa.array(integers, pa.int64()).cast(storage_of(storage)).cast(kind)
    assert shape_of(kind) == (np.dtype(storage), ())
    np.testing.assert_array_equal(to_numpy(column[1:]), integers[1:])
    assert to_arrow(integers.astype(storage), kind).equals(column)


def storage_of(storage: type) -> pa.DataType:
    return pa.int64() if storage is np.int64 else pa.int32()


def test_datetime64_and_timedelta64_become_timestamps_and_durations() -> None:
    days = np.array(["2024-02-29", "1969-12-31"], "M8[D]")
    assert to_arrow(days).type == pa.timestamp("s")
    assert to_arrow(days).to_pylist() == [day.astype("M8[us]").item() for day in days]
    assert to_arrow(days.astype("M8[ns]").reshape(2, 1)).type == pa.list_(pa.timestamp("ns"), 1)
    spans = np.array([1, -2], "m8[10ms]")
    assert to_arrow(spans).cast(pa.int64()).to_pylist() == [10, -20]
    with pytest.raises(PlanError) as caught:
        to_arrow(np.array(["NaT"], "M8[s]"))
    assert "integers" in caught.value.hint


def test_lists_of_lists_have_one_axis_for_each() -> None:
    kind = pa.list_(pa.list_(pa.int16(), 3), 2)
    rows = [[[1, 2, 3], [4, 5, 6]], [[7, 8, 9], [10, 11, 12]], [[13, 14, 15], [16, 17, 18]]]
    column = pa.array(rows, kind)
    assert shape_of(kind) == (np.dtype("int16"), (2, 3))
    np.testing.assert_array_equal(to_numpy(column), rows)
    np.testing.assert_array_equal(to_numpy(column[1:]), rows[1:])
    assert to_arrow(np.array(rows, np.int16), kind).equals(column)


@pytest.mark.parametrize("permutation", [None, [0, 1, 2], [2, 0, 1], [1, 2, 0], [2, 1, 0]])
def test_a_permuted_tensor_has_its_logical_shape(permutation: list[int] | None) -> None:
    # By the format specification, axis i of a row is axis permutation[i] of what is stored. pyarrow's own
    # conversion is not the reference: it does not return what it was given for [2, 0, 1] and [1, 2, 0].
    kind = pa.fixed_shape_tensor(pa.float32(), [2, 3, 4], permutation=permutation)
    stored = np.arange(72, dtype=np.float32).reshape(3, 2, 3, 4)
    storage = to_arrow(stored.reshape(3, 24))
    column = pa.ExtensionArray.from_storage(kind, storage)
    expected = stored.transpose(0, *(axis + 1 for axis in permutation or (0, 1, 2)))
    assert shape_of(kind) == (np.dtype("float32"), expected.shape[1:])
    np.testing.assert_array_equal(to_numpy(column), expected)
    np.testing.assert_array_equal(to_numpy(column[1:]), expected[1:])
    back = to_arrow(expected, kind)
    assert isinstance(back, pa.ExtensionArray)
    assert back.storage.equals(storage)


@pytest.mark.parametrize(
    "kind",
    [
        pa.string(),
        pa.binary(),
        pa.binary(4),
        pa.list_(pa.int32()),
        pa.list_(pa.string(), 2),
        pa.struct([("a", pa.int32())]),
        pa.map_(pa.string(), pa.int32()),
        pa.decimal128(5, 2),
        pa.dictionary(pa.int8(), pa.string()),
        pa.null(),
        pa.list_(pa.dictionary(pa.int8(), pa.int32()), 2),
    ],
    ids=str,
)
def test_a_type_without_fixed_shape_is_refused(kind: pa.DataType) -> None:
    assert shape_of(kind) is None
    with pytest.raises(PlanError) as caught:
        to_numpy(pa.array([], kind))
    assert "pad" in caught.value.hint


@pytest.mark.parametrize(
    "column",
    [
        pa.array([1, None, 3]),
        pa.array([True, None, False]),
        pa.array([[1, 2], None, [3, 4]], pa.list_(pa.int32(), 2)),
        pa.array([[1, 2], [5, None], [3, 4]], pa.list_(pa.int32(), 2)),
        pa.array([[[1], [2]], [[2], None], [[3], [4]]], pa.list_(pa.list_(pa.int8(), 1), 2)),
    ],
    ids=lambda column: str(column.type),
)
def test_nulls_are_an_error_only_where_the_slice_has_them(column: Any) -> None:
    with pytest.raises(DataError) as caught:
        to_numpy(column)
    assert "fill or mask" in caught.value.hint
    assert to_numpy(column[2:]).shape[0] == 1
    assert to_numpy(column[:1]).shape[0] == 1


def test_dtypes_and_shapes_that_do_not_fit_are_named() -> None:
    with pytest.raises(PlanError, match="complex128"):
        to_arrow(np.zeros(3, complex))
    with pytest.raises(PlanError, match="object"):
        to_arrow(np.array([None]))
    with pytest.raises(PlanError, match="no rows"):
        to_arrow(np.float32(3))
    with pytest.raises(PlanError, match=r"shape \(3,\)") as caught:
        to_arrow(np.zeros((2, 3), np.int32), pa.list_(pa.int32(), 4))
    assert "shape_of" in caught.value.hint
    with pytest.raises(PlanError, match="int64"):
        to_arrow(np.zeros(2, np.int64), pa.int32())
