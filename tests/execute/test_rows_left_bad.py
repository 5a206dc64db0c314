"""Bad rows behind which no batch comes are written down and counted like all others."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dataflow as flow
from dataflow.errors import DataError


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
