"""The other words of the command line: what they print, as text and as JSON, and their exit codes."""

from __future__ import annotations

import importlib
import io
import json
import os
import re
import subprocess
import sys
import tarfile
import tomllib
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
    assert "130 stopped by Ctrl-C; 143 stopped by SIGTERM" in done
    for word in ("run", "explain", "index", "inspect", "state", "demo", "bench"):
        assert f" {word} " in done


def test_inspect_shows_columns_rows_and_fragments() -> None:
    shown = text_of("inspect", "data.parquet", "--rows", "2")
    assert shown.startswith("data: parquet, 1 file, ")
    assert "3 rows, " in shown
    assert "1 fragment of 3 rows" in shown
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


def test_one_of_a_thing_is_said_as_one(folder: Path) -> None:
    pq.write_table(pa.table({"x": [1]}), folder / "one.parquet")
    (folder / "pipe.yaml").write_text(
        "version: 1\npipeline:\n  - read: {url: one.parquet}\n  - batch: {size: 1}\n"
    )
    shown = text_of("inspect", "one.parquet") + text_of("explain", "pipe.yaml") + text_of("run", "pipe.yaml")
    for said in ("1 file, ", "1 row, 8 bytes", "1 fragment of 1 row\n", "B: 1 row,", "1 batch\n1 row in "):
        assert said in shown
    assert not re.findall(r"\b1 (?!byte)\w+s\b", shown.replace("1 rows/s", ""))


def test_inspect_shows_the_classes_by_label(folder: Path) -> None:
    for name in ("dog/1.jpg", "cat/1.jpg"):
        (folder / "images" / name).parent.mkdir(parents=True)
        (folder / "images" / name).write_bytes(b"image")
    assert "2 classes by label: 0 cat, 1 dog\n" in text_of("inspect", "images")
    assert json_of("inspect", "images")["classes"] == ["cat", "dog"]
    assert json_of("inspect", "data.parquet")["classes"] == []


def test_inspect_names_the_members_that_some_samples_of_a_tar_lack(folder: Path) -> None:
    members = {"a": ("1.cls", "1.txt", "2.cls"), "b": ("3.cls",), "c": ("4.cls", "5.cls", "5.txt")}
    for shard, names in members.items():
        with tarfile.open(folder / f"{shard}.tar", "w") as archive:
            for name in names:
                member = tarfile.TarInfo(name)
                member.size = 1
                archive.addfile(member, io.BytesIO(b"1"))
    problems = json_of("inspect", "a.tar", "b.tar", "c.tar", "--rows", "1")["problems"]
    assert "b.tar has no column 'txt'." in problems
    (lacks,) = [problem for problem in problems if "samples without 'txt'" in problem]
    assert lacks.startswith("2 files, as a.tar, have samples without 'txt', which are bad rows")
    assert 'Tar(optional=("txt",))' in lacks


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


def test_an_index_that_cannot_be_written_where_it_is_wanted_is_1(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "taken").write_text("a file, and no folder")
    for _ in range(2):  # built, and then found in the cache
        assert main(["index", "data.parquet", "--out", "taken/kept"]) == 1
        printed = capsys.readouterr()
        assert "cannot be written" in printed.err
        assert "the room that is left" in printed.err
        assert "index at" not in printed.out
    assert main(["index", "data.parquet", "--out", "fine"]) == 0


def test_inspect_takes_the_index_that_is_kept(folder: Path) -> None:
    assert json_of("inspect", "data.parquet", "--index", "kept")["rows"] == 3
    assert list((folder / "kept").glob("*.arrow"))


def test_bench_explains_itself_by_the_short_option_too(capsys: pytest.CaptureFixture[str]) -> None:
    for option in ("-h", "--help"):
        assert main(["bench", option]) == 0
        assert "Measure Dataflow on this machine" in capsys.readouterr().out


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


def test_a_library_that_ctrl_c_finds_being_imported_is_no_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def run_demo(folder: Path | None, json: bool) -> int:
        try:
            raise KeyboardInterrupt
        except KeyboardInterrupt as stop:
            raise ImportError("numpy could not be imported") from stop

    with_module(monkeypatch, "bench.demo", run_demo=run_demo)
    assert main(["demo"]) == 130
    assert capsys.readouterr().err == "stopped by Ctrl-C\n"
    with_module(monkeypatch, "bench.cli", app=lambda **_: run_demo(None, False))
    assert main(["bench"]) == 130
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("library", ["typer", "numpy", "pyarrow"])
def test_ctrl_c_ends_quietly_however_early_it_comes(folder: Path, library: str) -> None:
    (folder / f"{library}.py").write_text(
        "import os, signal\n"
        "os.kill(os.getpid(), signal.SIGINT)\n"
        "raise ImportError('what a library makes of Ctrl-C while it is imported')\n"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-m", "dataflow", "--version"],
        env={**os.environ, "PYTHONPATH": f"{folder}{os.pathsep}{ROOT}"},
        capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


def test_the_command_begins_with_next_to_no_imports() -> None:
    heavy = subprocess.run(
        [sys.executable, "-c", "import sys, dataflow.__main__; print({'numpy', 'typer'} & {*sys.modules})"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert heavy.stdout == "set()\n"
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert project["scripts"]["dataflow"] == "dataflow.__main__:main"


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


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["run", "--json"], "Missing argument"),
        (["run", "x.yaml", "--json", "--epochs", "0"], "--epochs"),
        (["run", "x.yaml", "--wrong", "--json"], "--wrong"),
        (["explain", "x.yaml", "--world", "many", "--json"], "--world"),
        (["state", "show", "--json"], "Missing argument"),
        (["nothing", "--json"], "nothing"),
    ],
)
def test_wrong_usage_is_one_json_object_as_well(arguments: list[str], said: str) -> None:
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 2
    found = json.loads(done.stdout)
    assert (found["ok"], found["exit_code"], found["error"]["type"]) == (False, 2, "UsageError")
    assert said in found["error"]["message"]
    assert "--help" in found["error"]["hint"]
    assert said in done.stderr
    plain = CliRunner().invoke(app, [each for each in arguments if each != "--json"])
    assert (plain.exit_code, plain.stdout) == (2, "")
