from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pytest
import torch
from PIL import Image

import dataflow as flow
from connectors.contract import Chunk, Fragment, Opened
from connectors.dataset import Dataset
from connectors.store import Store
from connectors.tensors import to_numpy
from dataflow.errors import DataError, PlanError


class Rows:
    """A map-style data set whose rows a function makes."""

    def __init__(self, make: Callable[[int], Any], count: int = 5) -> None:
        self.make, self.count = make, count

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> Any:
        return self.make(index)


class Point(NamedTuple):
    x: int
    y: float


def chunks_of(dataset: Dataset, max_rows: int = 1 << 20) -> list[Chunk]:
    scan = dataset.scan(Store(), dataset.files())
    opened = Opened(Store(), dataset.files(), scan.meta)
    arrays = (scan.file, scan.offset, scan.length, scan.rows)
    fragments = [Fragment(*numbers) for numbers in zip(*(a.tolist() for a in arrays), strict=True)]
    return [c for f in fragments for c in dataset.read(opened, f, scan.schema, 0, f.rows, max_rows)]


def rows_of(dataset: Dataset) -> list[dict[str, Any]]:
    return [row for chunk in chunks_of(dataset) for row in chunk.batch.to_pylist()]


def test_rows_of_every_form_have_named_columns() -> None:
    forms: list[tuple[Callable[[int], Any], tuple[str, ...] | None, list[str]]] = [
        (lambda k: {"a": k, "b": str(k)}, None, ["a", "b"]),
        (lambda k: Point(k, k / 2), None, ["x", "y"]),
        (lambda k: (k, str(k)), None, ["0", "1"]),
        (lambda k: (k, str(k)), ("image", "label"), ["image", "label"]),
        (lambda k: k, None, ["value"]),
        (lambda k: k, ("n",), ["n"]),
        (lambda k: torch.tensor(k), None, ["value"]),
    ]
    for make, columns, names in forms:
        rows = rows_of(Dataset(data=Rows(make), columns=columns))
        assert [list(row) for row in rows] == [names] * 5
        assert [row[names[0]] for row in rows] == [0, 1, 2, 3, 4]


def test_values_keep_their_types_and_shapes() -> None:
    def make(k: int) -> dict[str, Any]:
        return {
            "int": k,
            "float": k / 3,
            "flag": k == 1,
            "half": np.float16(k),
            "small": np.int8(k),
            "scalar": torch.tensor(k, dtype=torch.int16),
            "vector": torch.full((3,), k, dtype=torch.float32, requires_grad=True),
            "image": np.full((2, 3, 1), k, np.uint8),
            "text": f"t{k}",
            "raw": bytes([k]),
            "ragged": list(range(k + 1)),
            "words": np.array(["a", "b"]),
            "nested": {"a": [k], "b": None},
        }

    (chunk,) = chunks_of(Dataset(data=Rows(make)))
    assert chunk.bad == ()
    assert dict(zip(chunk.batch.schema.names, chunk.batch.schema.types, strict=True)) == {
        "int": pa.int64(),
        "float": pa.float64(),
        "flag": pa.bool_(),
        "half": pa.float16(),
        "small": pa.int8(),
        "scalar": pa.int16(),
        "vector": pa.list_(pa.float32(), 3),
        "image": pa.fixed_shape_tensor(pa.uint8(), (2, 3, 1)),
        "text": pa.string(),
        "raw": pa.binary(),
        "ragged": pa.list_(pa.int64()),
        "words": pa.list_(pa.string()),
        "nested": pa.struct([("a", pa.list_(pa.int64())), ("b", pa.null())]),
    }
    images = to_numpy(chunk.batch.column("image"))
    assert images.shape == (5, 2, 3, 1)
    assert images[4].max() == 4
    assert chunk.batch.column("ragged").to_pylist()[2] == [0, 1, 2]


def test_fragments_are_of_1024_rows() -> None:
    scan = Dataset(data=Rows(lambda k: k, 2500)).scan(Store(), ())
    assert scan.offset.tolist() == [0, 1024, 2048]
    assert scan.rows.tolist() == [1024, 1024, 452]


def test_a_row_that_raises_costs_that_row() -> None:
    def make(k: int) -> dict[str, Any]:
        if k in (1, 3):
            raise OSError(f"file {k} is broken")
        return {"x": np.array([k, k], np.float32), "y": k}

    chunks = chunks_of(Dataset(data=Rows(make)), max_rows=2)
    rows = [row for chunk in chunks for row in chunk.batch.to_pylist()]
    assert [row["y"] for row in rows] == [0, None, 2, None, 4]
    assert [[bad.row for bad in chunk.bad] for chunk in chunks] == [[1], [1], []]
    error = chunks[1].bad[0].error
    assert isinstance(error, DataError)
    assert (error.file, error.row) == ("Rows", 3)
    assert isinstance(error.__cause__, OSError)
    assert "OSError: file 3 is broken" in str(error)
    assert "__getitem__" in error.hint


@pytest.mark.parametrize(
    ("other", "said"),
    [
        ({"x": np.zeros(3, np.float32), "y": 1}, r"'x'.*shape \(3,\), not \(2,\)"),
        ({"x": np.array([0, 1e300]), "y": 1}, "'x'.*too large for float32"),
        ({"x": np.zeros(2, np.float32), "y": "text"}, "'y' does not fit int64"),
        ({"x": np.zeros(2, np.float32), "y": 0.5}, "'y' does not fit int64"),
        ({"x": np.zeros(2, np.float32), "y": 2**70}, "'y' does not fit int64"),
    ],
)
def test_a_row_that_does_not_fit_the_first_costs_that_row(other: dict[str, Any], said: str) -> None:
    data = Rows(lambda k: other if k == 2 else {"x": np.full(2, k, np.float32), "y": k})
    (chunk,) = chunks_of(Dataset(data=data))
    assert [bad.row for bad in chunk.bad] == [2]
    with pytest.raises(DataError, match=said) as caught:
        raise chunk.bad[0].error
    assert caught.value.row == 2
    assert "schema=" in caught.value.hint
    assert chunk.batch.column("y").to_pylist() == [0, 1, None, 3, 4]
    assert chunk.batch.column("x").to_pylist()[3] == [3, 3]


def test_a_number_of_another_type_fits_where_it_is_exact_as_in_what_functions_return() -> None:
    types: dict[str, pa.DataType] = {
        "x": pa.int64(), "y": pa.int8(), "z": pa.float32(), "l": pa.list_(pa.int32())
    }  # fmt: skip
    schema = pa.schema(types)
    data = Rows(lambda k: {"x": float(k), "y": np.int64(k), "z": np.float64(k), "l": [float(k)]}, 3)
    exact = [{"x": k, "y": k, "z": k, "l": [k]} for k in range(3)]
    assert rows_of(Dataset(data=data, schema=schema)) == exact
    mapped = flow.from_columns({"k": np.arange(3)}).map(lambda row: data[int(row["k"])], schema=schema)
    assert [dict(mapped[k], l=mapped[k]["l"].tolist()) for k in range(3)] == exact


def test_a_tensor_that_is_none_is_null_as_in_what_functions_return() -> None:
    kind: Any = pa.fixed_shape_tensor(pa.float32(), [2, 2])
    data = Rows(lambda k: {"x": np.full((2, 2), k, np.float32) if k else None}, 2)
    schema = pa.schema([("x", kind)])
    (chunk,) = chunks_of(Dataset(data=data, schema=schema))
    assert chunk.bad == ()
    assert chunk.batch.column("x").to_pylist() == [None, [1, 1, 1, 1]]
    mapped = flow.from_columns({"k": np.arange(2)}).map(lambda row: data[int(row["k"])], schema=schema)
    assert mapped[0]["x"] is None
    assert mapped[1]["x"].tolist() == [[1, 1], [1, 1]]


def test_none_is_null() -> None:
    data = Rows(lambda k: {"x": np.array([k], np.float32), "y": k} if k % 2 == 0 else {"x": None, "y": None})
    (chunk,) = chunks_of(Dataset(data=data))
    assert chunk.bad == ()
    assert chunk.batch.to_pydict() == {"x": [[0], None, [2], None, [4]], "y": [0, None, 2, None, 4]}


SCHEMA = pa.schema({"x": pa.int64(), "y": pa.int64()})


@pytest.mark.parametrize("schema", [None, SCHEMA])
@pytest.mark.parametrize(
    ("other", "said", "hint"),
    [
        ({"x": 1}, "Rows, row 2: it has no 'y', which the schema has", "None where there is no value"),
        ({"x": 1, "z": 2}, "Rows, row 2: it has no 'y', which the schema has", "the same keys"),
        (
            {"x": 1, "y": 2, "z": 3, "w": 4},
            r"row 2: it has \['w', 'z'\], which the schema does not",
            "schema=",
        ),
        (5, "Rows, row 2: it has no 'x', which the schema has", "the same keys"),
    ],
)
def test_a_row_of_other_columns_costs_that_row(
    schema: pa.Schema | None, other: Any, said: str, hint: str
) -> None:
    data = Rows(lambda k: other if k == 2 else {"x": k, "y": -k})
    (chunk,) = chunks_of(Dataset(data=data, schema=schema))
    assert [bad.row for bad in chunk.bad] == [2]
    with pytest.raises(DataError, match=said) as caught:
        raise chunk.bad[0].error
    assert hint in caught.value.hint
    assert chunk.batch.to_pydict() == {"x": [0, 1, None, 3, 4], "y": [0, -1, None, -3, -4]}


def test_a_tuple_of_another_length_costs_that_row() -> None:
    (chunk,) = chunks_of(Dataset(data=Rows(lambda k: (k,) * (3 if k == 1 else 2))))
    assert [bad.row for bad in chunk.bad] == [1]
    assert "it has ['2']" in str(chunk.bad[0].error)


def test_a_column_that_appears_later_is_an_error_whichever_columns_are_read() -> None:
    data = Rows(lambda k: {"x": k, "y": k, "z": k} if k == 3 else {"x": k, "y": k})
    for pipe in (flow.from_dataset(data), flow.from_dataset(data).select("x")):
        with (
            pipe.batch(1).loader(output="numpy") as loader,
            pytest.raises(DataError, match=r"row 3: it has \['z'\]"),
        ):
            list(loader)


def test_a_schema_that_is_given_takes_ragged_arrays() -> None:
    types: dict[str, pa.DataType] = {"x": pa.list_(pa.int64()), "m": pa.list_(pa.list_(pa.float32()))}
    schema = pa.schema(types)
    data = Rows(lambda k: {"x": torch.arange(k), "m": np.ones((k, 2), np.float32)})
    rows = rows_of(Dataset(data=data, schema=schema))
    assert [row["x"] for row in rows] == [[], [0], [0, 1], [0, 1, 2], [0, 1, 2, 3]]
    assert rows[2]["m"] == [[1, 1], [1, 1]]


def test_an_empty_data_set_has_no_rows_and_no_columns() -> None:
    dataset = Dataset(data=Rows(lambda k: k, 0))
    assert chunks_of(dataset) == []
    assert dataset.scan(Store(), ()).schema == pa.schema([])


def test_a_first_row_that_fails_or_has_no_arrow_type_is_an_error_at_once() -> None:
    with pytest.raises(DataError, match="ZeroDivisionError") as caught:
        chunks_of(Dataset(data=Rows(lambda k: 1 // k)))
    assert caught.value.row == 0
    with pytest.raises(PlanError, match="'image' of row 0 is a Image") as plan:
        chunks_of(Dataset(data=Rows(lambda k: {"image": Image.new("RGB", (2, 2))})))
    assert "numpy.asarray" in plan.value.hint


def test_what_has_no_length_is_an_error_on_the_line_that_has_it() -> None:
    wrong: Any = iter([1, 2])
    with pytest.raises(PlanError, match="list_iterator") as caught:
        Dataset(data=wrong)
    assert "__getitem__" in caught.value.hint


def test_a_data_set_that_has_become_shorter_is_an_error() -> None:
    data = Rows(lambda k: k)
    dataset = Dataset(data=data)
    opened = Opened(Store(), dataset.files(), {})
    data.count = 3
    with pytest.raises(DataError, match="it has 3 rows, not 5") as caught:
        list(dataset.read(opened, Fragment(0, 0, 5, 5), pa.schema([("value", pa.int64())]), 0, 5, 10))
    assert "resume" in caught.value.hint


def test_torch_is_not_imported_for_data_without_tensors() -> None:
    program = (
        "import sys\n"
        "from connectors.dataset import Dataset\n"
        "from connectors.memory import from_columns\n"
        "from connectors.store import Store\n"
        "from_columns({'a': [1]})\n"
        "Dataset(data=[1, 2]).scan(Store(), ())\n"
        "assert 'torch' not in sys.modules\n"
    )
    subprocess.run(
        [sys.executable, "-c", program], check=True, env={"PYTHONPATH": ":".join(p for p in sys.path if p)}
    )
