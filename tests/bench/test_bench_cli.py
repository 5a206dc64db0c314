"""`dataflow bench`, with one case in earnest."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from bench.case import Case, Figures, Need, Side
from bench.cases import case_names, find_case
from bench.cli import app
from bench.report import lines_of_left_out
from bench.run import CaseFailed, run_case


@pytest.fixture(autouse=True)
def own_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("DATAFLOW_BENCH", str(tmp_path / "bench"))


def test_the_list_has_every_case() -> None:
    done = CliRunner().invoke(app, ["list", "--json"])
    assert done.exit_code == 0
    assert sorted(json.loads(done.stdout)) == case_names()
    shown = CliRunner().invoke(app, ["list"])
    assert [line.split()[0] for line in shown.stdout.splitlines()] == case_names()


def test_an_unknown_case_is_wrong_usage() -> None:
    done = CliRunner().invoke(app, ["run", "tokenz"])
    assert done.exit_code == 2
    assert "did you mean" in done.stderr
    assert "'tokens'" in done.stderr


def test_a_run_reports_machine_figures_and_bars_as_json() -> None:
    done = CliRunner().invoke(app, ["run", "tokens", "--quick", "--json"])
    assert done.exit_code == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["quick"] is True
    assert report["repeats"] == 1
    assert report["machine"]["cores"] >= 1
    assert report["machine"]["versions"]["pyarrow"]
    case = report["cases"]["tokens"]
    rows = {side: figures[0]["rows"] for side, figures in case["figures"].items()}
    assert rows == {
        "dataflow": 2 * 24_576,
        "pyarrow": 2 * 24_576,
        "dataloader": 24_576,
        "slicing_dataloader": 2 * 24_576,
    }
    bars = {bar["label"]: bar for bar in case["bars"]}
    ratio = bars["against pyarrow"]
    assert ratio["low"] <= ratio["median"] <= ratio["high"]
    assert ratio["met"] is (ratio["median"] >= ratio["at_least"])


def test_a_run_is_shown_as_a_table_that_says_whether_bars_are_met() -> None:
    done = CliRunner().invoke(app, ["run", "import_time", "--quick", "--repeats", "2"])
    assert done.exit_code == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0].startswith("import_time: ")
    assert lines[1].split()[:2] == ["import", "dataflow"]
    assert lines[1].split()[-1] in ("met", "MISSED")
    assert "median of 2" in lines[-1]


def test_a_side_that_fails_is_an_error_with_what_it_wrote() -> None:
    case = Case(name="nowhere", summary="", prepare=lambda quick: Path(), sides=(), bars=())
    with pytest.raises(CaseFailed, match="there is no benchmark case 'nowhere'") as caught:
        run_case(case, repeats=1, quick=True, say=lambda text: None)
    assert "bench.worker" in caught.value.hint


def test_a_side_that_lacks_a_library_is_left_out_with_a_word() -> None:
    def never(folder: Path, quick: bool) -> Figures:
        raise AssertionError

    case = Case(
        name="never", summary="", prepare=lambda quick: Path(), bars=(), needs=(Need("nowhere", "demo"),),
        sides=(Side(name="theirs", run=never), Side(name="ours", run=never, needs=(Need("torch", "all"),))),
    )  # fmt: skip
    ran = run_case(case, repeats=1, quick=True, say=lambda text: None)
    assert ran.figures == {}
    lines = lines_of_left_out(ran)
    assert lines == [
        f"{side} left out: nowhere is not installed (pip install 'dataflow-engine[demo]')"
        for side in ("theirs", "ours")
    ]


def test_a_package_that_is_not_there_is_a_need_that_is_not_met() -> None:
    assert Need("torch", "all").met
    assert not Need("nowhere.at.all", "all").met


@pytest.mark.parametrize(("name", "rows"), [("images", 128), ("raw_images", 2 * 512)])
def test_every_side_of_the_cases_of_images_goes_through_the_same_images(name: str, rows: int) -> None:
    case = find_case(name)
    folder = case.prepare(True)
    ran = [side for side in case.sides if case.lacking(side) is None and "memory" not in side.name]
    # Worker processes are forked, which the threads of other tests would not outlive.
    here = [side for side in ran if "dataloader" not in side.name]
    figures = [side.run(folder, True) for side in here]
    apart = replace(case, sides=tuple(side for side in ran if side not in here), bars=())
    for measured in run_case(apart, repeats=1, quick=True, say=lambda text: None).figures.values():
        figures += measured
    assert len(figures) == len(ran)
    assert {one["rows"] for one in figures} == {rows}
    assert all(one["rows_per_s"] > 0 and one["cpu_us_per_batch"] > 0 for one in figures)
