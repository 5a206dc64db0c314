"""The columns of functions: what is made of the first rows, what is enforced afterwards, and what an error says."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from gathered import numbers

import dataflow as flow
from dataflow.errors import PlanError, StageError

Row = dict[str, Any]

# How one function of a row is given to each operator that calls functions.
BY: dict[str, Callable[..., flow.Pipeline]] = {
    "map": lambda pipe, one, **how: pipe.map(one, **how),
    "flat_map": lambda pipe, one, **how: pipe.flat_map(lambda row: [one(row)], **how),
    "batched": lambda pipe, one, **how: pipe.map(
        lambda given: _listed(given, one), batched=True, batch_size=8, **how
    ),
}
every_operator = pytest.mark.parametrize("by", BY)


def _listed(given: Row, one: Callable[[Row], Row]) -> Row:
    size = len(next(iter(given.values())))
    made = [one({name: values[place] for name, values in given.items()}) for place in range(size)]
    return {name: [row[name] for row in made] for name in made[0]}


def _table(pipe: flow.Pipeline) -> pa.Table:
    with pipe.batch(4, remainder="keep").loader(output="arrow") as loader:
        return pa.Table.from_batches(list(loader))


def _length(row: Row) -> int:
    """Two in the rows with which functions are asked for their columns, three later."""
    return 2 if row["x"] < 20 else 3


@every_operator
def test_python_lists_are_a_list_column_also_where_the_first_have_one_length(by: str) -> None:
    found = _table(BY[by](numbers(40), lambda row: {"t": [1] * _length(row)}))
    assert found.schema.field("t").type == pa.list_(pa.int64())
    assert found["t"].to_pylist() == [[1, 1]] * 20 + [[1, 1, 1]] * 20


@every_operator
def test_arrays_of_one_shape_have_that_shape_and_a_later_one_says_what_to_do(by: str) -> None:
    made = lambda row: {"t": np.ones(_length(row), np.float32)}  # noqa: E731
    with pytest.raises(StageError, match=r"'t'.*\(3,\), not \(2,\)") as caught:
        _table(BY[by](numbers(40), made))
    assert "schema={'t': 'list<float>'}" in caught.value.hint
    assert "pad(" in caught.value.hint
    assert by.replace("batched", "map") in caught.value.operator
    # What the hint says helps.
    pipe = BY[by](numbers(40), made, schema={"t": "list<float>"})
    assert _table(pipe)["t"].to_pylist() == [[1, 1]] * 20 + [[1, 1, 1]] * 20
    assert _table(pipe.pad({"t": 3}))["t"].to_pylist() == [[1, 1, 0]] * 20 + [[1, 1, 1]] * 20


@every_operator
@pytest.mark.parametrize(
    "kind",
    [
        pa.list_(pa.int32()),
        pa.large_list(pa.int64()),
        pa.list_(pa.list_(pa.float32())),
        pa.list_(pa.list_(pa.int8(), 2)),
    ],
    ids=str,
)
def test_a_list_column_that_goes_through_a_function_stays_one(by: str, kind: Any) -> None:
    nested = pa.types.is_nested(kind.value_type)
    part: Any = [1, 2] if nested else 1
    table = pa.table({"t": pa.array([[part, part]] * 20 + [[part]] * 20 + [None], kind)})
    assert _table(BY[by](flow.from_arrow(table), lambda row: row)) == table


@every_operator
def test_a_column_that_is_null_in_the_first_rows_keeps_the_type_that_it_had(by: str) -> None:
    table = pa.table(
        {"n": pa.array([None] * 20 + list(range(20)), pa.int16()), "s": pa.array([None] * 20 + ["a"] * 20)}
    )
    assert _table(BY[by](flow.from_arrow(table), lambda row: row)) == table


@every_operator
def test_a_time_with_a_zone_keeps_both(by: str) -> None:
    kind = pa.timestamp("us", tz="Europe/Paris")
    table = pa.table({"t": pa.array([datetime(2024, 1, 1, hour, tzinfo=UTC) for hour in range(20)], kind)})
    assert _table(BY[by](flow.from_arrow(table), lambda row: row)) == table


@every_operator
@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("list<int64>", np.array([0.5])), ("list<int64>", [0.5]), ("int64", 0.5), ("int64[1]", [0.5]),
        ("list<list<int64>>", [[1.5]]), ("date32", 0.5), ("int8[1,2]", [[0.5, 1]]),
    ],
)  # fmt: skip
def test_a_fraction_is_never_cut_off_whatever_stands_beside_it(by: str, kind: str, value: Any) -> None:
    for other in (value, None):
        made = lambda row, other=other: {"y": value if row["x"] % 2 else other}  # noqa: E731
        with pytest.raises(StageError, match="'y'"):
            _table(BY[by](numbers(8), made, schema={"y": kind}))


@every_operator
@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("float16", 1e10), ("float32", 1e300), ("float16", np.float32(1e10)), ("float32[1]", [-1e300]),
        ("list<float16>", [1e10]), ("list<float32>", np.array([1.0, 1e300])), ("float16[1,1]", [[1e10]]),
    ],
)  # fmt: skip
@pytest.mark.filterwarnings("error")
def test_a_number_too_large_for_its_floats_never_becomes_infinite(by: str, kind: str, value: Any) -> None:
    for other in (value, None):
        made = lambda row, other=other: {"y": value if row["x"] % 2 else other}  # noqa: E731
        with pytest.raises(StageError, match="'y'"):
            _table(BY[by](numbers(8), made, schema={"y": kind}))


@pytest.mark.parametrize("wrapped", [np.asarray, pa.array])
def test_a_column_with_a_number_too_large_for_its_floats_is_refused(wrapped: Callable[..., Any]) -> None:
    pipe = numbers(4).map(
        lambda given: {"y": wrapped(given["x"] * 1e300)}, batched=True, schema={"y": "float32"}
    )
    with pytest.raises(StageError, match=r"'y'.*too large for float"):
        _table(pipe)


@every_operator
def test_what_is_infinite_and_what_only_loses_digits_is_taken(by: str) -> None:
    given: list[Any] = [float("inf"), float("-inf"), 0.1, None]
    for kind, wrap in (("float32", lambda x: x), ("list<float32>", lambda x: [x])):
        found = _table(
            BY[by](numbers(4), lambda row, wrap=wrap: {"y": wrap(given[row["x"]])}, schema={"y": kind})
        )
        assert found["y"] == pa.chunked_array(
            [pa.array([wrap(x) for x in given], found.schema.field("y").type)]
        )


@every_operator
def test_whole_floats_are_integers_where_these_are_asked_for(by: str) -> None:
    made = lambda row: {"y": [1.0, 2.0] if row["x"] % 2 else None}  # noqa: E731
    found = _table(BY[by](numbers(4), made, schema={"y": "list<int64>"}))
    assert found["y"].to_pylist() == [None, [1, 2], None, [1, 2]]


@every_operator
@pytest.mark.parametrize(
    ("first", "later"), [(1, 2.5), (1, "text"), (None, "text"), (1, 2**70), ("text", 1), (1, np.ones(2))]
)
def test_a_later_value_of_another_type_names_column_type_and_schema(by: str, first: Any, later: Any) -> None:
    with pytest.raises(StageError, match="'y' what is no") as caught:
        _table(BY[by](numbers(40), lambda row: {"y": first if row["x"] < 20 else later}))
    assert "schema={'y': " in caught.value.hint


@every_operator
def test_nulls_inside_a_fixed_shape_stay_where_they_are(by: str) -> None:
    kind = pa.list_(pa.float32(), 2)
    table = pa.table({"v": pa.array([[1, 2]] * 20 + [[3, None]] * 20, kind)})
    assert _table(BY[by](flow.from_arrow(table), lambda row: row)) == table


@every_operator
def test_names_of_columns_may_be_any_text_but_nothing_else(by: str) -> None:
    found = _table(BY[by](numbers(4), lambda row: {"größe 日本": 1, "a.b": 2, "": 3}))
    assert found.column_names == ["größe 日本", "a.b", ""]
    for wrong in (1, None, ("a",), b"x"):
        with pytest.raises(PlanError, match="key") as caught:
            _table(BY[by](numbers(4), lambda row, wrong=wrong: {wrong: 1}))
        assert "strings" in caught.value.hint


def test_arrays_of_text_are_lists_of_text() -> None:
    found = _table(numbers(4).map(lambda row: {"t": np.array(["u", "v"]), "s": np.str_("w")}))
    assert found.schema == pa.schema({"t": pa.list_(pa.string()), "s": pa.string()})
    assert found.to_pylist() == [{"t": ["u", "v"], "s": "w"}] * 4
