"""`dataflow run`: iterate a spec, and say how fast it goes and what holds it back."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import typer

from connectors.contract import Json
from dataflow.cli.open import open_from_here
from dataflow.cli.reporting import Allow, AsJson, Debug, Output, reporting
from dataflow.cli.state import load_state, save_state
from dataflow.errors import PlanError
from dataflow.execute.loader import Loader
from dataflow.wording import counted

__all__ = ["run"]


def run(
    spec: Annotated[str, typer.Argument(metavar="SPEC", help="A YAML or JSON file.")],
    epochs: Annotated[
        int, typer.Option("--epochs", min=1, help="Epochs in all, those before a resume included.")
    ] = 1,
    steps: Annotated[int | None, typer.Option("--steps", min=1, help="Stop after so many batches.")] = None,
    state: Annotated[
        Path | None,
        typer.Option(
            "--state", help="Go on from this file if it is there; the place is saved in it at the end, at an "
            "error and at Ctrl-C. Of several ranks, rank 0 writes it.",
        ),
    ] = None,
    new_files: Annotated[
        bool,
        typer.Option("--new-files", help="Files that are new since --state was saved join at the next epoch."),
    ] = False,
    rank: Annotated[int | None, typer.Option("--rank", help="Which rank this is; with --world.")] = None,
    world: Annotated[int | None, typer.Option("--world", help="How many ranks there are.")] = None,
    allow: Allow = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:  # fmt: skip
    """Iterate the batches of a SPEC, drop them, and report the rate and what limits it.

    Options of the loader stand in the spec, under `loader:`.
    """
    with reporting(as_json=as_json, debug=debug) as output:
        if state is not None and not state.parent.is_dir():
            raise PlanError(f"--state {state}: there is no folder {state.parent}.", hint="make it first")
        opened = open_from_here(spec, allow)
        # Batches are dropped here, and without torch the command starts a second earlier.
        options: dict[str, Any] = {"output": "numpy", **opened.loader}
        loader = opened.pipeline.loader(**options, epochs=epochs, rank=rank, world_size=world)
        resumed = state is not None and state.exists()
        if state is not None and resumed:
            loader.load_state_dict(load_state(state), new_files=new_files)
            output.say(f"going on at epoch {loader.epoch}, step {loader.step}, from {state}")
        going = _Going(loader, loader.epoch, loader.step)
        try:
            with loader, _shown(output, _total(loader, epochs, steps)) as advance:
                going.iterate(epochs, steps, advance)
        finally:
            # Also at Ctrl-C and errors: what was delivered is kept.
            saved = going.state()
            if state is not None and not rank:
                save_state(saved, state)
            stats = loader.stats()
            data: dict[str, Json] = {
                "spec": spec, "batches": going.batches, "rows": stats["rows"], "rows_per_s": stats["rows_per_s"],
                "epoch": saved["epoch"], "step": saved["step"], "resumed": resumed,
                "state": None if state is None else str(state), "stats": stats,
            }  # fmt: skip
            kept = "" if state is None or rank else f"\nplace saved in {state}"
            output.give(data, _text(going, loader, epochs) + kept)


@dataclass
class _Going:
    """An iteration, and its place behind the last batch that was received."""

    loader: Loader[Any]
    epoch: int
    step: int
    batches: int = field(default=0, init=False)

    def iterate(self, epochs: int, steps: int | None, advance: Callable[[], None]) -> None:
        loader = self.loader
        while loader.epoch < epochs:
            for _ in loader:
                self.epoch, self.step = loader.epoch, loader.step
                self.batches += 1
                advance()
                if self.batches == steps:
                    return

    def state(self) -> dict[str, Json]:
        """The state; where Ctrl-C fell between a batch and its receipt, the one in front of that batch."""
        ahead = (self.loader.epoch, self.loader.step) != (self.epoch, self.step)
        return self.loader.state_dict(lag=int(ahead))


def _text(going: _Going, loader: Loader[Any], epochs: int) -> str:
    if not going.batches and loader.epoch >= epochs:
        return (
            f"nothing left to do: {counted(epochs, 'epoch is', 'epochs are')} done; a larger --epochs goes on"
        )
    if not going.batches:
        return f"no batch was delivered, at epoch {going.epoch}, step {going.step}"
    return f"{counted(going.batches, 'batch')}\n{loader.report()}"


def _total(loader: Loader[Any], epochs: int, steps: int | None) -> int | None:
    try:
        rest = loader.remaining + (epochs - loader.epoch - 1) * len(loader)
    except TypeError:
        return steps
    return max(0, rest if steps is None else min(rest, steps))


@contextmanager
def _shown(output: Output, total: int | None) -> Iterator[Callable[[], None]]:
    """A progress bar on a terminal; nothing elsewhere."""
    if output.json or not sys.stderr.isatty():
        yield lambda: None
        return
    # Here, not at the top: only a terminal needs rich.
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("batches"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("batches", total=total)
        yield lambda: progress.advance(task)
