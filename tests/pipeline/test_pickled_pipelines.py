"""Pipelines can be sent to another process where their functions can; loaders and their iterators cannot."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dataflow as flow
from dataflow.errors import PlanError

Copy = Callable[[Any], Any]


def _twice(row: dict[str, Any]) -> dict[str, Any]:
    return {"x": row["x"] * 2}


def _even(row: dict[str, Any]) -> bool:
    return bool(row["x"] % 2 == 0)


def _pickled(thing: Any) -> Any:
    return pickle.loads(pickle.dumps(thing))


_COPIES = pytest.mark.parametrize("copied", [_pickled, copy.copy, copy.deepcopy])


def _in_memory(_: Path) -> flow.Pipeline:
    return flow.from_columns({"x": np.arange(50)})


def _in_files(folder: Path) -> flow.Pipeline:
    for number in range(2):
        rows = range(number * 25, number * 25 + 25)
        pq.write_table(pa.table({"x": rows}), folder / f"{number}.parquet", row_group_size=7)
    return flow.read(folder / "*.parquet")


def _rows(pipe: flow.Pipeline) -> list[list[int]]:
    with pipe.loader(output="numpy", ids=True) as loader:
        return [[*batch["x"].tolist(), *batch["__id__"].tolist()] for batch in loader]


@_COPIES
@pytest.mark.parametrize("read", [_in_memory, _in_files])
def test_a_copy_gives_the_same_rows_whether_the_pipeline_has_run_or_not(
    tmp_path: Path, read: Callable[[Path], flow.Pipeline], copied: Copy
) -> None:
    source = read(tmp_path).filter([("x", ">", 3)])
    joined = flow.concat(source, source).shuffle(9).seed(3)
    pipe = joined.filter(_even).counted().map(_twice, schema={"x": "int64"}).batch(5)
    before = copied(pipe)
    want = _rows(pipe)
    assert want
    assert _rows(before) == want
    assert _rows(copied(pipe)) == want


def test_a_state_goes_with_a_pickled_pipeline(tmp_path: Path) -> None:
    pipe = _in_files(tmp_path).shuffle(9).batch(5)
    with pipe.loader(output="numpy") as loader:
        running = iter(loader)
        next(running)
        sent = pickle.dumps((pipe, loader.state_dict()))
        want = [batch["x"].tolist() for batch in running]
    there, state = pickle.loads(sent)
    with there.loader(output="numpy") as loader:
        loader.load_state_dict(state)
        assert [batch["x"].tolist() for batch in loader] == want


def test_a_function_that_cannot_be_pickled_is_named() -> None:
    def local(row: dict[str, Any]) -> dict[str, Any]:
        return row

    pipe = flow.from_columns({"x": np.arange(5)}).map(local, schema={"x": "int64"})
    with pytest.raises((AttributeError, pickle.PicklingError), match=r"_is_named\.<locals>\.local"):
        pickle.dumps(pipe)


@_COPIES
@pytest.mark.parametrize("output", ["numpy", "torch"])
def test_a_loader_is_not_copied_and_says_what_can_be(output: Any, copied: Copy) -> None:
    with flow.from_columns({"x": np.arange(5)}).batch(1).loader(output=output) as loader:
        with pytest.raises(PlanError, match="a loader cannot be pickled or copied") as caught:
            copied(loader)
        assert "pickle the pipeline and loader.state_dict()" in caught.value.hint
        running = iter(loader)
        next(running)
        with pytest.raises(PlanError, match="an iterator of a loader cannot be pickled or copied") as caught:
            copied(running)
        assert "load it into another loader" in caught.value.hint
        assert len(list(running)) == 4
