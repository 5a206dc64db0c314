"""`dataflow run`: iterate a spec, and say how fast it goes and what holds it back."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from connectors.contract import Json
from dataflow.cli.open import SpecFile, open_from_here
from dataflow.cli.reporting import Allow, AsJson, Debug, Output, reporting
from dataflow.cli.state import load_state, save_state
from dataflow.cli.stopping import sigterm_as_ctrl_c
from dataflow.errors import PlanError
from dataflow.execute.loader import Loader
from dataflow.execute.whole_file import target_of
from dataflow.spec import Spec
from dataflow.wording import counted

__all__ = ["run"]


Epochs = Annotated[
    int | None,
    typer.Option(
        "--epochs", min=1, help="Epochs in all, those before a resume included; else as the spec says, or 1."
    ),
]
Steps = Annotated[int | None, typer.Option("--steps", min=1, help="Stop after so many batches.")]
StateFile = Annotated[
    Path | None,
    typer.Option(
        "--state", help="Go on from this file if it is there; the place is saved in it at the end, at an error, at "
        "Ctrl-C and at SIGTERM. Of several ranks, rank 0 writes it.",
    ),
]  # fmt: skip
NewFiles = Annotated[
    bool,
    typer.Option("--new-files", help="Files that are new since --state was saved join at the next epoch."),
]
Rank = Annotated[int | None, typer.Option("--rank", help="Which rank this is; with --world.")]
World = Annotated[int | None, typer.Option("--world", help="How many ranks there are.")]


def run(
    spec: SpecFile, epochs: Epochs = None, steps: Steps = None, state: StateFile = None, new_files: NewFiles = False,
    rank: Rank = None, world: World = None, allow: Allow = None, as_json: AsJson = False, debug: Debug = False,
) -> None:  # fmt: skip
    """Iterate the batches of a SPEC, drop them, and report the rate and what limits it.

    Options of the loader stand in the spec, under `loader:`.
    """
    with sigterm_as_ctrl_c(), reporting(as_json=as_json, debug=debug) as output:
        place = None if state is None else _Kept(state)
        opened = open_from_here(spec, allow)
        most = epochs or opened.loader.get("epochs") or 1
        loader = _loader(opened, most, rank, world)
        resumed = place is not None and place.restore(loader, output, new_files=new_files)
        going = _Going(loader, most, steps)
        try:
            going.iterate(output)
        finally:
            # Also at Ctrl-C, SIGTERM and errors: what was delivered is kept.
            saved = going.state()
            kept = "" if place is None else place.save(saved, loader.rank)
            facts: dict[str, Json] = {
                "spec": spec,
                "resumed": resumed,
                "state": None if state is None else str(state),
            }
            output.give({**facts, **going.facts(saved)}, going.text() + kept)


def _loader(opened: Spec, epochs: int, rank: int | None, world: int | None) -> Loader[Any]:
    # Batches are dropped here, and without torch the command starts a second earlier; only torch has devices.
    first: dict[str, Any] = {} if opened.loader.get("device") is not None else {"output": "numpy"}
    options: dict[str, Any] = {**first, **opened.loader, "epochs": epochs, "rank": rank, "world_size": world}
    made: Loader[Any] = opened.pipeline.loader(**options)
    return made


class _Kept:
    """The file that keeps the place of all ranks, which their first one writes.

    Raises:
        PlanError: it lies in no folder, or is a device, a pipe or the like.
    """

    def __init__(self, file: Path) -> None:
        try:
            folder = target_of(file).parent
        except OSError as error:
            raise PlanError(f"--state {file}: {error.strerror}.", hint="give the name of a file") from error
        # The folder as it was written, where it is that one; else the one that a link leads to.
        for needed in (file.parent, folder):
            if not needed.is_dir():
                raise PlanError(f"--state {file}: there is no folder {needed}.", hint="make it first")
        self._file = file

    def restore(self, loader: Loader[Any], output: Output, *, new_files: bool) -> bool:
        """Let the loader go on from the file, where it is there."""
        if not self._file.exists():
            return False
        saved, _ = load_state(self._file)
        loader.load_state_dict(saved, new_files=new_files)
        output.say(f"going on at epoch {loader.epoch}, step {loader.step}, from {self._file}")
        return True

    def save(self, state: dict[str, Json], rank: int) -> str:
        """Write the place where this is the rank that does, and say so."""
        if rank:
            return ""
        save_state(state, self._file)
        return f"\nplace saved in {self._file}"


class _Going:
    """An iteration, and its place behind the last batch that was received."""

    def __init__(self, loader: Loader[Any], epochs: int, steps: int | None) -> None:
        self._loader, self._epochs, self._steps = loader, epochs, steps
        self._place = (loader.epoch, loader.step)
        self._batches = 0

    def iterate(self, output: Output) -> None:
        """Take the batches that are left, and close the loader."""
        loader = self._loader
        with loader, _shown(output, _total(loader, self._epochs, self._steps)) as advance:
            while loader.epoch < self._epochs:
                for _ in loader:
                    self._place = (loader.epoch, loader.step)
                    self._batches += 1
                    advance()
                    if self._batches == self._steps:
                        return

    def state(self) -> dict[str, Json]:
        """The state; where a signal fell between a batch and its receipt, the one in front of that batch."""
        ahead = (self._loader.epoch, self._loader.step) != self._place
        return self._loader.state_dict(lag=int(ahead))

    def facts(self, state: Mapping[str, Json]) -> dict[str, Json]:
        """What was delivered, up to where, and how fast."""
        stats = self._loader.stats()
        return {
            "batches": self._batches, "rows": stats["rows"], "rows_per_s": stats["rows_per_s"],
            "epoch": state["epoch"], "step": state["step"], "stats": stats,
        }  # fmt: skip

    def text(self) -> str:
        """The same for people."""
        if self._batches:
            return f"{counted(self._batches, 'batch')}\n{self._loader.report()}"
        if self._loader.epoch >= self._epochs:
            done = counted(self._epochs, "epoch is", "epochs are")
            return f"nothing left to do: {done} done; a larger --epochs goes on"
        epoch, step = self._place
        return f"no batch was delivered, at epoch {epoch}, step {step}"


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
