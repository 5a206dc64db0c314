"""`dataflow run`: rate and report, a place that is kept, signals in the middle."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import dataflow as flow
from dataflow.cli import app

ROOT = Path(__file__).parents[2]
SPEC = """
version: 1
seed: 7
pipeline:
  - read: {url: data.parquet, columns: [x]}
  - shuffle: {window: 32}
  - batch: {global_size: 8}
loader:
  threads: 1
"""
# Opens the pipe that the test waits at, in the middle of the first epoch; on with it once the test has seen it.
MARKER = """
import os

told = []

def mark(row):
    if row["x"] == 3000 and not told:
        told.append(True)
        with open(os.environ["MARK"], "w") as pipe:
            pipe.write("here")
    return row
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    pq.write_table(pa.table({"x": np.arange(100), "y": ["a"] * 100}), tmp_path / "data.parquet")
    (tmp_path / "pipe.yaml").write_text(SPEC)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*arguments: str) -> dict[str, Any]:
    done = CliRunner().invoke(app, ["run", "pipe.yaml", "--json", *arguments])
    assert done.exit_code == 0, done.output
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def ids(loader: Any) -> Iterator[list[int]]:
    for batch in loader:
        yield batch["__id__"].tolist()


@pytest.mark.parametrize("epochs", [1, 3])
def test_nothing_is_read_beyond_the_last_epoch(epochs: int) -> None:
    found = run("--epochs", str(epochs))
    assert found["stats"]["stages"]["read"]["rows"] == 100 * epochs


def test_one_epoch_is_iterated_and_reported() -> None:
    done = CliRunner().invoke(app, ["run", "pipe.yaml"])
    assert done.exit_code == 0
    assert done.stdout.startswith("12 batches\n96 rows in ")
    assert "limited by " in done.stdout
    found = run()
    assert {name: found[name] for name in ("ok", "exit_code", "batches", "rows", "epoch", "step")} == {
        "ok": True, "exit_code": 0, "batches": 12, "rows": 96, "epoch": 1, "step": 0,
    }  # fmt: skip
    assert found["rows_per_s"] > 0
    assert "read" in found["stats"]["stages"]


def test_the_place_is_kept_in_a_file_and_gone_on_from(folder: Path) -> None:
    first = run("--steps", "5", "--state", "place.json", "--epochs", "2")
    assert (first["resumed"], first["batches"], first["epoch"], first["step"]) == (False, 5, 0, 5)
    saved = json.loads((folder / "place.json").read_text())
    loader = flow.load_spec("pipe.yaml").loader(output="numpy", ids=True)
    with loader:
        whole = list(ids(loader))
        loader.load_state_dict(saved)
        assert list(ids(loader)) == whole[5:]
    second = run("--state", "place.json", "--epochs", "2")
    assert (second["resumed"], second["batches"], second["epoch"], second["step"]) == (True, 19, 2, 0)
    third = run("--state", "place.json", "--epochs", "2")
    assert (third["batches"], third["epoch"]) == (0, 2)
    assert not list(folder.glob(".*.part"))


@pytest.mark.parametrize(("asked", "batches"), [((), 12), (("--new-files",), 18)])
def test_new_files_join_at_the_next_epoch_where_they_are_asked_for(
    folder: Path, asked: tuple[str, ...], batches: int
) -> None:
    (folder / "pipe.yaml").write_text(SPEC.replace("data.parquet", "'*.parquet'"))
    run("--steps", "5", "--state", "place.json")
    pq.write_table(pa.table({"x": np.arange(50), "y": ["a"] * 50}), folder / "added.parquet")
    found = run("--state", "place.json", "--epochs", "2", *asked)
    assert found["batches"] == 12 - 5 + batches


def test_a_run_that_is_done_says_so_and_how_it_would_go_on() -> None:
    run("--state", "place.json")
    done = CliRunner().invoke(app, ["run", "pipe.yaml", "--state", "place.json"])
    assert done.stdout.startswith("nothing left to do: 1 epoch is done; a larger --epochs goes on\n")


def test_a_spec_may_name_a_device(folder: Path) -> None:
    (folder / "pipe.yaml").write_text(SPEC + "  device: cpu\n")
    assert run()["batches"] == 12


def test_ranks_share_the_rows_and_rank_0_keeps_the_place(folder: Path) -> None:
    found = run("--rank", "1", "--world", "2", "--state", "place.json")
    assert (found["batches"], found["rows"]) == (12, 48)
    assert not (folder / "place.json").exists()
    run("--rank", "0", "--world", "2", "--state", "place.json")
    assert json.loads((folder / "place.json").read_text())["lanes"] == 2


@pytest.mark.parametrize(
    ("rank", "world"),
    [
        ("RANK", "WORLD_SIZE"), ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"), ("PMI_RANK", "PMI_SIZE"),
        ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS"),
    ],
)  # fmt: skip
def test_of_the_ranks_that_a_launcher_started_the_first_keeps_the_place(
    folder: Path, monkeypatch: pytest.MonkeyPatch, rank: str, world: str
) -> None:
    monkeypatch.setenv(rank, "1")
    monkeypatch.setenv(world, "2")
    found = run("--state", "place.json", "--steps", "3")
    assert (found["batches"], found["rows"]) == (3, 12)
    assert not list(folder.glob("*place*"))
    monkeypatch.setenv(rank, "0")
    run("--state", "place.json", "--steps", "3")
    assert json.loads((folder / "place.json").read_text())["step"] == 3
    monkeypatch.setenv(rank, "1")
    saved = (folder / "place.json").read_bytes()
    assert run("--state", "place.json")["resumed"]
    assert (folder / "place.json").read_bytes() == saved


def test_a_rank_that_is_named_counts_more_than_what_a_launcher_says(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "2")
    run("--rank", "0", "--world", "2", "--state", "place.json")
    assert (folder / "place.json").exists()


def test_a_function_that_fails_ends_the_run_with_1_and_keeps_the_place(folder: Path) -> None:
    (folder / "cli_failing.py").write_text(
        "def f(row):\n    assert row['x'] < 50, 'too large'\n    return row\n"
    )
    spec = SPEC.replace(
        "  - shuffle: {window: 32}", "  - map: {function: 'cli_failing:f', schema: {x: int64}}"
    )
    (folder / "pipe.yaml").write_text(spec)
    done = CliRunner().invoke(
        app, ["run", "pipe.yaml", "--json", "--allow", "cli_failing", "--state", "place.json"]
    )
    assert done.exit_code == 1
    found = json.loads(done.stdout)
    assert (found["ok"], found["error"]["type"]) == (False, "StageError")
    assert "too large" in found["error"]["message"]
    assert "on_error='skip'" in found["error"]["hint"]
    assert found["error"]["notes"] == ["data.parquet, row 50"]
    assert "  note: data.parquet, row 50\n" in done.stderr
    assert "error: map(cli_failing:f)" in done.stderr or "error: map" in done.stderr
    assert "Traceback" not in done.stderr
    state = json.loads((folder / "place.json").read_text())
    assert (state["epoch"], state["step"]) == (0, found["batches"])


def test_debug_shows_the_traceback(folder: Path) -> None:
    (folder / "pipe.yaml").write_text(SPEC.replace("shuffle", "shufle"))
    done = CliRunner().invoke(app, ["run", "pipe.yaml", "--debug"])
    assert done.exit_code == 2
    assert "Traceback" in done.stderr
    assert "error: pipe.yaml:6: there is no operator 'shufle'" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "message", "hint"),
    [
        (["missing.yaml"], "missing.yaml cannot be read", "pipe.yaml"),
        (["pipe.yaml", "--state", "nowhere/place.json"], "there is no folder nowhere", "make it first"),
        (["pipe.yaml", "--rank", "1"], "rank=1 with world_size=None", "give both"),
        (["pipe.yaml", "--state", "pipe.yaml"], "the state pipe.yaml is no JSON", "state_dict()"),
        (["pipe.yaml", "--state", "other.json"], "this is no state of a loader", "state_dict()"),
    ],
)
def test_wrong_usage_is_2_with_what_to_do(
    folder: Path, arguments: list[str], message: str, hint: str
) -> None:
    (folder / "other.json").write_text("{}")
    done = CliRunner().invoke(app, ["run", *arguments])
    assert done.exit_code == 2
    assert message in done.stderr
    assert hint in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize(
    ("sent", "code", "name"), [(signal.SIGINT, 130, "Ctrl-C"), (signal.SIGTERM, 143, "SIGTERM")]
)
def test_a_signal_in_the_middle_saves_the_place_and_ends_with_its_code(
    folder: Path, sent: signal.Signals, code: int, name: str
) -> None:
    rows = 4000
    pq.write_table(pa.table({"x": np.arange(rows)}), folder / "data.parquet", row_group_size=100)
    (folder / "cli_marking.py").write_text(MARKER)
    spec = SPEC.replace(
        "  - shuffle: {window: 32}", "  - map: {function: 'cli_marking:mark', schema: {x: int64}}"
    )
    (folder / "pipe.yaml").write_text(spec + "  prefetch: 8\n")
    os.mkfifo(folder / "mark")
    process = subprocess.Popen(
        [sys.executable, "-m", "dataflow", "run", "pipe.yaml", "--epochs", "1000000", "--state", "place.json",
         "--allow", "cli_marking", "--json"],
        env={**os.environ, "PYTHONPATH": str(ROOT), "MARK": str(folder / "mark")},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert (folder / "mark").read_text() == "here"
        process.send_signal(sent)
        # It ends only when its threads have.
        out, err = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == code, err
    assert f"stopped by {name}" in err
    assert "Traceback" not in err
    found = json.loads(out)
    state = json.loads((folder / "place.json").read_text())
    assert (found["ok"], found["exit_code"]) == (False, code)
    assert (found["epoch"], found["step"]) == (state["epoch"], state["step"])
    assert found["batches"] == state["epoch"] * 500 + state["step"] > 0
    sys.path.insert(0, str(folder))
    try:
        loader = flow.load_spec("pipe.yaml", ["cli_marking"]).loader(output="numpy", ids=True)
    finally:
        sys.path.remove(str(folder))
    sys.modules["cli_marking"].told.append(True)
    with loader:
        loader.load_state_dict(state)
        first = next(ids(loader))
    # Without a shuffle every epoch is in file order.
    assert first == list(range(8 * state["step"], 8 * state["step"] + 8))


def test_how_many_epochs_there_are_may_stand_in_the_spec_and_the_command_counts_more(folder: Path) -> None:
    (folder / "pipe.yaml").write_text(SPEC + "  epochs: 2\n")
    found = run()
    assert (found["epoch"], found["stats"]["stages"]["read"]["rows"]) == (2, 200)
    assert run("--epochs", "1")["epoch"] == 1


def test_a_state_that_is_no_regular_file_is_wrong_usage_and_stays(folder: Path) -> None:
    os.mkfifo(folder / "pipe")
    done = CliRunner().invoke(app, ["run", "pipe.yaml", "--state", "pipe"])
    assert done.exit_code == 2
    assert "--state pipe: it is no regular file." in done.stderr
    assert (folder / "pipe").is_fifo()
