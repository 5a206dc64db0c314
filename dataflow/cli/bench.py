"""`dataflow bench`: measure this machine; its own words are in bench/cli.py."""

from __future__ import annotations

import typer

from dataflow.parts import load_part

__all__ = ["bench"]


def bench(context: typer.Context) -> None:
    """Measure Dataflow on this machine; `dataflow bench --help` has its own options."""
    # Loaded when it is asked for: the cases import much that no other command needs.
    load_part("bench.cli").app(args=context.args, prog_name="dataflow bench")
