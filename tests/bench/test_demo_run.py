"""The demo as a whole, small."""

from __future__ import annotations

import json
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest

import bench.demo.run
import bench.photographs
from bench.demo import run_demo
from bench.demo.job import RankJob
from bench.demo.processes import Heard
from bench.demo.proof import Proof
from bench.demo.size import Size
from dataflow.errors import MissingExtraError, PlanError

SMALL = Size(steps=6, save_every=3, image_batch=12, text_batch=24, image_shards=3, text_files=2, pixels=16)


def test_the_demo_proves_itself_and_leaves_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    assert run_demo(json=True, size=SMALL) == 0
    report = json.loads(capfd.readouterr().out)
    assert report["proof"]["holds"] is True
    assert report["proof"]["steps_before"] == SMALL.saved_at == 6
    assert report["proof"]["steps_after"] == SMALL.total_steps - SMALL.saved_at
    assert (report["dataflow"]["ranks"], report["resumed"]["ranks"], report["dataloader"]["ranks"]) == (
        2,
        3,
        2,
    )
    # The step that was done twice had the same samples, augmented alike, and the same weights.
    again = str(SMALL.saved_at)
    assert report["resumed"]["losses"][again] == pytest.approx(report["dataflow"]["losses"][again], abs=1e-4)
    assert list(tmp_path.iterdir()) == []


def said(job: RankJob, steps: range) -> list[dict[str, object]]:
    return [
        {
            "step": step,
            "images": [step],
            "text": [step],
            "loss": 1.0,
            "samples": 2,
            "waited_s": 0.1,
            "took_s": 1.0,
        }
        for step in steps
    ]


@pytest.fixture
def no_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    """In the place of processes, what they would say."""

    def run(module: str, jobs: list[RankJob], *, kill_at: int | None = None) -> Heard:
        start = SMALL.saved_at if jobs[0].resume else 0
        steps = range(start, kill_at or jobs[0].steps)
        ranks = [said(job, steps) if job.rank == 0 else _empty(said(job, steps)) for job in jobs]
        return Heard([{"imports_bytes": 1, "indexed_s": 0.1}] * len(jobs), ranks, 10**6, 1.0)

    monkeypatch.setattr(bench.demo.run, "run_processes", run)


def _empty(records: list[dict[str, object]]) -> list[dict[str, object]]:
    return [{**record, "images": [], "text": []} for record in records]


@pytest.mark.usefixtures("no_processes")
def test_data_stays_in_a_folder_that_was_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "new" / "demo"
    assert run_demo(folder, size=SMALL) == 0
    assert len(list((folder / "images").glob("*.tar"))) == SMALL.image_shards
    assert len(list((folder / "text").glob("*.parquet"))) == SMALL.text_files
    shown = capsys.readouterr().out
    assert "exact: 6 steps before the kill and 6 after it" in shown
    assert str(folder) in shown
    with pytest.raises(PlanError, match="not an empty folder") as caught:
        run_demo(folder, size=SMALL)
    assert "empty or a new one" in caught.value.hint


@pytest.mark.usefixtures("no_processes")
def test_a_proof_that_fails_is_the_exit_code(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    failed = Proof(6, 6, 10, "step 3: other images than without the interruption")
    monkeypatch.setattr(bench.demo.run, "prove", lambda *runs, saved_at: replace(failed))
    assert run_demo(size=SMALL) == 1
    assert "NOT EXACT: step 3" in capsys.readouterr().out


def test_a_missing_extra_is_seen_before_anything_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(bench.photographs, "find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match="photographs need PIL"):
        run_demo(tmp_path / "new")
    assert capsys.readouterr().out == ""
    assert not (tmp_path / "new").exists()
