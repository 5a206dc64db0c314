"""One schema for all files."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from connectors.conform import conform
from dataflow.errors import DataError
from dataflow.index.schemas import bare, unify


def joined(*types: Any) -> Any:
    schema = unify((f"f{n}", pa.schema([("x", kind)])) for n, kind in enumerate(types))
    return schema.field("x").type


def struct(**fields: pa.DataType) -> pa.DataType:
    return pa.struct(list(fields.items()))


FITTING: list[tuple[Any, Any, Any]] = [
    (pa.null(), pa.string(), pa.string()),
    (pa.int8(), pa.int64(), pa.int64()),
    (pa.uint8(), pa.uint32(), pa.uint32()),
    (pa.uint8(), pa.int8(), pa.int16()),
    (pa.uint32(), pa.int8(), pa.int64()),
    (pa.uint8(), pa.int64(), pa.int64()),
    (pa.float32(), pa.float64(), pa.float64()),
    (pa.float16(), pa.float32(), pa.float32()),
    (pa.int64(), pa.float64(), pa.float64()),
    (pa.uint64(), pa.float32(), pa.float64()),
    (pa.int32(), pa.float64(), pa.float64()),
    (pa.int32(), pa.float32(), pa.float64()),
    (pa.int16(), pa.float32(), pa.float32()),
    (pa.int16(), pa.float16(), pa.float32()),
    (pa.int8(), pa.float16(), pa.float16()),
    (pa.list_(pa.int64()), pa.list_(pa.float64()), pa.list_(pa.float64())),
    (struct(a=pa.int64()), struct(a=pa.float64()), struct(a=pa.float64())),
    (pa.string(), pa.large_string(), pa.large_string()),
    (pa.binary(), pa.large_binary(), pa.large_binary()),
    (pa.dictionary(pa.int8(), pa.string()), pa.string(), pa.string()),
    (
        pa.dictionary(pa.int8(), pa.string()),
        pa.dictionary(pa.int32(), pa.string()),
        pa.dictionary(pa.int32(), pa.string()),
    ),
    (pa.timestamp("s"), pa.timestamp("ms"), pa.timestamp("ms")),
    (pa.list_(pa.null()), pa.list_(pa.int64()), pa.list_(pa.int64())),
    (pa.list_(pa.int8()), pa.large_list(pa.int32()), pa.large_list(pa.int32())),
    (pa.list_(pa.int8(), 3), pa.list_(pa.int16(), 3), pa.list_(pa.int16(), 3)),
    (struct(a=pa.int8()), struct(b=pa.string()), struct(a=pa.int8(), b=pa.string())),
    (struct(a=pa.int8()), struct(a=pa.int64()), struct(a=pa.int64())),
]

CLASHING: list[tuple[Any, Any]] = [
    (pa.uint64(), pa.int8()),
    (pa.int64(), pa.string()),
    (pa.bool_(), pa.int8()),
    (pa.string(), pa.list_(pa.string())),
    (pa.list_(pa.int8(), 3), pa.list_(pa.int8(), 4)),
    (pa.decimal128(10, 2), pa.int64()),
    (pa.dictionary(pa.int8(), pa.string()), pa.int64()),
]


@pytest.mark.parametrize(("a", "b", "both"), FITTING)
def test_types_that_fit_have_one_whatever_comes_first(a: Any, b: Any, both: Any) -> None:
    assert joined(a, b) == both
    assert joined(b, a).equals(both) or pa.types.is_struct(both)
    assert joined(a, a) == a


@pytest.mark.parametrize(("a", "b", "both"), FITTING)
def test_rows_of_either_type_conform_to_the_joined_one(a: Any, b: Any, both: Any) -> None:
    for kind in (a, b):
        batch = pa.record_batch([pa.nulls(2, kind)], names=["x"])
        assert conform(batch, pa.schema([("x", both)]), file="f").column(0).type == both


@pytest.mark.parametrize(("a", "b"), CLASHING)
def test_types_that_do_not_fit_are_an_error_that_names_both_files_and_the_column(a: Any, b: Any) -> None:
    for first, second in ((a, b), (b, a)):
        with pytest.raises(DataError, match=r"f1: column 'x' is .* here, but .* in f0") as caught:
            joined(first, second)
        assert "'x'" in caught.value.hint


def test_the_file_named_is_the_one_that_gave_the_type() -> None:
    kinds: list[Any] = [pa.null(), pa.int8(), pa.int8(), pa.int64(), pa.int8(), pa.string()]
    with pytest.raises(DataError, match=r"f5: .* but int64 in f3"):
        joined(*kinds)


def test_columns_stand_in_the_order_of_their_appearance_and_are_nullable_where_one_lacks_them() -> None:
    a = pa.schema([pa.field("x", pa.int8(), nullable=False), pa.field("y", pa.int8(), nullable=False)])
    b = pa.schema([pa.field("z", pa.int8(), nullable=False), pa.field("x", pa.int8(), nullable=False)])
    assert unify([("a", a), ("b", b)]) == pa.schema(
        [
            pa.field("x", pa.int8(), nullable=False),
            pa.field("y", pa.int8(), nullable=True),
            pa.field("z", pa.int8(), nullable=True),
        ]
    )


def test_a_struct_field_that_one_file_lacks_is_nullable() -> None:
    a = pa.struct([pa.field("a", pa.int8(), nullable=False)])
    b = pa.struct([pa.field("a", pa.int8(), nullable=False), pa.field("b", pa.int8(), nullable=False)])
    assert [f.nullable for f in joined(a, b)] == [False, True]
    assert [f.nullable for f in joined(b, a)] == [False, True]


def test_what_a_writer_noted_in_one_file_is_left_out() -> None:
    field = pa.field("x", pa.int8(), metadata={"id": "1"})
    schema = bare(pa.schema([field], metadata={"pandas": "..."}))
    assert not schema.metadata
    assert not schema.field("x").metadata


LEAVES = st.sampled_from([pa.null(), pa.int8(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16()])


@given(st.lists(LEAVES, min_size=1, max_size=5), st.randoms(use_true_random=False))
def test_integers_join_alike_in_any_order(kinds: list[Any], random: Any) -> None:
    shuffled = random.sample(kinds, len(kinds))
    assert joined(*kinds) == joined(*shuffled)
