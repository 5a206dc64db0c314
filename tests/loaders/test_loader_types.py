"""What a type checker knows of a loader: mypy reads this file as part of `make check`."""

from __future__ import annotations

from inspect import signature
from typing import Any, assert_type

import numpy as np
import numpy.typing as npt
import pyarrow as pa

import dataflow as flow
from dataflow.spec import LoaderSection
from loaders.arguments import Arguments
from loaders.ranked import RankedLoader
from loaders.torch import TorchLoader

PIPE = flow.from_columns({"x": np.arange(4)}).batch(2)


def _sum(batch: dict[str, npt.NDArray[Any] | Any]) -> int:
    return int(batch["x"].sum())


def _rows(batch: pa.RecordBatch) -> int:
    return batch.num_rows


def test_a_loader_has_the_type_of_its_output() -> None:
    with PIPE.loader() as tensors, PIPE.loader(device="cpu", threads=1) as placed:
        assert_type(tensors, TorchLoader)
        assert_type(placed, TorchLoader)
        assert isinstance(tensors, TorchLoader)
    with PIPE.loader(output="numpy", ids=True) as arrays:
        assert_type(arrays, RankedLoader[dict[str, npt.NDArray[Any] | Any]])
        assert not isinstance(arrays, TorchLoader)
        assert [type(batch["x"]) for batch in arrays] == [np.ndarray, np.ndarray]
    with PIPE.loader(output="arrow") as batches:
        assert_type(batches, RankedLoader[pa.RecordBatch])
        assert [batch.num_rows for batch in batches] == [2, 2]


def test_a_loader_with_collate_has_the_type_of_what_that_returns() -> None:
    with PIPE.loader(output="numpy", collate=_sum) as sums:
        assert_type(sums, RankedLoader[int])
        assert list(sums) == [1, 5]
    with PIPE.loader(output="arrow", collate=_rows) as counts:
        assert_type(counts, RankedLoader[int])
        assert list(counts) == [2, 2]


def test_the_type_checker_knows_the_arguments_that_there_are() -> None:
    given = set(signature(flow.Pipeline.loader).parameters) - {"self", "unknown"}
    assert given == {*Arguments.__annotations__, "device", "output", "collate"}
    assert set(LoaderSection.__dataclass_fields__) <= given
