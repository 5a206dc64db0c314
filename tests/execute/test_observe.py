"""What a loader says about itself: stats, report, trace."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from recipes import Recipe, loaders

import dataflow as flow
from dataflow.errors import StageError


@pytest.mark.parametrize("function", ["none", "map", "filter"])
def test_stats_count_what_was_delivered_and_every_stage(function: str) -> None:
    (loader,) = loaders(
        Recipe(parts=((40,),), window=8, function=function, batch=4, remainder="keep").pipe(), 1
    )
    with loader:
        fresh = loader.stats()
        assert (fresh["rows"], fresh["elapsed_s"]) == (0, 0.0)
        rows = sum(len(batch["x"]) for batch in loader)
        stats = loader.stats()
    assert stats["rows"] == rows
    assert (stats["epoch"], stats["step"], stats["errors"]) == (1, 0, 0)
    stages = stats["stages"]
    assert isinstance(stages, dict)
    wanted = {"order", "read", "deliver"} | ({function} if function != "none" else set())
    assert wanted <= set(stages)
    for stage in stages.values():
        assert isinstance(stage, dict)
        assert all(isinstance(value, int | float) and value >= 0 for value in stage.values())
    deliver = stages["deliver"]
    assert isinstance(deliver, dict)
    assert deliver["rows"] == rows
    assert json.loads(json.dumps(stats)) == stats


def test_the_report_names_the_limit_and_what_would_help() -> None:
    (loader,) = loaders(Recipe(parts=((40,),), function="map", batch=4).pipe(), 1)
    with loader:
        assert "nothing yet" in loader.report()
        list(loader)
        report = loader.report()
        stats = loader.stats()
    assert report.startswith("40 rows in")
    for name in ("read", "map", "deliver", "waiting s"):
        assert name in report
    assert f"limited by {stats['limited_by']}" in report


def test_the_trace_is_a_timeline_of_every_stage(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    (loader,) = loaders(Recipe(parts=((40,),), function="map", batch=4).pipe(), 1, trace=path)
    with loader:
        list(loader)
    events = json.loads(path.read_text())["traceEvents"]
    spans = [event for event in events if event["ph"] == "X"]
    assert {"order", "read", "map", "deliver"} <= {span["name"] for span in spans}
    assert all(span["dur"] >= 0 and span["ts"] > 0 for span in spans)
    named = {event["tid"] for event in events if event["ph"] == "M"}
    assert {span["tid"] for span in spans} <= named
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("end", ["whole", "break", "error", "close"])
def test_time_between_two_fors_is_not_counted(monkeypatch: pytest.MonkeyPatch, end: str) -> None:
    now = [0.0]
    monkeypatch.setattr("dataflow.execute.clock.time", SimpleNamespace(perf_counter=lambda: now[0]))

    def fail(row: dict[str, Any]) -> dict[str, Any]:
        if end == "error" and row["x"] == 7:
            raise ValueError("seven")
        return row

    loader = flow.from_columns({"x": range(8)}).map(fail).batch(2).loader(output="numpy")
    with suppress(StageError):
        for number, _ in enumerate(loader):
            now[0] += 1.0
            if end == "break" and number == 2:
                break
    if end == "close":
        loader.close()
    steps = 3 if end in ("break", "error") else 4
    now[0] += 100.0
    assert loader.stats()["elapsed_s"] == steps
    if end != "close":
        with suppress(StageError):
            for _ in loader:
                now[0] += 1.0
        assert loader.stats()["elapsed_s"] == steps + (3 if end == "error" else 4)
    loader.close()
