"""The whole demo, from making the data to the report."""

from __future__ import annotations

import contextlib
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from bench.demo.figures import figures_of
from bench.demo.images import make_images
from bench.demo.job import RankJob
from bench.demo.processes import Heard, run_processes
from bench.demo.proof import prove
from bench.demo.report import Outcome, print_outcome, say
from bench.demo.size import Size
from bench.demo.text import make_text
from bench.photographs import check_extra
from dataflow.cores import available_cores
from dataflow.errors import PlanError

__all__ = ["run_demo"]

_RANK, _ORDER = "bench.demo.rank", "bench.demo.order"


def run_demo(folder: Path | None = None, json: bool = False, size: Size | None = None) -> int:
    """Make data, train on two ranks, kill them half-way, go on with three, and prove that no sample moved.

    Without `folder` everything lies in a temporary one and nothing is left; else the data stays in `folder`.
    `json` prints one JSON object in place of the report. Returns the exit code: 0, or 1 where the proof fails.

    Raises:
        PlanError: `folder` holds something.
        MissingExtraError: Pillow or scikit-learn is not installed.
        DemoFailed: a process of the demo failed.
    """
    check_extra()
    with _place(folder) as place:
        outcome = _run(place, size or Size(), json, folder)
    print_outcome(outcome, json_=json)
    return 0 if outcome.proof.holds else 1


def _run(place: Path, size: Size, json: bool, kept: Path | None) -> Outcome:
    began = time.perf_counter()
    say(
        f"making {size.images:,} JPEG images in tar shards and {size.text_rows:,} rows of text in Parquet",
        json_=json,
    )
    data_mb = _make_data(place, size)
    made_s = time.perf_counter() - began
    say(f"  {data_mb:.0f} MB in {made_s:.1f} s; indexing, and the order of all steps on one rank", json_=json)
    plain = run_processes(
        _ORDER, [RankJob(name="order", folder=str(place), size=size, steps=size.total_steps)]
    )
    say(f"training on 2 ranks, to be killed after {size.killed_at} of {size.total_steps} steps", json_=json)
    before = run_processes(
        _RANK, _jobs("first", place, size, 2, size.held_at, hold=True), kill_at=size.killed_at
    )
    say(f"killed; going on from the state of step {size.saved_at} on 3 ranks", json_=json)
    after = run_processes(_RANK, _jobs("second", place, size, 3, size.total_steps, resume=True))
    say("the first half again under torch.utils.data.DataLoader, 2 ranks", json_=json)
    peer = run_processes(_RANK, _jobs("peer", place, size, 2, size.killed_at, feed="dataloader"))
    proof = prove(plain.steps[0], before.steps, after.steps, saved_at=size.saved_at)
    return Outcome(
        size, data_mb, made_s, _indexed_s(plain), figures_of(before), figures_of(after), figures_of(peer), proof,
        time.perf_counter() - began, kept,
    )  # fmt: skip


def _indexed_s(heard: Heard) -> float:
    found: float = heard.first[0]["indexed_s"]
    return found


def _jobs(
    name: str, place: Path, size: Size, world: int, steps: int, *, resume: bool = False, hold: bool = False,
    feed: Literal["dataflow", "dataloader"] = "dataflow",
) -> list[RankJob]:  # fmt: skip
    threads = max(1, available_cores() // world)
    return [
        RankJob(
            name=name, folder=str(place), size=size, rank=rank, world=world, steps=steps, resume=resume, hold=hold,
            input=feed, threads=threads,
        )
        for rank in range(world)
    ]  # fmt: skip


def _make_data(place: Path, size: Size) -> float:
    """Make both data sets; megabytes on disk."""
    for name in ("images", "text"):
        (place / name).mkdir()
    make_images(place / "images", images=size.images, shards=size.image_shards, threads=available_cores())
    make_text(place / "text", rows=size.text_rows, row_bytes=size.row_bytes, files=size.text_files)
    return sum(file.stat().st_size for file in place.rglob("*") if file.is_file()) / 1e6


@contextlib.contextmanager
def _place(folder: Path | None) -> Iterator[Path]:
    if folder is None:
        with tempfile.TemporaryDirectory(prefix="dataflow-demo-") as temporary:
            yield Path(temporary)
        return
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise PlanError(f"{folder} is not an empty folder.", hint="give the demo an empty or a new one")
    folder.mkdir(parents=True, exist_ok=True)
    yield folder.resolve()
