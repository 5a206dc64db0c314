"""`pad`: lists of one length, of which nulls stay nulls, and errors that say where the row is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dataflow as flow
from dataflow.errors import DataError

LENGTH = 3
KINDS = [pa.list_(pa.int16()), pa.large_list(pa.float64()), pa.list_(pa.int32(), 2)]


def lists(kind: Any, item: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    size = kind.list_size if pa.types.is_fixed_size_list(kind) else None
    return st.lists(item, min_size=size or 0, max_size=size or LENGTH)


def padded(row: list[Any] | None) -> list[Any] | None:
    return None if row is None else row + [7] * (LENGTH - len(row))


@given(st.data(), st.sampled_from(KINDS), st.integers(0, 2))
def test_nulls_stay_where_they_are_and_all_else_has_the_length(
    data: st.DataObject, kind: Any, skipped: int
) -> None:
    item = st.none() | st.integers(-9, 9)
    rows = data.draw(st.lists(st.none() | lists(kind, item), min_size=3, max_size=6))
    array = pa.array(rows, kind).slice(skipped)
    pipe = flow.from_arrow(pa.table({"v": array})).pad({"v": LENGTH}, value=7, mask=True)
    (batch,) = pipe.batch(len(array)).loader(output="arrow")
    batch.validate(full=True)
    assert batch.column("v").type == pa.list_(kind.value_type, LENGTH)
    assert batch.column("v").to_pylist() == [padded(row) for row in rows[skipped:]]
    real = [[place < len(row or []) for place in range(LENGTH)] for row in rows[skipped:]]
    assert batch.column("v__mask").to_pylist() == real


LACKING = flow.from_arrow(pa.table({"v": pa.array([[1], None, [2, 3], [4, None]], pa.list_(pa.int64()))}))


@pytest.mark.parametrize(("rows", "what"), [(3, "1 null "), (4, "1 null ")])
def test_a_null_list_is_an_error_until_a_policy_is_chosen(rows: int, what: str) -> None:
    with (
        LACKING.take(rows).pad({"v": 2}).batch(rows).loader(output="numpy") as loader,
        pytest.raises(DataError, match=f"column 'v' has {what}.*first in sample 0:1") as caught,
    ):
        next(iter(loader))
    assert ".nulls('v', value=0, mask=True)" in caught.value.hint


def test_nulls_in_front_of_pad_or_behind_it_say_what_becomes_of_a_null_list() -> None:
    front = LACKING.nulls("v", value=9, mask=True).pad({"v": 2})
    behind = LACKING.pad({"v": 2}).nulls("v", value=9, mask=True)
    for pipe, want in ((front, [0, 0]), (behind, [9, 9])):
        (batch,) = pipe.batch(4).loader(output="numpy")
        assert isinstance(batch["v"], np.ndarray)
        assert batch["v"].tolist() == [[1, 0], want, [2, 3], [4, 9]]
        assert batch["v__mask"].tolist() == [True, False, True, True]


def too_long(folder: Path) -> flow.Pipeline:
    for part, lengths in enumerate([(1, 2), (2, 5, 1)]):
        pq.write_table(pa.table({"v": [[0] * length for length in lengths]}), folder / f"{part}.parquet")
    return flow.read(folder).pad({"v": 2})


def test_a_list_that_is_too_long_is_an_error_that_names_file_and_row(tmp_path: Path) -> None:
    pipe = too_long(tmp_path)
    with pipe.batch(5).loader(output="numpy") as loader, pytest.raises(DataError) as caught:
        next(iter(loader))
    with pytest.raises(DataError) as by_number:
        pipe[3]
    for error in (caught.value, by_number.value):
        assert error.message == "1.parquet, row 1: pad: a list of 5 values in column 'v' is longer than 2."
        assert (error.file, error.row) == ("1.parquet", 1)
        assert error.hint == "use a larger length, or truncate=True"


def test_a_list_that_is_too_long_is_a_bad_row_like_any_other(tmp_path: Path) -> None:
    with too_long(tmp_path).batch(4).loader(output="numpy", on_error="skip") as loader:
        (batch,) = loader
        assert len(batch["v"]) == 4
        assert loader.stats()["errors"] == 1
