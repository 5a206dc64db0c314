"""The `dataflow` command: one file for each word of it.

app.py       the words, and `main`
reporting.py what a command prints: text or one JSON object, errors, exit codes
stopping.py  what Ctrl-C and SIGTERM do
values.py    rows as text and as JSON
open.py      the spec that a command was given
run.py explain.py index.py inspect.py state.py demo.py bench.py
"""

from __future__ import annotations

from dataflow.cli.app import app, main

__all__ = ["app", "main"]
