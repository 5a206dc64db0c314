"""`dataflow bench`: list the cases, run them, show what came out."""

from __future__ import annotations

import json
import sys
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Column, Table

from bench.cases import case_names, find_case
from bench.judge import judge
from bench.machine import machine_record
from bench.report import as_json, lines_of_left_out, machine_line, table_rows
from bench.run import CaseFailed, Runs, run_case
from dataflow.errors import PlanError

__all__ = ["app", "list_cases", "run", "run_all"]

app = typer.Typer(
    name="bench",
    help="Measure Dataflow on this machine, beside plain readers and torch's DataLoader.",
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

_Quick = Annotated[bool, typer.Option("--quick", help="Small data: minutes for all cases, for a first look.")]
_AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
_Repeats = Annotated[
    int | None,
    typer.Option("--repeats", min=1, help="How often each side runs: 5 times by default, quick once."),
]
_Strict = Annotated[bool, typer.Option("--strict", help="Exit with 1 if a bar is missed.")]
_Names = Annotated[list[str] | None, typer.Argument(metavar="[CASE]...", help="Cases; all by default.")]


@app.callback(invoke_without_command=True)
def run_all(context: typer.Context) -> None:
    """Without a command, run all cases."""
    if context.invoked_subcommand is None:
        run()


@app.command("list")
def list_cases(as_json_: _AsJson = False) -> None:
    """Show the cases."""
    summaries = {name: find_case(name).summary for name in case_names()}
    if as_json_:
        print(json.dumps(summaries))
        return
    for name, summary in summaries.items():
        print(f"{name:<14}{summary}")


@app.command()
def run(
    cases: _Names = None, quick: _Quick = False, as_json_: _AsJson = False, repeats: _Repeats = None,
    strict: _Strict = False,
) -> None:  # fmt: skip
    """Run cases: every side in turn, each time in a fresh process; the median and the spread are shown."""
    try:
        chosen = [find_case(name) for name in cases or case_names()]
    except PlanError as error:
        print(f"error: {error}", file=sys.stderr)
        raise typer.Exit(2) from error
    machine = machine_record()
    repeats = repeats or (1 if quick else 5)
    done: list[Runs] = []
    failed = False
    for case in chosen:
        try:
            runs = run_case(case, repeats=repeats, quick=quick, say=_say)
        except CaseFailed as error:
            _say("")
            print(f"error: {error}", file=sys.stderr)
            failed = True
            continue
        _say("")
        done.append(runs)
        if not as_json_:
            _print_case(runs)
    if as_json_:
        print(json.dumps(as_json(done, machine, repeats=repeats, quick=quick)))
    else:
        print(machine_line(machine, repeats=repeats, quick=quick))
    missed = any(judged.met is False for runs in done for judged in judge(runs))
    if failed or (strict and missed):
        raise typer.Exit(1)


def _say(text: str) -> None:
    """What is going on, on one line of a terminal that the next text overwrites; nothing elsewhere."""
    if sys.stderr.isatty():
        sys.stderr.write(f"\r\x1b[K{text}")
        sys.stderr.flush()


def _print_case(runs: Runs) -> None:
    rows = table_rows(runs)
    print(f"{runs.case.name}: {runs.case.summary}")
    if sys.stdout.isatty():
        table = Table("", *(Column(name, justify="right") for name in ("median", "spread", "bar")), "")
        for what, median, extent, bar, met in rows:
            style = {"MISSED": "red", "met": "green"}.get(met)
            table.add_row(what, median, extent, bar, f"[{style}]{met}[/]" if style else met)
        Console().print(table)
    else:
        for what, median, extent, bar, met in rows:
            print(f"  {what:<46}{median:>18}  {extent:>22}  {bar:>8}  {met}".rstrip())
    for line in lines_of_left_out(runs):
        print(f"  {line}")
    if not sys.stdout.isatty():
        print()
