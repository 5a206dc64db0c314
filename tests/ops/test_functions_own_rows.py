"""What a function is given is its own, and what it has returned is taken: writing to either changes nothing else."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch
from gathered import rows, values

import dataflow as flow

Row = dict[str, Any]
ROWS = 12
PAIRS = [[2.0 * x, 2.0 * x + 1] for x in range(ROWS)]


def _source() -> flow.Pipeline:
    return flow.from_columns({"x": np.arange(ROWS), "v": np.array(PAIRS)})


def _spoil(given: Row) -> None:
    given["v"] += 100
    torch.from_numpy(given["v"]).mul_(2)


def _keeps(row: Row) -> bool:
    _spoil(row)
    return True


def _keep_all(columns: Row) -> Any:
    _spoil(columns)
    return columns["x"] >= 0


def _adds(given: Row) -> Row:
    _spoil(given)
    return {"y": given["x"]}


@pytest.mark.parametrize(
    "make",
    [
        lambda pipe: pipe.filter(_keeps),
        lambda pipe: pipe.filter(_keeps).counted(),
        lambda pipe: pipe.filter(_keep_all, batched=True),
        lambda pipe: pipe.map(_adds, add=True),
        lambda pipe: pipe.map(_adds, add=True, batched=True),
    ],
)
def test_a_function_that_writes_to_what_it_is_given_does_not_change_what_passes_it_by(
    make: Callable[[flow.Pipeline], flow.Pipeline],
) -> None:
    assert values(make(_source()), "v") == PAIRS


def test_a_batched_function_that_is_asked_again_is_given_the_rows_as_they_were() -> None:
    def grow(columns: Row) -> Row:
        columns["v"] += 100
        if np.any(columns["x"] == 3):
            raise ValueError("bad")
        return {"v": columns["v"]}

    pipe = _source().map(grow, batched=True).batch(1)
    with pipe.loader(output="numpy", on_error="skip") as loader:
        found = [batch["v"][0].tolist() for batch in loader]
    assert found == [[a + 100, b + 100] for a, b in PAIRS[:3] + PAIRS[4:]]


def test_writing_never_reaches_a_table_in_memory() -> None:
    for kind in (pa.list_(pa.float64()), pa.list_(pa.float64(), 2)):
        table = pa.table({"v": pa.array(PAIRS, kind), "x": np.arange(ROWS)})
        assert rows(flow.from_arrow(table).filter(_keeps)) == rows(flow.from_arrow(table))
        assert table["v"].to_pylist() == PAIRS


@pytest.mark.parametrize("batched", [False, True])
def test_memory_that_a_function_uses_for_all_its_results_holds_each_of_them(batched: bool) -> None:
    scratch = np.zeros((ROWS, 2))

    def one(row: Row) -> Row:
        scratch[0] = row["v"]
        return {"v": scratch[0]}

    def many(columns: Row) -> Row:
        size = len(columns["x"])
        scratch[:size] = columns["v"]
        return {"v": scratch[:size]}

    pipe = _source().map(many if batched else one, batched=batched, batch_size=2).batch(1)
    with pipe.loader(output="numpy", threads=1) as loader:
        assert [batch["v"][0].tolist() for batch in loader] == PAIRS


@pytest.mark.parametrize("by_flat_map", [False, True])
@pytest.mark.parametrize(
    ("inner", "wrap", "expected"),
    [
        ([0], lambda inner: inner, lambda x: [x]),
        ([0], lambda inner: [inner], lambda x: [[x]]),
        ([0], lambda inner: (inner,), lambda x: [[x]]),
        ([0], lambda inner: {"a": inner}, lambda x: {"a": [x]}),
        (np.zeros(1), lambda inner: [inner], lambda x: [[x]]),
        (np.array([None]), lambda inner: inner, lambda x: [x]),
        (bytearray(1), lambda inner: inner, lambda x: bytes([x])),
    ],
)
def test_whatever_a_function_changes_for_every_row_holds_each_of_them(
    inner: Any, wrap: Callable[[Any], Any], expected: Callable[[int], Any], by_flat_map: bool
) -> None:
    held = wrap(inner)

    def one(row: Row) -> Row:
        inner[0] = int(row["x"])
        return {"t": held}

    def several(row: Row) -> Iterator[Row]:
        yield one(row)
        yield one({"x": row["x"] + 100})

    found = values(_source().flat_map(several) if by_flat_map else _source().map(one), "t")
    wanted = [x + more for x in range(ROWS) for more in ((0, 100) if by_flat_map else (0,))]
    assert found == [expected(x) for x in wanted]


def test_tuples_of_key_and_value_stay_such_in_a_map_column() -> None:
    kind = pa.map_(pa.string(), pa.list_(pa.int64()))
    held = [("a", [0])]

    def one(row: Row) -> Row:
        held[0][1][0] = int(row["x"])
        return {"t": held}

    pipe = _source().map(one, schema=pa.schema({"t": kind}))
    assert values(pipe, "t") == [[("a", [x])] for x in range(ROWS)]


@pytest.mark.parametrize("chunked", [False, True])
@pytest.mark.parametrize("width", [1, 2])
def test_arrow_arrays_over_memory_that_a_function_uses_again_hold_each_of_its_results(
    chunked: bool, width: int
) -> None:
    scratch = np.zeros(2 * width)

    def many(columns: Row) -> Row:
        scratch[:] = np.repeat(columns["x"], width)
        made: Any = pa.array(scratch)
        if width > 1:
            made = pa.FixedSizeListArray.from_arrays(made, width)
        return {"y": pa.chunked_array([made]) if chunked else made}

    pipe = _source().map(many, batched=True, batch_size=2)
    expected = [float(x) if width == 1 else [float(x)] * width for x in range(ROWS)]
    assert values(pipe, "y", threads=1) == expected


def test_a_generator_may_yield_one_dict_and_one_array_again_and_again() -> None:
    def several(row: Row) -> Iterator[Row]:
        for copy in range(2):
            row["x"] = copy
            row["v"] += 1
            yield row

    found = rows(_source().flat_map(several))
    assert [row["x"] for row in found] == [0, 1] * ROWS
    assert [row["v"] for row in found] == [[a + 1 + c, b + 1 + c] for a, b in PAIRS for c in range(2)]


def test_what_a_function_keeps_of_its_input_stays_as_it_was() -> None:
    kept: dict[int, Any] = {}

    def keep(row: Row) -> Row:
        kept[int(row["x"])] = row["v"]
        return {"x": row["x"], "v": row["v"][::-1]}

    pipe = _source().map(keep).batch(4)
    with pipe.loader() as loader:
        for _ in range(3):
            for batch in loader:
                batch["v"].zero_()
    assert [kept[x].tolist() for x in range(ROWS)] == PAIRS


def test_what_a_row_is_given_as_does_not_depend_on_nulls_in_other_rows() -> None:
    table: dict[str, pa.Array[Any]] = {
        "place": pa.array(range(3)),
        "n": pa.array([1, None, 3], pa.int16()),
        "pair": pa.array([[1, 2], None, [3, None]], pa.list_(pa.float32(), 2)),
        "image": pa.array([[[1, 2]], None, [[3, 4]]], pa.list_(pa.list_(pa.uint8(), 2), 1)),
        "time": pa.array([0, None, 2], pa.timestamp("us", tz="Europe/Paris")),
        "ragged": pa.array([[1], None, [None]], pa.list_(pa.int8())),
    }
    alone: list[Row] = []
    for place in range(3):
        one = pa.table({name: column.slice(place, 1) for name, column in table.items()})
        alone += _given(one)
    together = _given(pa.table(table))
    assert [{name: _said(value) for name, value in row.items()} for row in together] == [
        {name: _said(value) for name, value in row.items()} for row in alone
    ]
    assert _said(together[0]["n"]) == ("int16", (), 1)
    assert _said(together[0]["image"]) == ("uint8", (1, 2), [[1, 2]])
    assert together[2]["pair"] == [3, None]
    assert all(value is None for value in together[1].values())


def _given(table: pa.Table) -> list[Row]:
    seen: dict[int, Row] = {}

    def look(row: Row) -> Row:
        place = int(row.pop("place"))
        seen[place] = dict(row)
        return {"x": 1}

    values(flow.from_arrow(table).map(look, schema={"x": "int64"}))
    return [seen[place] for place in sorted(seen)]


def _said(value: Any) -> Any:
    if isinstance(value, np.ndarray | np.generic):
        return str(value.dtype), value.shape, value.tolist()
    return value
