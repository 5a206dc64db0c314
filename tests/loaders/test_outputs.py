"""Batches as torch tensors, NumPy arrays and Arrow record batches."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch

import dataflow as flow
from dataflow.errors import DataError, PlanError

TABLE = pa.table(
    {
        "whole": pa.array([1, 2, 3, 4], pa.int64()),
        "half": pa.array(np.array([1, 2, 3, 4], np.float16)),
        "double": pa.array([0.1, 0.2, 0.3, 0.4], pa.float64()),
        "flag": [True, False, True, True],
        "text": ["a", "bb", "", "d"],
        "raw": [b"a", b"", b"\x00", b"d"],
        "ragged": pa.array([[1], [], [2, 3], [4]], pa.list_(pa.int32())),
        "fixed": pa.array([[1, 2], [3, 4], [5, 6], [7, 8]], pa.list_(pa.int16(), 2)),
    }
)


def _one(pipe: flow.Pipeline, **options: Any) -> Any:
    with pipe.batch(4).loader(**options) as loader:
        (batch,) = list(loader)
    return batch


def test_torch_batches_have_tensors_lists_and_lists_of_tensors() -> None:
    batch = _one(flow.from_arrow(TABLE))
    assert list(batch) == TABLE.column_names
    kinds = {name: value.dtype for name, value in batch.items() if isinstance(value, torch.Tensor)}
    assert kinds == {
        "whole": torch.int64, "half": torch.float16, "double": torch.float64, "flag": torch.bool,
        "fixed": torch.int16,
    }  # fmt: skip
    assert batch["fixed"].shape == (4, 2)
    assert batch["text"] == ["a", "bb", "", "d"]
    assert batch["raw"] == [b"a", b"", b"\x00", b"d"]
    assert [row.tolist() for row in batch["ragged"]] == [[1], [], [2, 3], [4]]
    assert all(row.dtype == torch.int32 for row in batch["ragged"])


def test_numpy_and_arrow_batches_have_the_same_values_as_torch_ones() -> None:
    torch_batch = _one(flow.from_arrow(TABLE))
    numpy_batch = _one(flow.from_arrow(TABLE), output="numpy")
    arrow_batch = _one(flow.from_arrow(TABLE), output="arrow")
    assert isinstance(arrow_batch, pa.RecordBatch)
    assert arrow_batch.to_pylist() == TABLE.to_pylist()
    for name, value in numpy_batch.items():
        other = torch_batch[name]
        if isinstance(value, np.ndarray):
            assert value.dtype == other.numpy().dtype
            assert np.array_equal(value, other.numpy())
        elif isinstance(value[0], np.ndarray):
            assert [item.tolist() for item in value] == [item.tolist() for item in other]
        else:
            assert value == other


def test_numpy_batches_do_not_import_torch(tmp_path: Path) -> None:
    code = (
        "import sys, numpy as np, dataflow as flow\n"
        "pipe = flow.from_columns({'x': np.arange(9)}).shuffle(4).map(dict).batch(3)\n"
        "for output in ('numpy', 'arrow'):\n"
        "    with pipe.loader(output=output) as loader: assert len(list(loader)) == 3\n"
        "assert 'torch' not in sys.modules\n"
    )
    root = Path(__file__).parents[2]
    subprocess.run([sys.executable, "-c", code], check=True, cwd=root)


@pytest.mark.parametrize("output", ["torch", "numpy", "arrow"])
def test_ids_are_asked_for(output: Any) -> None:
    without, with_ids = (
        _one(flow.from_arrow(TABLE), output=output),
        _one(flow.from_arrow(TABLE), output=output, ids=True),
    )
    assert "__id__" not in (without.schema.names if output == "arrow" else without)
    ids = with_ids.column("__id__").to_pylist() if output == "arrow" else with_ids["__id__"].tolist()
    assert ids == [0, 1, 2, 3]


def test_ids_have_a_column_for_each_zipped_input_and_for_flat_map() -> None:
    numbers = flow.from_columns({"x": np.arange(4)})
    pairs = flow.zip(numbers, flow.from_columns({"y": np.arange(4)}))
    assert _one(pairs, ids=True)["__id__"].tolist() == [[row, 1 << 40 | row] for row in range(4)]
    twice = numbers.take(2).flat_map(lambda row: [row, row], schema={"x": "int64"})
    assert _one(twice, ids=True)["__id__"].tolist() == [[0, 0], [0, 1], [1, 0], [1, 1]]


@pytest.mark.parametrize("output", ["torch", "numpy"])
def test_nulls_are_an_error_that_names_column_sample_and_what_to_do(output: Any) -> None:
    pipe = flow.from_columns({"x": pa.array([1, None, 3, 4], pa.int64())}).batch(2)
    with (
        pipe.loader(output=output) as loader,
        pytest.raises(DataError, match=r"'x' has 1 null .*0:1") as caught,
    ):
        list(loader)
    assert "nulls('x'" in caught.value.hint


def test_large_integers_stay_exact_beside_nulls() -> None:
    large = (1 << 53) + 1
    pipe = flow.from_columns({"x": pa.array([large, None, -large, 7], pa.int64())}).nulls(
        "x", value=-1, mask=True
    )
    batch = _one(pipe)
    assert batch["x"].tolist() == [large, -1, -large, 7]
    assert batch["x__mask"].tolist() == [True, False, True, True]


@pytest.mark.parametrize("output", ["torch", "numpy", "arrow"])
def test_collate_makes_what_the_user_gets(output: Any) -> None:
    assert _one(flow.from_arrow(TABLE), output=output, collate=lambda batch: type(batch).__name__) == (
        "RecordBatch" if output == "arrow" else "dict"
    )


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"output": "jax"}, "jax"),
        ({"output": "numpy", "device": "cpu"}, "device"),
        ({"output": "arrow", "device": "cuda"}, "device"),
        ({"device": "gpu"}, "gpu"),
        ({"executor": "fibers"}, "fibers"),
        ({"threads": 0}, "threads"),
        ({"prefetch": 0}, "prefetch"),
        ({"memory_limit": 0}, "memory_limit"),
        ({"memory_limit": "much"}, "much"),
        ({"memory_limit": "1MB"}, "memory_limit"),
        ({"rank": 1}, "rank=1"),
        ({"rank": 2, "world_size": 2}, "rank=2"),
        ({"world_size": 2}, "world_size=2"),
    ],
)
def test_a_wrong_argument_of_the_loader_is_a_plan_error_with_a_hint(
    options: dict[str, Any], named: str
) -> None:
    pipe = flow.from_columns({"x": np.arange(4000.0)}).shuffle(1000).batch(4)
    with pytest.raises(PlanError, match=named) as caught:
        pipe.loader(**options)
    assert caught.value.hint


def test_a_pipeline_without_batch_is_a_plan_error_that_names_it() -> None:
    with pytest.raises(PlanError, match="makes no batches") as caught:
        flow.from_arrow(TABLE).loader()
    assert ".batch(" in caught.value.hint


def test_a_cpu_device_is_no_device() -> None:
    assert _one(flow.from_arrow(TABLE), device="cpu")["whole"].device.type == "cpu"
