"""`nulls`: at every depth of a column there is a value afterwards."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dataflow as flow
from dataflow.errors import DataError, PlanError

NUMBERS = st.none() | st.integers(-9, 9)


def rows_of(kind: Any) -> st.SearchStrategy[Any]:
    """Rows of a type, with nulls at every depth."""
    if pa.types.is_fixed_size_list(kind):
        return st.none() | st.lists(
            rows_of(kind.value_type), min_size=kind.list_size, max_size=kind.list_size
        )
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return st.none() | st.lists(rows_of(kind.value_type), max_size=3)
    return NUMBERS


def filled(row: Any, kind: Any) -> Any:
    """The row as it should be, 7 for null."""
    if pa.types.is_fixed_size_list(kind):
        return [filled(item, kind.value_type) for item in ([None] * kind.list_size if row is None else row)]
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return [filled(item, kind.value_type) for item in row or []]
    return 7 if row is None else row


KINDS = [
    pa.int16(),
    pa.list_(pa.int16()),
    pa.large_list(pa.int16()),
    pa.list_(pa.int16(), 2),
    pa.list_(pa.list_(pa.int16(), 2), 2),
    pa.list_(pa.list_(pa.int16())),
    pa.list_(pa.list_(pa.int16(), 2)),
    pa.list_(pa.list_(pa.int16()), 2),
]


@given(st.data(), st.sampled_from(KINDS), st.integers(0, 2))
def test_nulls_are_filled_at_every_depth(data: st.DataObject, kind: Any, skipped: int) -> None:
    rows = data.draw(st.lists(rows_of(kind), min_size=3, max_size=6))
    array = pa.array(rows, kind).slice(skipped)
    found = flow.from_arrow(pa.table({"v": array})).nulls("v", value=7)
    (batch,) = found.batch(len(array)).loader(output="arrow")
    assert batch.column("v").type == kind
    assert batch.column("v").to_pylist() == [filled(row, kind) for row in rows[skipped:]]
    batch.validate(full=True)


def test_tensors_are_filled_inside() -> None:
    kind = pa.fixed_shape_tensor(pa.float32(), (2,))
    storage = pa.array([[1, None], None, [3, 4]], kind.storage_type)
    table = pa.table({"v": pa.ExtensionArray.from_storage(kind, storage)})
    (batch,) = flow.from_arrow(table).nulls("v", value=0.5).batch(3).loader(output="numpy")
    assert batch["v"].tolist() == [[1, 0.5], [0.5, 0.5], [3, 4]]


def test_the_mask_says_which_rows_were_present() -> None:
    table = pa.table({"v": pa.array([[1, None], None], pa.list_(pa.int8()))})
    (batch,) = flow.from_arrow(table).nulls("v", value=0, mask=True).batch(2).loader(output="numpy")
    assert batch["v__mask"].tolist() == [True, False]
    assert [row.tolist() for row in batch["v"]] == [[1, 0], []]


def test_lists_of_text_are_emptied_and_their_text_is_filled_by_text_alone() -> None:
    pipe = flow.from_arrow(pa.table({"v": pa.array([["a", None], None])}))
    for value, wanted in ((0, ["a", None]), ("-", ["a", "-"])):
        (batch,) = pipe.nulls("v", value=value).batch(2).loader(output="numpy")
        assert batch["v"] == [wanted, []]
    with pytest.raises(PlanError, match=r"nulls: 5 is no value for column 'v'") as caught:
        pipe.nulls("v", value=5).schema  # noqa: B018
    assert "that type" in caught.value.hint


@pytest.mark.parametrize("output", ["numpy", "torch"])
@pytest.mark.parametrize(
    "kind", [pa.list_(pa.bool_()), pa.list_(pa.bool_(), 2), pa.list_(pa.list_(pa.bool_(), 2))], ids=str
)
def test_nulls_inside_lists_are_refused_with_column_and_sample(kind: Any, output: Any) -> None:
    nested = kind.value_type.num_fields > 0
    row: Any = [[True, None]] if nested else [True, None]
    whole: Any = [[True, False]] if nested else [True, False]
    pipe = flow.from_arrow(pa.table({"v": pa.array([whole, whole, row], kind)}))
    with pytest.raises(DataError, match=r"'v' has 1 null inside its lists \(first in sample 0:2\)") as caught:
        list(pipe.batch(3).loader(output=output))
    assert ".nulls('v', value=False)" in caught.value.hint
    assert len(list(pipe.nulls("v", value=False).batch(3).loader(output=output))) == 1
