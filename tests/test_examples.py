"""The examples do what their first lines say, on small data; so does the YAML of the README."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dataflow as flow

EXAMPLES = Path(__file__).parents[1] / "examples"
STEP = re.compile(r"step (\d+) loss ([\d.]+)")
TIMEOUT_S = 200


def run(work: Path, *arguments: str, **environment: str) -> str:
    """Run Python in `work`, its threads kept few, and return what it prints."""
    done = subprocess.run(
        # -P: what an example imports is what is installed, not what lies beside it.
        [sys.executable, "-P", *arguments],
        cwd=work,
        env={**os.environ, "OMP_NUM_THREADS": "1", **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=TIMEOUT_S,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def train(work: Path, ranks: int, *arguments: str) -> list[tuple[int, float]]:
    """Train on tokens on so many ranks; return the steps that were done and their losses."""
    return steps_of(started(work, ranks, "train.py", "data/tokens", *arguments))


def steps_of(printed: str) -> list[tuple[int, float]]:
    return [(int(step), float(loss)) for step, loss in STEP.findall(printed)]


def started(work: Path, ranks: int, example: str, *arguments: str) -> str:
    """Run an example on so many ranks; return what it prints."""
    command = (str(EXAMPLES / example), *arguments)
    if ranks == 1:
        # What torchrun would set; port 0 is any free one, and a launcher less is seconds less.
        alone = {"RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "localhost", "MASTER_PORT": "0"}
        return run(work, *command, **alone)
    launcher = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(ranks))
    return run(work, *launcher, *command)


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """A folder with the examples' data."""
    few = ("--rows", "480", "--images", "120", "--photographs", "80")
    run(tmp_path, str(EXAMPLES / "make_data.py"), "data", *few)
    return tmp_path


def test_a_training_stopped_on_two_ranks_goes_on_with_one_as_if_it_had_not_stopped(work: Path) -> None:
    whole = train(work, 1, "--checkpoint", "whole.pt")
    before = train(work, 2, "--checkpoint", "run.pt", "--stop-after", "4")
    after = train(work, 1, "--checkpoint", "run.pt")
    assert [step for step, _ in whole] == list(range(1, 11))
    assert [step for step, _ in before] == [1, 2, 3, 4]
    assert [step for step, _ in before + after] == [step for step, _ in whole]
    # Two ranks add the same numbers in another order than one does.
    assert [loss for _, loss in before + after] == pytest.approx([loss for _, loss in whole], abs=2e-3)
    assert train(work, 1, "--checkpoint", "run.pt") == []  # the epoch is done


def test_photographs_are_told_apart_and_a_training_of_them_goes_on_with_other_ranks(work: Path) -> None:
    small = ("data/photographs", "--epochs", "2", "--size", "32", "--global-batch", "16", "--threads", "1")
    # Without a launcher, and so without torch.distributed.
    whole = run(work, str(EXAMPLES / "train_images.py"), *small, "--checkpoint", "whole.pt")
    # In the second epoch.
    stop = ("--checkpoint", "run.pt", "--stop-after", "5")
    before = started(work, 2, "train_images.py", *small, *stop)
    after = started(work, 1, "train_images.py", *small, "--checkpoint", "run.pt")
    steps = steps_of(before) + steps_of(after)
    assert (len(steps_of(before)), len(steps)) == (5, 8)
    assert [step for step, _ in steps] == [step for step, _ in steps_of(whole)]
    assert [loss for _, loss in steps] == pytest.approx([loss for _, loss in steps_of(whole)], abs=2e-3)
    evaluated = re.compile(r"epoch (\d) right \d+ of (\d+)")
    assert evaluated.findall(whole) == evaluated.findall(before + after)
    assert [epoch for epoch, _ in evaluated.findall(whole)] == ["0", "1"]


def test_the_image_example_evaluates_every_row_and_writes_down_the_bad_images(work: Path) -> None:
    bad = set()
    for shard in sorted((work / "data" / "images").glob("*.tar")):
        with tarfile.open(shard) as archive:
            pictures = [member.name for member in archive if member.name.endswith(".jpg")]
        bad |= {(shard.name, row) for row, name in enumerate(pictures) if int(name[:-4]) % 40 == 9}
    assert len(bad) == 3
    printed = run(work, str(EXAMPLES / "images.py"), "data/images", "--epochs", "2")
    assert printed.count("epoch ") >= 2
    rows = {int(rows) for rows in re.findall(r"right \d+ of (\d+)", printed)}
    assert len(rows) == 1
    assert 0 < rows.pop() < 40
    lines = [json.loads(line) for line in (work / "bad.jsonl").read_text("utf-8").splitlines()]
    assert f"bad images, replaced: {len(lines)}, written to bad.jsonl" in printed
    assert lines
    assert {(line["file"], line["row"]) for line in lines} <= bad
    assert all("truncated" in line["error"] for line in lines)


def test_the_yaml_of_the_readme_is_the_pipeline_of_its_python(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = (EXAMPLES.parent / "README.md").read_text("utf-8")
    monkeypatch.chdir(tmp_path)
    pq.write_table(pa.table({"tokens": [[1, 2], [3]], "id": [0, 1]}), "rows.parquet")
    text = re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)
    written = re.findall(r"^pipe = \(\n.*?^\)", page, re.DOTALL | re.MULTILINE)
    assert (len(text), len(written)) == (1, 1)
    Path("train.yaml").write_text(text[0], "utf-8")
    names: dict[str, Any] = {"flow": flow}
    exec(written[0], names)
    assert flow.load_spec("train.yaml").to_spec() == names["pipe"].to_spec()
