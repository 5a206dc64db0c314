"""What a type checker knows of a loader: mypy reads this file as part of `make check`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from inspect import signature
from typing import Any, assert_type, get_type_hints

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest

import dataflow as flow
from dataflow.spec import LoaderSection
from loaders.arguments import Arguments, GivenOptions
from loaders.ranked import RankedLoader
from loaders.torch import TorchLoader

OF_A_BATCH = {"device", "output", "collate"}
# What its file imports for the type checker alone.
ON_DEMAND = {"RankedLoader": RankedLoader}
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
    given = signature(flow.Pipeline.loader).parameters.keys() - {"self", "unknown"}
    assert given == Arguments.__annotations__.keys() | OF_A_BATCH


def test_what_a_loader_may_be_given_has_the_same_name_type_and_default_wherever_it_is_written() -> None:
    arguments = signature(flow.Pipeline.loader, eval_str=True, locals=ON_DEMAND).parameters
    declared, checked = get_type_hints(GivenOptions), get_type_hints(Arguments)
    defaults = {field.name: field.default for field in fields(GivenOptions)}
    for name, kind in declared.items():
        assert (arguments[name].annotation, arguments[name].default) == (kind, defaults[name]), name
        assert checked[name] == kind, name
    of_the_rank = {"rank", "world_size", "mesh", "group"}
    assert checked.keys() == declared.keys() | of_the_rank
    assert all(arguments[name].annotation == checked[name] for name in of_the_rank)
    # What says of a batch what it is, and is plain data, is in specs as well.
    section = {field.name: field.default for field in fields(LoaderSection)}
    assert section.keys() == declared.keys() | {"device", "output"}
    assert all(arguments[name].default == default for name, default in section.items())


@pytest.mark.parametrize("asking", [flow.Pipeline.explain, flow.Pipeline.outline])
def test_who_asks_how_a_loader_would_read_gives_its_arguments_as_to_it(asking: Callable[..., object]) -> None:
    declared = get_type_hints(GivenOptions)
    defaults = {field.name: field.default for field in fields(GivenOptions)}
    taken = {**signature(asking, eval_str=True).parameters}
    del taken["self"], taken["world_size"]
    device = signature(flow.Pipeline.loader, eval_str=True, locals=ON_DEMAND).parameters["device"]
    assert taken.pop("device") == device
    assert taken.keys() == {"memory_limit", "threads", "on_error", "backend"}
    for name, argument in taken.items():
        assert (argument.annotation, argument.default) == (declared[name], defaults[name]), name
