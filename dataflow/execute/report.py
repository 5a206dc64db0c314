"""The report of a loader: its stages as a table, and what limits it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from connectors.contract import Json
from dataflow.wording import counted

__all__ = ["render_report"]

_ORDER = ("order", "read", "arrange", "assemble", "develop", "deliver")


def render_report(stats: Mapping[str, Json]) -> str:
    """The counters of `Loader.stats()` as lines of text, stages in the order of the data's way."""
    stages = cast(dict[str, dict[str, float]], stats["stages"])
    middle = [name for name in stages if name not in _ORDER]
    names = [n for n in _ORDER[:3] if n in stages] + middle + [n for n in _ORDER[3:] if n in stages]
    elapsed = cast(float, stats["elapsed_s"])
    lines = [
        f"{counted(cast(int, stats['rows']), 'row')} in {elapsed:.2f} s ({stats['rows_per_s']:,.0f} rows/s), "
        f"epoch {stats['epoch']}, step {stats['step']}",
        f"{'stage':<14}{'rows':>12}{'MB':>10}{'busy s':>10}{'waiting s':>11}{'busy':>7}",
    ]
    for name in names:
        stage = stages[name]
        share = stage["busy_s"] / elapsed if elapsed else 0.0
        lines.append(
            f"{name:<14}{stage['rows']:>12,}{stage['bytes'] / 1e6:>10,.1f}{stage['busy_s']:>10.3f}"
            f"{stage['wait_s']:>11.3f}{share:>7.0%}"
        )
    start_s = stages.get("deliver", {}).get("start_s", 0.0)
    if start_s:
        lines.append(f"waited for the first batch: {start_s:.3f} s, not counted above")
    lines.append(f"limited by {stats['limited_by']}: {stats['advice']}")
    lines += [f"images: {line.strip()}" for line in cast(list[str], stats["images"])]
    if stats["errors"]:
        lines.append(counted(cast(int, stats["errors"]), "bad row"))
    return "\n".join(lines)
