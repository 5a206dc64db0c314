"""Opening the spec that a command was given."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from dataflow.spec import Spec, open_spec

__all__ = ["SpecFile", "open_from_here"]

SpecFile = Annotated[str, typer.Argument(metavar="SPEC", help="A YAML or JSON file.")]


def open_from_here(spec: str, allow: Sequence[str] | None) -> Spec:
    """The spec; modules that it may take functions from are also found in the current folder.

    Raises:
        DataflowError: as `open_spec`.
    """
    here = str(Path.cwd())
    # A console script, unlike `python -m`, does not look there. Last, so that nothing there hides a library.
    if allow and here not in sys.path:
        sys.path.append(here)
    return open_spec(spec, tuple(allow or ()))
