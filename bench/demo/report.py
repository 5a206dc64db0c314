"""What the user sees of the demo."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from bench.demo.figures import Figures
from bench.demo.proof import Proof
from bench.demo.size import Size
from connectors.contract import Json

__all__ = ["Outcome", "print_outcome", "say"]


@dataclass(frozen=True)
class Outcome:
    """All that the demo has found out; `folder` is None where nothing is left."""

    size: Size
    data_mb: float
    made_s: float
    indexed_s: float
    before: Figures
    after: Figures
    peer: Figures
    proof: Proof
    took_s: float
    folder: Path | None

    def to_json(self) -> dict[str, Json]:
        """The outcome as plain data."""
        return {
            "data": {
                "images": self.size.images, "text_rows": self.size.text_rows, "mb": round(self.data_mb, 1),
                "made_s": round(self.made_s, 3), "indexed_s": round(self.indexed_s, 3),
                "folder": None if self.folder is None else str(self.folder),
            },
            "dataflow": _figures_json(self.before), "resumed": _figures_json(self.after),
            "dataloader": _figures_json(self.peer),
            "killed_at": self.size.killed_at, "saved_at": self.size.saved_at, "proof": self.proof.to_json(),
            "took_s": round(self.took_s, 1),
        }  # fmt: skip


def _figures_json(figures: Figures) -> dict[str, Json]:
    losses: dict[str, Json] = {str(step): loss for step, loss in figures.losses.items()}
    return {**asdict(figures), "losses": losses}


def say(text: str, *, json_: bool) -> None:
    """One line about what is going on; silent where one JSON object is the output."""
    if not json_:
        print(text, flush=True)


def print_outcome(outcome: Outcome, *, json_: bool) -> None:
    """As JSON, as a table in a terminal, or as plain lines."""
    if json_:
        print(json.dumps(outcome.to_json()))
        return
    header = (
        "",
        f"{outcome.before.ranks} ranks, killed",
        f"resumed on {outcome.after.ranks}",
        "DataLoader, 2 ranks",
    )
    rows = _rows(outcome.before, outcome.after, outcome.peer)
    if sys.stdout.isatty():
        _print_rich(header, rows)
    else:
        print()
        for row in (header, *rows):
            print(f"{row[0]:<24}{row[1]:>18}{row[2]:>18}{row[3]:>22}")
    print()
    print(_verdict(outcome))
    print(_again(outcome))
    print(f"{outcome.took_s:.0f} s in all" + (f"; the data is in {outcome.folder}" if outcome.folder else ""))


def _rows(*figures: Figures) -> list[tuple[str, ...]]:
    return [
        ("samples/s", *(f"{f.samples_per_s:,.0f}" for f in figures)),
        ("first batch", *(f"{f.first_batch_s:.2f} s" for f in figures)),
        ("input stall", *(f"{f.stall:.1%}" for f in figures)),
        ("peak memory", *(f"{f.peak_mb:,.0f} MB" for f in figures)),
        ("steps", *(f"{f.steps}" for f in figures)),
        ("loss, first to last", *(f"{_first(f.losses):.2f} to {_last(f.losses):.2f}" for f in figures)),
    ]


def _first(losses: Mapping[int, float]) -> float:
    return losses[min(losses)]


def _last(losses: Mapping[int, float]) -> float:
    return losses[max(losses)]


def _print_rich(header: tuple[str, ...], rows: list[tuple[str, ...]]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table()
    for place, name in enumerate(header):
        table.add_column(name, justify="right" if place else "left")
    for row in rows:
        table.add_row(*row)
    Console().print(table)


def _verdict(outcome: Outcome) -> str:
    proof = outcome.proof
    if not proof.holds:
        return f"NOT EXACT: {proof.differs}"
    return (
        f"exact: {proof.steps_before} steps before the kill and {proof.steps_after} after it gave the same "
        f"{proof.ids:,} ids, in order, as one rank without interruption"
    )


def _again(outcome: Outcome) -> str:
    """The steps done twice have the same samples and weights, so that only rounding may part their losses."""
    step = outcome.size.saved_at
    was, now = outcome.before.losses.get(step), outcome.after.losses.get(step)
    return f"step {step} was done twice: loss {_shown(was)} on 2 ranks before the kill, {_shown(now)} on 3 after it"


def _shown(loss: float | None) -> str:
    return "unknown" if loss is None else f"{loss:.5f}"
