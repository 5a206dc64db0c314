"""`dataflow state`: what a saved state says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, cast

import typer

from connectors.contract import Json
from dataflow.cli.reporting import AsJson, Debug, reporting
from dataflow.errors import PlanError
from dataflow.execute.state import check_state
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
        saved = load_state(file)
        sources = saved["sources"]
        assert isinstance(sources, list)
        lines = [
            f"epoch {saved['epoch']}, step {saved['step']}",
            f"global batch {saved['batch']}, lanes {saved['lanes']}, {_windows(saved['windows'])}",
            *(
                f"source {source['name']}: {counted(cast(int, source['rows']), 'row')}"
                for source in sources
                if isinstance(source, dict)
            ),
            f"bad rows: {saved.get('errors', 0)}",
        ]  # fmt: skip
        output.give({"state": saved}, "\n".join(lines))


def _windows(rows: Json) -> str:
    windows = [counted(each, "row") for each in cast("list[int]", rows)]
    return f"windows of {', '.join(windows)}" if windows else "no shuffle windows"


def load_state(file: Path) -> dict[str, Json]:
    """The state in a file.

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
        check_state(saved)
    except PlanError as error:
        error.message = f"{file}: {error.message}"
        raise
    return saved


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
