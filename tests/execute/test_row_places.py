"""Where a bad row lies: said by the error that it causes, whoever asked for the row."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dataflow as flow
from dataflow.errors import DataError, StageError


def no_fours(row: dict[str, Any]) -> bool:
    if row["x"] == 4:
        raise ValueError("no fours")
    return True


def of_row(pipe: flow.Pipeline) -> object:
    return pipe[4]


def of_batch(pipe: flow.Pipeline) -> object:
    with pipe.batch(6).loader(output="numpy") as loader:
        return next(iter(loader))


def of_count(pipe: flow.Pipeline) -> object:
    return pipe.filter(no_fours).count()


@pytest.mark.parametrize("ask", [of_row, of_batch, of_count])
def test_an_error_of_a_function_has_a_note_with_file_and_row(
    ask: Callable[[flow.Pipeline], object], tmp_path: Path
) -> None:
    for part in range(2):
        pq.write_table(pa.table({"x": range(3 * part, 3 * part + 3)}), tmp_path / f"{part}.parquet")
    pipe = flow.read(tmp_path)
    if ask is not of_count:
        pipe = pipe.map(lambda row: {"fine": no_fours(row)})
    with pytest.raises(StageError, match="no fours, sample 0:4") as caught:
        ask(pipe)
    assert caught.value.__notes__ == ["1.parquet, row 1"]


def test_a_null_that_no_tensor_holds_is_named_by_file_and_row(tmp_path: Path) -> None:
    for part in range(2):
        values = pa.array([1, 2, None if part else 3], pa.int64())
        pq.write_table(pa.table({"x": values}), tmp_path / f"{part}.parquet")
    with pytest.raises(DataError, match=r"1\.parquet, row 2: column 'x' has 1 null") as caught:
        of_batch(flow.read(tmp_path))
    assert (caught.value.file, caught.value.row) == ("1.parquet", 2)
    assert ".nulls('x'" in caught.value.hint
