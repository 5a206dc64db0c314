"""The quarantine file under `on_error="raise"`, and when its handle is open: the row that ends the run is in it."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from recipes import Row, fragments, json_copy

import dataflow as flow
from dataflow.errors import ConnectorError, DataError, DataflowError, PlanError
from dataflow.execute.quarantine import Quarantine
from dataflow.graph.block import BadSample
from dataflow.options import ErrorPolicy, OnError
from loaders.ranked import RankedLoader


def _checked(bad: Sequence[int]) -> Callable[[Any], None]:
    def check(values: Any) -> None:
        for value in np.atleast_1d(values).tolist():
            if value in bad:
                raise ValueError(f"value {value} is bad")

    return check


def _map(bad: Sequence[int], source: flow.Pipeline | None = None) -> flow.Pipeline:
    check = _checked(bad)

    def one(row: Row) -> Row:
        check(row["x"])
        return {"x": row["x"]}

    return (source or fragments([8] * 5)).map(one, schema={"x": "int64"})


def _batched(bad: Sequence[int]) -> flow.Pipeline:
    check = _checked(bad)

    def many(columns: Row) -> Row:
        check(columns["x"])
        return {"x": columns["x"]}

    return fragments([8] * 5).map(many, schema={"x": "int64"}, batched=True, batch_size=5)


def _filter(bad: Sequence[int]) -> flow.Pipeline:
    check = _checked(bad)
    return fragments([8] * 5).filter(lambda row: check(row["x"]) is None)


def _flat_map(bad: Sequence[int]) -> flow.Pipeline:
    check = _checked(bad)

    def twice(row: Row) -> list[Row]:
        check(row["x"])
        return [{"x": int(row["x"])}] * 2

    return fragments([8] * 5).flat_map(twice, schema={"x": "int64"})


KINDS = {"map": _map, "batched": _batched, "filter": _filter, "flat_map": _flat_map}


def _loader(pipe: flow.Pipeline, path: Path | None, on_error: OnError = "raise") -> RankedLoader[Any]:
    return pipe.loader(output="numpy", threads=2, on_error=on_error, quarantine=path)


def _error(loader: RankedLoader[Any]) -> DataflowError:
    with pytest.raises(DataflowError) as caught:
        list(loader)
    return caught.value


def _lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def _open_handles(path: Path) -> int:
    return sum(Path(file.path) == path for file in psutil.Process().open_files())


# ---- the row that ends a run


@pytest.mark.parametrize("lanes", [1, 2])
@pytest.mark.parametrize("kind", KINDS)
def test_the_row_that_ends_the_run_is_written_down_once_and_its_error_is_as_ever(
    tmp_path: Path, kind: str, lanes: int
) -> None:
    path = tmp_path / "deep" / "bad.jsonl"
    # Both lanes, and several rows of one window, are bad: the first that is due is the one.
    pipe = KINDS[kind]([12, 13, 30, 32]).batch(4, lanes=lanes)
    with _loader(pipe, None) as loader:
        want = _error(loader)
    with _loader(pipe, path) as loader:
        error = _error(loader)
        (line,) = _lines(path)  # at once, not when the loader is closed
        assert not _open_handles(path)
        assert loader.stats()["errors"] == 0
    assert (type(error), str(error), error.__notes__) == (type(want), str(want), want.__notes__)
    assert line["error"] == f"{type(error).__name__}: {error}"
    first = 10 if kind == "batched" else 12  # a batched function gets five rows at a time
    assert line["row"] in ({first} if lanes == 1 else {first, 30})
    assert (line["source"], line["file"], line["id"]) == ("memory", "in memory", line["row"])
    assert line["operator"].startswith("map" if kind == "batched" else kind)
    if kind != "batched":
        assert "among" not in line
        assert f"value {line['row']} is bad" in line["error"]


def test_of_a_batched_function_the_first_of_its_rows_is_written_and_how_many_there_were(
    tmp_path: Path,
) -> None:
    path = tmp_path / "bad.jsonl"
    with _loader(_batched([12]).batch(4), path) as loader:
        error = _error(loader)
    (line,) = _lines(path)
    assert (line["row"], line["among"]) == (10, 5)
    assert error.__notes__ == ["one of 5 rows, of which the first is in memory, row 10"]


def test_a_fragment_that_cannot_be_read_is_written_with_its_first_row(tmp_path: Path) -> None:
    data, path = tmp_path / "a.parquet", tmp_path / "bad.jsonl"
    pq.write_table(pa.table({"x": np.arange(400)}), data, row_group_size=100, use_dictionary=False)
    content = bytearray(data.read_bytes())
    start = pq.ParquetFile(data).metadata.row_group(1).column(0).data_page_offset
    content[start : start + 40] = b"\xff" * 40
    data.write_bytes(content)
    with _loader(flow.read(data).batch(10), path) as loader:
        error = _error(loader)
    assert isinstance(error, DataError)
    (line,) = _lines(path)
    assert (line["file"], line["row"], line["operator"]) == ("a.parquet", 100, "read")
    assert line["error"] == f"DataError: {error}"


def test_a_row_that_a_connector_cannot_decode_is_written_with_its_file(tmp_path: Path) -> None:
    texts = [json.dumps({"x": number}) for number in range(20)]
    texts[7] = '{"x": '
    (tmp_path / "a.jsonl").write_text("\n".join(texts[:5]) + "\n")
    (tmp_path / "b.jsonl").write_text("\n".join(texts[5:]) + "\n")
    with _loader(flow.read(tmp_path / "*.jsonl", name="texts").batch(5), tmp_path / "bad") as loader:
        _error(loader)
    (line,) = _lines(tmp_path / "bad")
    assert (line["source"], line["file"], line["row"], line["operator"]) == ("texts", "b.jsonl", 2, "read")


def test_a_file_that_cannot_be_written_does_not_hide_the_row_s_error(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "bad.jsonl"
    with _loader(_map([12]).batch(4), path) as loader:
        path.parent.rmdir()
        error = _error(loader)
    assert "value 12 is bad" in str(error)
    assert f"it could not be written to {path}" in error.__notes__[-1]


@pytest.mark.parametrize("policy", ["skip", "replace"])
def test_a_file_that_cannot_be_written_any_more_ends_a_run_that_bears_bad_rows(
    tmp_path: Path, policy: OnError
) -> None:
    path = tmp_path / "folder" / "bad.jsonl"
    with _loader(_map([12]).batch(4), path, policy) as loader:
        path.parent.rmdir()
        error = _error(loader)
    assert isinstance(error, ConnectorError)
    assert f"could not be written to quarantine={str(path)!r}: No such file or directory" in error.message
    assert "value 12 is bad" in error.message
    assert "room or rights" in error.hint


@pytest.mark.parametrize("argument", ["quarantine", "trace"])
@pytest.mark.parametrize(
    "place", ["file/bad.jsonl", "/proc/nowhere/bad.jsonl", "/sys/bad.jsonl", "zero\0.jsonl", "long" * 100]
)
def test_a_place_that_cannot_be_written_to_is_an_error_when_the_loader_is_made(
    tmp_path: Path, argument: str, place: str
) -> None:
    (tmp_path / "file").touch()
    given: Any = {argument: tmp_path / place}
    with pytest.raises(PlanError, match=f"{argument}=.* cannot be written: ") as caught:
        _map([]).batch(4).loader(output="numpy", **given)
    assert "a folder that is there and may be written to" in caught.value.hint


def test_a_file_that_is_there_and_may_not_be_written_to_is_an_error_when_the_loader_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "bad.jsonl"
    path.touch()
    # Whoever may do everything, as the user of a container often, has this right as well.
    monkeypatch.setattr("os.access", lambda file, mode: False)
    with pytest.raises(PlanError, match="no right to write to it"):
        _loader(_map([]).batch(4), path)


@pytest.mark.parametrize("argument", ["quarantine", "trace"])
def test_what_is_no_regular_file_is_an_error_when_the_loader_is_made(tmp_path: Path, argument: str) -> None:
    os.mkfifo(tmp_path / "pipe")
    given: Any = {argument: tmp_path / "pipe"}
    with pytest.raises(PlanError, match=rf"{argument}=.* cannot be written: it is no regular file"):
        _map([]).batch(4).loader(output="numpy", **given)
    assert (tmp_path / "pipe").is_fifo()


def test_no_file_is_left_where_no_row_is_bad(tmp_path: Path) -> None:
    with _loader(_map([]).batch(4), tmp_path / "deep" / "bad.jsonl") as loader:
        list(loader)
    assert not list((tmp_path / "deep").iterdir())


def test_lines_of_any_length_that_several_write_at_once_stay_whole(tmp_path: Path) -> None:
    path = tmp_path / "bad.jsonl"
    memory = fragments([8]).node.source
    assert memory is not None

    def fill(letter: str) -> None:
        quarantine = Quarantine(ErrorPolicy(on_error="skip", quarantine=path), {0: memory.index})
        for number in range(100):
            quarantine.add([BadSample(0, number % 8, "map", ValueError(letter * 100_000))])
        quarantine.close()

    threads = [threading.Thread(target=fill, args=(letter,)) for letter in "abc"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    lines = _lines(path)
    assert len(lines) == 300
    assert {line["error"] for line in lines} == {f"ValueError: {letter * 100_000}" for letter in "abc"}


def test_what_is_no_row_s_fault_is_not_written_down(tmp_path: Path) -> None:
    path = tmp_path / "bad.jsonl"

    def broken(batch: Row) -> Row:
        raise ValueError("collate")

    pipe = _map([]).batch(4)
    with (
        pipe.loader(output="numpy", collate=broken, quarantine=path) as loader,
        pytest.raises(ValueError, match="collate"),
    ):
        list(loader)
    assert not path.exists()


def test_where_nothing_can_step_in_the_row_that_ends_the_run_is_written_too(tmp_path: Path) -> None:
    path = tmp_path / "bad.jsonl"
    source = fragments([8] * 5).shuffle(8)
    with _loader(_map(range(40), source).batch(4), path, "replace") as loader:
        error = _error(loader)
    (line,) = _lines(path)
    assert "rows of its window" in line["error"]
    assert line["error"] == f"DataError: {error}"


@pytest.mark.parametrize("policy", ["skip", "replace"])
def test_the_last_straw_is_written_once(tmp_path: Path, policy: OnError) -> None:
    path = tmp_path / "bad.jsonl"
    pipe = _map([2, 9, 21, 30]).batch(4)
    with pipe.loader(output="numpy", on_error=policy, quarantine=path, max_errors=2) as loader:
        error = _error(loader)
    assert "max_errors=2" in str(error)
    assert [line["row"] for line in _lines(path)] == [2, 9, 21]


def test_several_runs_fill_one_file(tmp_path: Path) -> None:
    path = tmp_path / "bad.jsonl"
    for _ in range(2):
        with _loader(_map([2, 9]).batch(4), path, "replace") as loader:
            list(loader)
    assert [line["row"] for line in _lines(path)] == [2, 9, 2, 9]


# ---- its handle


def test_one_handle_is_open_at_most_and_none_when_the_loader_is_closed(tmp_path: Path) -> None:
    path = tmp_path / "bad.jsonl"
    with _loader(_map([1, 6, 13]).batch(4), path, "replace") as loader:
        assert not _open_handles(path)
        running = iter(loader)
        next(running)
        state = json_copy(loader.state_dict())
        assert _open_handles(path) == 1
        for _ in range(3):
            loader.load_state_dict(state)
            assert not _open_handles(path)
            next(iter(loader))
            assert _open_handles(path) == 1
    assert not _open_handles(path)
    assert [line["row"] for line in _lines(path)] == [1, 6, 6, 6]
