"""A pipeline written as a spec and read back is the same pipeline: same steps, same ids, same rows."""

from __future__ import annotations

import datetime
import importlib
import json
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import dataflow as flow
from connectors.contract import Json
from connectors.folder import Folder
from connectors.jsonl import Jsonl
from connectors.tar import Tar
from dataflow.ops.forms import FORMAT

FUNCTIONS = """
def even(row):
    return row["x"] % 2 == 0

def double(columns):
    return {"x": columns["x"] * 2, "y": columns["y"]}

def noisy(row, rng):
    return {"noise": float(rng.random())}

def twice(row):
    return [row, row]
"""

Rows = list[tuple[bytes, bytes]]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    for part in range(2):
        x = np.arange(part * 50, part * 50 + 50)
        table = pa.table({
            "x": x, "y": [f"text {value}" for value in x],
            "day": [datetime.date(2024, 1, 1) + datetime.timedelta(int(value)) for value in x],
            "tokens": [list(range(value % 5)) for value in x],
        })  # fmt: skip
        pq.write_table(table, folder / f"{part}.parquet", row_group_size=7)
    return folder


@pytest.fixture
def functions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Callable[..., object]]:
    (tmp_path / "spec_functions.py").write_text(FUNCTIONS)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "spec_functions", raising=False)
    module = importlib.import_module("spec_functions")
    return lambda name: getattr(module, name)


def through_text(spec: dict[str, Json], folder: Path, kind: str) -> flow.Pipeline:
    file = folder / f"pipe.{kind}"
    text = yaml.safe_dump(spec, sort_keys=False) if kind == "yaml" else json.dumps(spec, indent="\t")
    file.write_text(text)
    return flow.load_spec(file, ["spec_functions"])


def delivered(pipe: flow.Pipeline) -> Rows:
    """The ids and the values of the first epoch."""
    with pipe.loader(output="arrow", ids=True, threads=1) as loader:
        batches = list(loader)
    return [
        (str(batch.column("__id__").to_pylist()).encode(), repr(batch.to_pydict()).encode())
        for batch in batches
    ]


def assert_same(pipe: flow.Pipeline, folder: Path) -> None:
    spec = pipe.to_spec()
    rows = delivered(pipe)
    for kind in ("yaml", "json"):
        again = through_text(spec, folder, kind)
        assert again.to_spec() == spec
        assert again.explain() == pipe.explain()
        assert again.seed_value == pipe.seed_value
        assert delivered(again) == rows
        with pipe.loader(output="numpy", threads=1) as one, again.loader(output="numpy", threads=1) as other:
            other.load_state_dict(one.state_dict())
    assert rows


@settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    head=st.lists(st.sampled_from(["take", "skip", "terms", "arrow", "split", "cast", "pad", "nulls"]), max_size=4),
    window=st.sampled_from([None, 16, "1kB", "1MB"]),
    seed=st.none() | st.integers(0, 2**63 - 1),
    size=st.integers(1, 6),
    passes=st.integers(1, 2),
)  # fmt: skip
def test_any_chain_comes_back_with_the_same_steps_ids_and_rows(
    data: Path, tmp_path: Path, head: list[str], window: int | str | None, seed: int | None, size: int, passes: int
) -> None:  # fmt: skip
    makers: dict[str, Callable[[flow.Pipeline], flow.Pipeline]] = {
        "take": lambda p: p.take(90), "skip": lambda p: p.skip(3),
        "terms": lambda p: p.filter([("x", ">", 4), ("y", "not in", ["text 7"])]),
        "arrow": lambda p: p.filter((pc.field("x") < 95) | pc.field("y").is_null()),
        "split": lambda p: p.split({"train": 0.9, "val": 0.1})["train"],
        "cast": lambda p: p.cast({"x": "float32"}), "nulls": lambda p: p.nulls("x", value=2),
        "pad": lambda p: p.pad({"tokens": 6}, value=-1),
    }  # fmt: skip
    # Rows are counted in file order, so that take and skip stand in front of all that leaves rows out.
    ordered = sorted(head, key=lambda step: step not in ("take", "skip"))
    pipe = flow.read(data / "*.parquet", name="numbers")
    for step in dict.fromkeys(ordered):
        pipe = makers[step](pipe)
    pipe = pipe.drop("day") if passes == 2 else pipe
    pipe = pipe if window is None else pipe.shuffle(window)
    pipe = pipe.repeat(passes).batch(global_size=2 * size, lanes=2, remainder="pad")
    assert_same(pipe if seed is None else pipe.seed(seed), tmp_path)


def test_functions_come_back_by_their_names(
    data: Path, tmp_path: Path, functions: Callable[[str], Callable[..., object]]
) -> None:
    pipe = (
        flow.read(data / "*.parquet", columns=["x", "y"])
        .filter(functions("even"))
        .map(functions("double"), batched=True, batch_size=16, schema={"x": "int64", "y": "string"})
        .map(functions("noisy"), rng=True, add=True, key="noise", schema=pa.schema([("noise", pa.float64())]))
        .flat_map(functions("twice"), schema={"x": "int64", "noise": "double", "y": "string"})
        .batch(4, remainder="keep")
    )
    spec = pipe.to_spec()
    assert '"spec_functions:even"' in json.dumps(spec)
    assert_same(pipe, tmp_path)


def test_a_counted_filter_by_function_comes_back_counted(
    data: Path, tmp_path: Path, functions: Callable[[str], Callable[..., object]]
) -> None:
    pipe = flow.read(data / "*.parquet").filter(functions("even")).counted().select("y").batch(4)
    assert_same(pipe, tmp_path)
    assert len(through_text(pipe.to_spec(), tmp_path, "yaml").loader(output="numpy")) == 12


def test_joins_come_back_and_two_reads_of_one_source_keep_its_ids(data: Path, tmp_path: Path) -> None:
    numbers = flow.read(data / "0.parquet").select("x")
    parts = flow.concat(numbers.take(10), numbers.skip(30), flow.read(data / "1.parquet").select("x"))
    assert_same(parts.shuffle(8).seed(3).batch(5), tmp_path)
    sides = flow.zip(flow.read(data / "0.parquet").select("x"), flow.read(data / "1.parquet").select("y"))
    assert_same(sides.batch(5), tmp_path)


def test_two_reads_of_the_same_files_stay_two_sources(data: Path, tmp_path: Path) -> None:
    url = data / "0.parquet"
    pipe = flow.concat(flow.read(url, columns=["x"]), flow.read(url, columns=["x"])).batch(10)
    assert "shared" not in json.dumps(pipe.to_spec())
    assert_same(pipe, tmp_path)


@pytest.mark.parametrize(
    "condition",
    [
        [("day", ">=", datetime.date(2024, 2, 1))],
        [["x", "in", (1, 2, 3)]],
        [[("x", "<", np.int64(5))], [("y", "=", "text 9")]],
        ~(pc.field("x") > 5) & pc.field("y").isin(["text 1", "text 2, 3"]),
        (pc.field("x") * 2 - 1) / 3 >= 10.5,
        pc.field("day") < datetime.date(2024, 1, 20),
        pc.field("y") == 'quotes " and \\ and \n',
    ],
)
def test_conditions_come_back_equal(
    data: Path, tmp_path: Path, condition: list[tuple[str, str, object]]
) -> None:
    pipe = flow.read(data / "*.parquet", filter=condition).batch(2, remainder="keep")
    spec = pipe.to_spec()
    again = through_text(spec, tmp_path, "json")
    assert again.to_spec() == spec
    assert again.explain() == pipe.explain()
    assert again.count() == pipe.count()


def written_read(pipe: flow.Pipeline) -> dict[str, Json]:
    """The arguments of the first step of a pipeline's spec."""
    steps = pipe.to_spec()["pipeline"]
    assert isinstance(steps, list)
    assert isinstance(steps[0], dict)
    arguments = steps[0]["read"]
    assert isinstance(arguments, dict)
    return arguments


def test_formats_come_back_with_their_options() -> None:
    schema = pa.schema([("a", pa.list_(pa.int32())), ("b", pa.string())])
    for connector in (Tar(key_dot="last", text=("txt", "json")), Folder(label=False), Jsonl(schema=schema)):
        # The files are not there: what is asked here is only how the format is written and read.
        options = written_read(flow.read("memory://nowhere/*", format=connector))["format"]
        assert isinstance(options, dict)
        assert options["name"] == connector.name
        assert FORMAT.read(json.loads(json.dumps(options)), lambda _: print) == connector
    assert written_read(flow.read("memory://nowhere/*", format=Tar())) == {
        "url": "memory://nowhere/*",
        "format": "tar",
    }


def test_a_tensor_of_several_axes_comes_back_by_its_shape(
    data: Path, tmp_path: Path, functions: Callable[[str], Callable[..., object]]
) -> None:
    schema = pa.schema({"image": pa.fixed_shape_tensor(pa.uint8(), (32, 32, 3))})
    pipe = flow.read(data / "*.parquet").map(functions("double"), schema=schema)
    spec = pipe.to_spec()
    assert '{"image": "uint8[32,32,3]"}' in json.dumps(spec)
    for kind in ("yaml", "json"):
        again = through_text(spec, tmp_path, kind)
        assert again.to_spec() == spec
        assert again.schema == schema
