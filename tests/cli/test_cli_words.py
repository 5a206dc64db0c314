"""The other words of the command line: what they print, as text and as JSON, and their exit codes."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
import types
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import dataflow as flow
from dataflow.cli import app, main
from dataflow.errors import MissingExtraError

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    table = pa.table({
        "x": [1.5, float("nan"), None], "image": [b"\xff\xd8" * 50] * 3, "tokens": [[1, 2], [], [3]],
    })  # fmt: skip
    pq.write_table(table, tmp_path / "data.parquet")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def text_of(*arguments: str) -> str:
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 0, done.output
    return done.stdout


def json_of(*arguments: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(text_of(*arguments, "--json"))
    return found


def test_the_version_is_that_of_the_package() -> None:
    assert text_of("--version") == f"dataflow-engine {flow.__version__}\n"


def test_the_help_says_what_exit_codes_mean() -> None:
    done = " ".join(text_of("--help").split())
    assert "130 stopped by Ctrl-C" in done
    for word in ("run", "explain", "index", "inspect", "state", "demo", "bench"):
        assert f" {word} " in done


def test_inspect_shows_columns_rows_and_fragments() -> None:
    shown = text_of("inspect", "data.parquet", "--rows", "2")
    assert shown.startswith("data: parquet, 1 files, ")
    assert "3 rows, " in shown
    assert "1 fragments of 3 to 3 rows" in shown
    assert "x       double" in shown
    assert "row 0: x=1.5, image=<100 bytes: ff d8" in shown
    assert "row 1: x=nan" in shown
    assert "row 2" not in shown


def test_inspect_as_json_has_nothing_that_json_lacks() -> None:
    found = json_of("inspect", "data.parquet")
    assert found["ok"] is True
    assert found["rows"] == 3
    assert found["schema"]["tokens"].startswith("list<")
    first, second, third = found["first_rows"]
    assert first["image"] == {"bytes": 100, "first": " ".join(["ff d8"] * 6)}
    assert first["tokens"] == [1, 2]
    assert second["x"] == "nan"
    assert third["x"] is None


def test_inspect_names_the_rows_that_cannot_be_read(folder: Path) -> None:
    (folder / "rows.jsonl").write_text('{"a": 1}\n{"a": oh}\n{"a": 3}\n')
    found = json_of("inspect", "rows.jsonl")
    assert [row["a"] for row in found["first_rows"]] == [1, 3]
    assert any(problem.startswith("Row 1 cannot be read: ") for problem in found["problems"])


def test_index_is_built_where_it_is_wanted(folder: Path) -> None:
    found = json_of("index", "data.parquet", "--out", "kept")
    assert (found["rows"], found["out"]) == (3, "kept")
    assert list((folder / "kept").glob("*.arrow"))
    assert "index at kept" in text_of("index", "data.parquet", "--out", "kept")
    assert flow.read("data.parquet", index="kept").count() == 3


def test_explain_shows_both_trees(folder: Path) -> None:
    (folder / "pipe.yaml").write_text(
        "version: 1\npipeline:\n  - read: {url: data.parquet}\n  - select: {columns: [x]}\n"
        "  - batch: {size: 2}\nloader: {threads: 2}\n"
    )
    pipe = flow.read("data.parquet").select("x").batch(2)
    assert text_of("explain", "pipe.yaml") == f"{pipe.explain()}\nloader: threads=2\n"
    found = json_of("explain", "pipe.yaml")
    assert found["columns"] == {"x": "double"}
    assert found["loader"] == {"threads": 2}


def test_state_show_says_where_a_state_stands(folder: Path) -> None:
    with flow.read("data.parquet", columns=["tokens"]).batch(1).loader(output="arrow") as loader:
        next(iter(loader))
        (folder / "state.json").write_text(json.dumps(loader.state_dict()))
    shown = text_of("state", "show", "state.json")
    assert shown.startswith("epoch 0, step 1\nglobal batch 1, lanes 1")
    assert "source data: 3 rows" in shown
    assert json_of("state", "show", "state.json")["state"]["step"] == 1


@pytest.mark.parametrize(
    ("arguments", "code", "message", "hint"),
    [
        (["inspect", "dat.parquet"], 1, "dat.parquet does not exist", "did you mean 'data.parquet'"),
        (["inspect", "data.parquet", "--format", "parqet"], 2, "'parqet' is unknown", "'parquet'"),
        (
            ["index", "data.parquet", "--storage-options", "anon"],
            2,
            "'anon' is no JSON object",
            '{"anon": true}',
        ),
        (["state", "show", "data.parquet"], 2, "is no JSON", "state_dict()"),
        (["state", "show", "missing.json"], 2, "cannot be read", "check the path"),
        (["explain", "missing.yaml"], 2, "missing.yaml cannot be read", "no spec in that folder"),
    ],
)
def test_errors_have_a_code_a_message_and_a_hint(
    arguments: list[str], code: int, message: str, hint: str
) -> None:
    done = CliRunner().invoke(app, [*arguments, "--json"])
    assert done.exit_code == code
    found = json.loads(done.stdout)
    assert (found["ok"], found["exit_code"]) == (False, code)
    assert message in found["error"]["message"]
    assert message in done.stderr
    if "no spec" not in hint:
        assert hint in found["error"]["hint"]
    assert "Traceback" not in done.stderr


def test_a_file_that_is_damaged_is_1(folder: Path) -> None:
    (folder / "broken.parquet").write_bytes(b"PAR1" + b"\0" * 30)
    done = CliRunner().invoke(app, ["inspect", "broken.parquet"])
    assert done.exit_code == 1
    assert "broken.parquet" in done.stderr


def test_wrong_words_and_options_are_2(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rn"]) == 2
    assert "rn" in capsys.readouterr().err
    assert main(["run"]) == 2
    assert main(["run", "x.yaml", "--epochs", "0"]) == 2
    assert main(["--version"]) == 0


def with_module(monkeypatch: pytest.MonkeyPatch, name: str, **contents: object) -> None:
    module = types.ModuleType(name)
    vars(module).update(contents)
    monkeypatch.setitem(sys.modules, name, module)


def test_the_demo_gets_its_options_and_gives_its_code(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[tuple[Path | None, bool]] = []

    def run_demo(folder: Path | None, json: bool) -> int:
        calls.append((folder, json))
        return 1

    with_module(monkeypatch, "bench.demo", run_demo=run_demo)
    assert main(["demo", "--folder", "here", "--json"]) == 1
    assert main(["demo"]) == 1
    assert calls == [(Path("here"), True), (None, False)]


def test_a_missing_extra_is_3(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def run_demo(folder: Path | None, json: bool) -> int:
        raise MissingExtraError("scikit-learn is not installed.", extra="demo")

    with_module(monkeypatch, "bench.demo", run_demo=run_demo)
    assert main(["demo", "--json"]) == 3
    printed = capsys.readouterr()
    assert json.loads(printed.out)["error"]["hint"] == "pip install 'dataflow-engine[demo]'"
    assert "pip install" in printed.err


def test_bench_gets_all_that_stands_behind_it(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[list[str]] = []

    def bench_app(*, args: list[str], prog_name: str) -> None:
        calls.append(args)
        raise SystemExit(1)

    with_module(monkeypatch, "bench.cli", app=bench_app)
    assert main(["bench", "run", "--quick", "tokens", "--help"]) == 1
    assert calls == [["run", "--quick", "tokens", "--help"]]


def test_a_fault_of_our_own_asks_to_be_reported(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("oh")

    # The package's attribute of that name is the command.
    monkeypatch.setattr(importlib.import_module("dataflow.cli.inspect"), "read", broken)
    assert main(["inspect", "data.parquet"]) == 1
    assert "ZeroDivisionError: oh" in (printed := capsys.readouterr().err)
    assert "--debug" in printed


def test_a_reader_that_has_enough_leaves_no_traceback() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = subprocess.run(
            [sys.executable, "-m", "dataflow", "inspect", str(Path.cwd() / "data.parquet")],
            cwd=ROOT, stdout=writing, stderr=subprocess.PIPE, text=True, timeout=60,
        )  # fmt: skip
    finally:
        os.close(writing)
    assert done.returncode == 1
    assert done.stderr == ""


def test_the_module_runs_as_the_command_does() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "dataflow", "--version"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout == f"dataflow-engine {flow.__version__}\n"
