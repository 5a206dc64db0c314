"""What a loader says about itself: stats, report, trace."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from recipes import Recipe, loaders


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
