"""Bytes of values: what is equal has the same, what is not has others, whatever the form and the place in an array."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataflow.errors import PlanError
from dataflow.graph.value_bytes import value_bytes

UTC = pa.timestamp("us", "UTC")
PARIS = pa.timestamp("us", "Europe/Paris")


def bytes_of(value: object, kind: pa.DataType) -> bytes:
    (found,) = value_bytes(pa.array([value], kind))
    return found


def counts(count: int, kind: Any) -> pa.Array[Any]:
    """One time by the count of its unit."""
    return pa.array([count], pa.int64() if kind.bit_width == 64 else pa.int32()).view(kind)


@pytest.mark.parametrize(
    ("value", "kind", "written"),
    [
        (None, pa.int64(), b"n"),
        (None, pa.null(), b"n"),
        (True, pa.bool_(), b"b\x01"),
        (0, pa.int64(), b"i\x00"),
        (-1, pa.int8(), b"i\xff"),
        (128, pa.int16(), b"i\x80\x00"),
        (2**64 - 1, pa.uint64(), b"i" + b"\xff" * 8 + b"\x00"),
        (1.5, pa.float64(), bytes.fromhex("66000000000000f83f")),
        (-0.0, pa.float64(), bytes.fromhex("660000000000000000")),
        (math.nan, pa.float32(), bytes.fromhex("66000000000000f87f")),
        (Decimal("-1.50"), pa.decimal128(5, 2), b"d-15e-1"),
        (Decimal("0.00"), pa.decimal128(5, 2), b"d0e0"),
        ("é", pa.string(), b"s\xc3\xa9"),
        (b"\x00", pa.binary(), b"y\x00"),
        ([1, None], pa.list_(pa.int8()), b"l" + b"\x02" + b"\x00" * 7 + b"i\x01" + b"\x01" + b"\x00" * 7 + b"n"),
        ({"a": 1}, pa.struct([("a", pa.int8())]), b"r\x01" + b"\x00" * 7 + b"a\x02" + b"\x00" * 7 + b"i\x01"),
        ({}, pa.struct([]), b"r"),
        ((1, 2, 3), pa.month_day_nano_interval(), b"m1 2 3"),
    ],
)  # fmt: skip
def test_a_value_is_written_as_the_table_says(value: object, kind: pa.DataType, written: bytes) -> None:
    assert bytes_of(value, kind) == written


@pytest.mark.parametrize(
    ("count", "kind", "written"),
    [
        (1, pa.date32(), b"D\x01"),
        (86_400_000, pa.date64(), b"D\x01"),
        (1, pa.timestamp("ns"), b"t\x01"),
        (1, pa.timestamp("s"), b"t\x00\xca\x9a\x3b"),
        (1_000, pa.timestamp("ms"), b"t\x00\xca\x9a\x3b"),
        (1, pa.timestamp("ns", "UTC"), b"z\x01"),
        (2**62, pa.timestamp("s"), b"t" + (2**62 * 10**9).to_bytes(12, "little")),
        (1, pa.time32("s"), b"c\x00\xca\x9a\x3b"),
        (1, pa.time64("ns"), b"c\x01"),
        (-1, pa.duration("ns"), b"u\xff"),
    ],
)  # fmt: skip
def test_a_time_is_its_nanoseconds_in_every_unit(count: int, kind: pa.DataType, written: bytes) -> None:
    assert value_bytes(counts(count, kind)) == [written]


@pytest.mark.parametrize(
    ("value", "kinds"),
    [
        (7, [pa.int8(), pa.uint8(), pa.int32(), pa.int64(), pa.uint64()]),
        (0.25, [pa.float16(), pa.float32(), pa.float64()]),
        ("word", [pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string())]),
        (b"word", [pa.binary(), pa.large_binary(), pa.binary_view(), pa.binary(4)]),
        (Decimal("1.5"), [pa.decimal128(2, 1), pa.decimal128(30, 20), pa.decimal256(60, 5)]),
        (
            [1, 2],
            [
                pa.list_(pa.int8()),
                pa.large_list(pa.int64()),
                pa.list_(pa.int32(), 2),
                pa.list_view(pa.int8()),
            ],
        ),
        (None, [pa.int8(), pa.string(), pa.list_(pa.int8(), 2), pa.struct([("a", pa.int8())]), pa.null()]),
    ],
)
def test_equal_values_have_the_same_bytes_in_every_form(value: object, kinds: list[pa.DataType]) -> None:
    assert len({bytes_of(value, kind) for kind in kinds}) == 1


def test_one_instant_has_the_same_bytes_in_every_zone() -> None:
    assert (
        value_bytes(counts(5, UTC))
        == value_bytes(counts(5, PARIS))
        != value_bytes(counts(5, pa.timestamp("us")))
    )


def test_values_of_different_kinds_have_different_bytes() -> None:
    arrays = [
        pa.array([1]), pa.array([1.0]), pa.array([True]), pa.array(["1"]), pa.array([b"1"]), pa.array([[1]]),
        pa.array([Decimal(1)]), pa.array([{"a": 1}]), counts(1, pa.date32()), counts(1, pa.timestamp("ns")),
        counts(1, pa.time64("ns")), counts(1, pa.duration("ns")), pa.array([None]), pa.array([[[1]]]),
        pa.array([["1"]]), pa.array([{"b": 1}]),
    ]  # fmt: skip
    found = [bytes for array in arrays for bytes in value_bytes(array)]
    assert len(set(found)) == len(arrays)


def test_a_decimal_is_exact_whatever_the_context_of_the_caller() -> None:
    value = Decimal("12345678901234567890123456789.123456789")
    with localcontext(prec=5):
        assert bytes_of(value, pa.decimal128(38, 9)) == b"d12345678901234567890123456789123456789e-9"


def test_a_tensor_is_its_numbers_however_they_are_stored() -> None:
    rows = np.arange(6).reshape(1, 2, 3)
    stored = pa.array([rows.transpose(0, 2, 1).ravel().tolist()], pa.list_(pa.int64(), 6))
    turned: Any = pa.fixed_shape_tensor(pa.int64(), [3, 2], permutation=[1, 0])
    (found,) = value_bytes(pa.ExtensionArray.from_storage(turned, stored))
    assert found == bytes_of(list(range(6)), pa.list_(pa.int64()))


@given(
    st.lists(
        st.none() | st.lists(st.none() | st.fixed_dictionaries({"a": st.none() | st.integers(-300, 300)}))
    ),
    st.integers(0, 5),
)
def test_a_value_in_a_slice_has_the_bytes_that_it_has_alone(rows: list[Any], first: int) -> None:
    kind = pa.list_(pa.struct([("a", pa.int64())]))
    assert value_bytes(pa.array(rows, kind)[first:]) == [bytes_of(row, kind) for row in rows[first:]]


def test_a_map_is_the_list_of_its_pairs() -> None:
    pairs = pa.array([[("x", 1)], None], pa.map_(pa.string(), pa.int8()))
    listed = pa.list_(pa.struct([pa.field("key", pa.string()), pa.field("value", pa.int8())]))
    assert value_bytes(pairs) == value_bytes(pa.array([[{"key": "x", "value": 1}], None], listed))


def test_run_ends_are_the_values_they_stand_for() -> None:
    ends: Any = pa.array([2, 3], pa.int32())
    runs = pa.RunEndEncodedArray.from_arrays(ends, pa.array(["a", None]))
    assert value_bytes(runs) == [b"sa", b"sa", b"n"]


def test_a_type_without_bytes_is_a_plan_error() -> None:
    union = pa.UnionArray.from_sparse(pa.array([0], pa.int8()), [pa.array([1])])
    with pytest.raises(PlanError, match="cannot be told apart") as caught:
        value_bytes(union)
    assert caught.value.hint
