"""Errors go from process to process whole: their kind, what they say, and what they know."""

from __future__ import annotations

import pickle

import pytest

from dataflow import errors
from dataflow.errors import DataError, DataflowError, MissingExtraError, StageError

PLAIN = [
    kind("it is 7.", hint="make it 8")
    for kind in vars(errors).values()
    if isinstance(kind, type)
    and issubclass(kind, DataflowError)
    and kind not in (DataError, StageError, MissingExtraError)
]
KNOWING = [
    DataError("it is 7.", file="a.parquet", row=3, offset=512, hint="make it 8"),
    StageError("it is 7.", operator="map", location="train.py:12", hint="make it 8"),
    MissingExtraError("it is not installed.", extra="image"),
]


@pytest.mark.parametrize("error", [*PLAIN, *KNOWING], ids=lambda error: type(error).__name__)
def test_an_error_comes_out_of_a_pickle_as_it_went_in(error: DataflowError) -> None:
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is type(error)
    assert str(copy) == str(error)
    assert error.hint in str(copy)
    assert vars(copy) == vars(error)


def test_every_kind_is_tried() -> None:
    assert {type(error).__name__ for error in (*PLAIN, *KNOWING)} == set(errors.__all__) - {"near"}


def test_a_row_is_located_where_that_becomes_known() -> None:
    error = DataError("it is 7.", hint="make it 8")
    error.locate("a.parquet", 3)
    assert str(error) == "a.parquet, row 3: it is 7.\n  hint: make it 8"
    assert (error.file, error.row) == ("a.parquet", 3)
