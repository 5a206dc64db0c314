"""`dataflow state`: what a saved state says."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from connectors.contract import Json
from dataflow.cli.reporting import AsJson, Debug, reporting
from dataflow.errors import PlanError
from dataflow.execute.state import State
from dataflow.execute.whole_file import write_whole
from dataflow.wording import counted

__all__ = ["load_state", "save_state", "show", "state"]

state = typer.Typer(help="Saved states of loaders.", no_args_is_help=True)


@state.callback()
def _state() -> None:
    """Saved states of loaders."""


@state.command()
def show(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="A state as `run --state` writes it, or any JSON of one.")
    ],
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Show where the state in FILE stands, and of which data it is."""
    with reporting(as_json=as_json, debug=debug) as output:
        saved, found = load_state(file)
        lines = [
            f"epoch {found.epoch}, step {found.step}",
            f"global batch {found.batch}, lanes {found.lanes}, {_windows(found.windows)}",
            *(f"source {source.name}: {counted(source.rows, 'row')}" for source in found.sources),
            f"bad rows: {found.errors}",
        ]
        output.give({"state": saved}, "\n".join(lines))


def _windows(rows: Sequence[int]) -> str:
    windows = [counted(each, "row") for each in rows]
    return f"windows of {', '.join(windows)}" if windows else "no shuffle windows"


def load_state(file: Path) -> tuple[dict[str, Json], State]:
    """The state in a file, as it stands there and as it was read.

    Raises:
        PlanError: it cannot be read, or is no state.
    """
    try:
        saved = json.loads(file.read_text("utf-8"))
    except OSError as error:
        raise PlanError(
            f"the state {file} cannot be read: {error.strerror}.", hint="check the path"
        ) from error
    except ValueError as error:
        raise PlanError(
            f"the state {file} is no JSON: {error}.",
            hint="write it with json.dump(loader.state_dict(), file)",
        ) from error
    if not isinstance(saved, dict):
        raise PlanError(f"{file} holds no state.", hint="give the file of `run --state`")
    try:
        return saved, State.read(saved)
    except PlanError as error:
        error.message = f"{file}: {error.message}"
        raise


def save_state(saved: dict[str, Json], file: Path) -> None:
    """Write a state, whole or not at all.

    Raises:
        PlanError: the file cannot be written.
    """
    try:
        write_whole(file, json.dumps(saved))
    except OSError as error:
        raise PlanError(
            f"the state {file} cannot be written: {error.strerror}.", hint="check folder and rights"
        ) from error
