"""Bad rows behind which no batch comes are written down and counted like all others."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dataflow as flow
from dataflow.errors import DataError, PlanError


def _pipe(bad: range, rows: int = 100) -> flow.Pipeline:
    def checked(row: dict[str, Any]) -> dict[str, Any]:
        if int(row["x"]) in bad:
            raise ValueError(f"no {int(row['x'])}")
        return row

    return flow.from_columns({"x": np.arange(rows)}).map(checked, schema={"x": "int64"})


def _written(file: Path) -> list[int]:
    return [json.loads(line)["row"] for line in file.read_text().splitlines()]


@pytest.mark.parametrize("lanes", [1, 3])
@pytest.mark.parametrize("remainder", ["drop", "keep", "pad"])
def test_bad_rows_behind_the_last_batch_are_written_and_counted(
    tmp_path: Path, remainder: Any, lanes: int
) -> None:
    pipe = _pipe(range(92, 100)).batch(9, lanes=lanes, remainder=remainder)
    with pipe.loader(on_error="skip", quarantine=tmp_path / "bad.jsonl", output="numpy") as loader:
        list(loader)
        assert loader.stats()["errors"] == 8
        assert loader.state_dict()["errors"] == 8
    assert sorted(_written(tmp_path / "bad.jsonl")) == list(range(92, 100))


def test_where_no_row_is_good_all_are_written_and_the_error_says_so(tmp_path: Path) -> None:
    loader = (
        _pipe(range(100)).batch(10).loader(on_error="skip", quarantine=tmp_path / "bad.jsonl", output="numpy")
    )
    with loader, pytest.raises(DataError, match="0 rows beside 100 bad rows") as caught:
        list(loader)
    assert "quarantine=" in caught.value.hint
    assert _written(tmp_path / "bad.jsonl") == list(range(100))


def test_too_many_bad_rows_behind_the_last_batch_are_too_many(tmp_path: Path) -> None:
    pipe = _pipe(range(92, 100)).batch(9)
    with (
        pipe.loader(on_error="skip", max_errors=3, output="numpy") as loader,
        pytest.raises(DataError, match="max_errors=3"),
    ):
        list(loader)


@pytest.mark.parametrize("name", ["quarantine", "trace"])
def test_a_folder_where_a_file_is_to_be_written_is_an_error_at_once(tmp_path: Path, name: str) -> None:
    folder: Any = {name: tmp_path}
    with pytest.raises(PlanError, match=rf"{name}=.* is a folder"):
        _pipe(range(0)).batch(10).loader(**folder)


def test_the_folder_of_a_timeline_is_made(tmp_path: Path) -> None:
    with _pipe(range(0)).batch(10).loader(trace=tmp_path / "new" / "t.json", output="numpy") as loader:
        list(loader)
    assert json.loads((tmp_path / "new" / "t.json").read_text())["traceEvents"]


@pytest.mark.parametrize("then", ["skip", "raise"])
def test_a_state_tells_that_rows_were_left_out_in_one_of_two_runs(then: Any) -> None:
    now: Any = "raise" if then == "skip" else "skip"
    pipe = _pipe(range(0)).batch(10)
    state = pipe.loader(on_error=then).state_dict()
    state.pop("cursors", None)
    with pytest.raises(PlanError, match=r"on_error='skip' (then, not here|here, not then)") as caught:
        pipe.loader(on_error=now).load_state_dict(state)
    assert "on_error='skip'" in caught.value.hint
