"""The figures as a table for people, or as one JSON object."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict

from bench.case import Bar
from bench.judge import Judged, Spread, judge
from bench.run import Runs
from connectors.contract import Json

__all__ = ["as_json", "lines_of_left_out", "machine_line", "number", "table_rows"]


def as_json(
    runs: Sequence[Runs], machine: Mapping[str, Json], *, repeats: int, quick: bool
) -> dict[str, Json]:
    """Machine, scale, and of every case the bars and the raw figures of every repeat."""
    cases: dict[str, Json] = {}
    for run in runs:
        cases[run.case.name] = {
            "summary": run.case.summary,
            "bars": [_bar_json(judged) for judged in judge(run)],
            "figures": {side: [dict(one) for one in figures] for side, figures in run.figures.items()},
            "left_out": {side: need.module for side, need in run.left_out.items()},
        }
    return {"machine": dict(machine), "quick": quick, "repeats": repeats, "cases": cases}


def _bar_json(judged: Judged) -> dict[str, Json]:
    value: dict[str, Json] = {**asdict(judged.bar), **asdict(judged.value), "met": judged.met}
    return value


def table_rows(runs: Runs) -> list[tuple[str, str, str, str, str]]:
    """Of one case, a row for each bar: what, median, spread, the bar, and whether it is met."""
    rows = []
    for judged in judge(runs):
        bar, value = judged.bar, judged.value
        met = {True: "met", False: "MISSED", None: ""}[judged.met]
        rows.append((bar.label, _shown(value.median, bar), _range(value, bar), _wanted(bar), met))
    return rows


def lines_of_left_out(runs: Runs) -> list[str]:
    """A line for each side that did not run: why, and what would change that."""
    return [
        f"{side} left out: {need.module} is not installed (pip install 'dataflow-engine[{need.extra}]')"
        for side, need in runs.left_out.items()
    ]


def machine_line(machine: Mapping[str, Json], *, repeats: int, quick: bool) -> str:
    """Machine and scale in one line."""
    versions = machine["versions"]
    assert isinstance(versions, dict)
    known = ", ".join(f"{name} {value}" for name, value in versions.items() if value)
    scale = "small data (--quick): the bars are meant for full data" if quick else "full data"
    return (
        f"{machine['cpu']}, {machine['cores']} cores, {machine['memory_gb']} GB, load {machine['load']}, "
        f"{machine['system']}, Python {machine['python']}, {known}; {scale}, median of {repeats}"
    )


def number(value: float) -> str:
    """Three digits that matter."""
    if value == 0:
        return "0"
    size = abs(value)
    if size >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if size >= 10 else f"{value:.2f}" if size >= 0.1 else f"{value:.3g}"


def _shown(value: float, bar: Bar) -> str:
    return number(value) + (" x" if bar.how == "ratio" else f" {bar.unit}" if bar.unit else "")


def _range(value: Spread, bar: Bar) -> str:
    return f"{number(value.low)} .. {number(value.high)}"


def _wanted(bar: Bar) -> str:
    parts = []
    if bar.at_least is not None:
        parts.append(f">= {number(bar.at_least)}")
    if bar.at_most is not None:
        parts.append(f"<= {number(bar.at_most)}")
    return ", ".join(parts)
