"""`dataflow explain`: a spec as the steps that were written and the steps that run, and how it will be read."""

from __future__ import annotations

from inspect import signature
from typing import Annotated

import typer

from connectors.contract import Json
from dataflow.cli.open import SpecFile, open_from_here
from dataflow.cli.reporting import Allow, AsJson, Debug, reporting

__all__ = ["explain"]


def explain(
    spec: SpecFile,
    world: Annotated[
        int | None, typer.Option("--world", min=1, help="On so many ranks; else as the environment says.")
    ] = None,
    allow: Allow = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Show the steps of a SPEC as written and as they run, and its lane reads, windows and memory."""
    with reporting(as_json=as_json, debug=debug) as output:
        opened = open_from_here(spec, allow)
        pipe = opened.pipeline
        asked = signature(pipe.outline).parameters.keys() & opened.loader.keys()
        outline = pipe.outline(world_size=world, **{name: opened.loader[name] for name in asked})
        text = outline.explained()
        schema = pipe.schema
        columns: Json = None if schema is None else {field.name: str(field.type) for field in schema}
        loader: dict[str, Json] = dict(opened.loader)
        if loader:
            text += "\nloader: " + ", ".join(f"{name}={value!r}" for name, value in loader.items())
        facts: dict[str, Json] = {
            "explain": text, "columns": columns, "seed": pipe.seed_value, "loader": loader, **outline.fields(),
        }  # fmt: skip
        output.give(facts, text)
