"""`dataflow demo`: the main job on an embedded data set."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dataflow.cli.reporting import AsJson, Debug, reporting
from dataflow.parts import load_part

__all__ = ["demo"]


def demo(
    folder: Annotated[
        Path | None, typer.Option("--folder", help="Where to put the data; a temporary folder by default.")
    ] = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Make data, train on two ranks, stop half-way, go on with three, and prove that no sample moved."""
    code = 0
    with reporting(as_json=as_json, debug=debug) as output:
        # Loaded when it is asked for: it imports torch.
        code = load_part("bench.demo").run_demo(folder, as_json)
        # It has printed its own.
        output.json = False
    raise typer.Exit(code)
