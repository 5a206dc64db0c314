"""The case of one format: the engine reads the files, beside how one reads them without it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import dataflow as flow
from bench.case import Bar, Case, Figures, Prepare, Run, Side
from bench.measure import ENGINE_IMPORTS, iterate, timed
from dataflow.wording import counted

__all__ = ["Engine", "Peer", "side_by_side"]

# As many as the loops beside it have.
_THREADS = 1


@dataclass(frozen=True, kw_only=True)
class Engine:
    """What the engine reads: `pipe` makes batches of the data in a folder, `column` is one of theirs.

    `connector` is the module of the format, loaded before the clock starts.
    """

    pipe: Callable[[Path], flow.Pipeline]
    column: str
    connector: str

    def run(self, folder: Path, quick: bool) -> Figures:
        """One epoch in NumPy batches."""
        with self.pipe(folder).loader(threads=_THREADS, output="numpy") as loader:
            return timed(partial(iterate, loader, self.column))


@dataclass(frozen=True, kw_only=True)
class Peer:
    """Who does the same without the engine: `how` it reads, and the `tool` that the ratio is against."""

    name: str
    run: Run
    how: str
    tool: str


def side_by_side(*, name: str, summary: str, prepare: Prepare, engine: Engine, peer: Peer) -> Case:
    """A case with the rates of both sides and the ratio of the two, none of them judged."""
    return Case(
        name=name,
        summary=summary,
        prepare=prepare,
        sides=(
            Side(name="dataflow", run=engine.run, imports=(*ENGINE_IMPORTS, engine.connector)),
            Side(name=peer.name, run=peer.run),
        ),
        bars=(
            Bar(label=f"dataflow, {counted(_THREADS, 'thread')}", figure="rows_per_s", side="dataflow", unit="rows/s"),
            Bar(label=peer.how, figure="rows_per_s", side=peer.name, unit="rows/s"),
            Bar(
                label=f"against {peer.tool}", figure="rows_per_s",
                side="dataflow", against=peer.name, how="ratio",
            ),
        ),
    )  # fmt: skip
