"""What a command prints: text or one JSON object on stdout, errors on stderr; and its exit code."""

from __future__ import annotations

import json
import sys
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Annotated, NoReturn

import typer

from connectors.contract import Json
from dataflow.cli.stopping import exit_code, signal_name, stop_behind
from dataflow.errors import DataflowError, MissingExtraError, PlanError

__all__ = ["EXIT_CODES", "Allow", "AsJson", "Debug", "Output", "print_usage_error", "reporting"]

EXIT_CODES = (
    "0 done; 1 data, store or function failed; 2 wrong usage, spec or pipeline; 3 an optional part is not "
    "installed; 130 stopped by Ctrl-C; 143 stopped by SIGTERM."
)

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else on stdout.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]
Allow = Annotated[
    list[str] | None,
    typer.Option(
        "--allow", metavar="MODULE",
        help="A module or package from which the spec may take functions; may be repeated. Modules in the "
        "current folder are found too.",
    ),
]  # fmt: skip


@dataclass
class Output:
    """Collects what the command found: `give` prints text at once, or keeps the data for the JSON object."""

    json: bool
    _data: dict[str, Json] | None = None

    def give(self, data: Mapping[str, Json], text: str) -> None:
        """The result: once, at the end of a command."""
        if self.json:
            self._data = dict(data)
        else:
            print(text)

    def say(self, text: str) -> None:
        """A remark beside the result, on stderr."""
        print(text, file=sys.stderr)

    def table(self, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
        """Rows as aligned text; on a terminal with the lines and colours of rich."""
        if sys.stdout.isatty() and not self.json:
            # Here, not at the top: only a terminal needs rich.
            from rich.console import Console
            from rich.table import Table
            from rich.text import Text

            drawn = Table(*columns, header_style="bold")
            for row in rows:
                drawn.add_row(*[Text(cell) for cell in row])
            console = Console()
            with console.capture() as captured:
                console.print(drawn)
            return captured.get().rstrip()
        whole = [list(columns), *rows]
        widths = [max(len(row[place]) for row in whole) for place in range(len(columns))]
        return "\n".join(
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
            for row in whole
        )

    def end(self, code: int, failed: Mapping[str, Json] | None = None) -> None:
        """Print the JSON object, if that was asked for."""
        if self.json:
            error = {} if failed is None else {"error": dict(failed)}
            print(json.dumps({"ok": code == 0, "exit_code": code, **(self._data or {}), **error}))


@contextmanager
def reporting(*, as_json: bool, debug: bool) -> Iterator[Output]:
    """Around the work of a command: errors become a message and an exit code."""
    output = Output(as_json)
    try:
        yield output
    except (typer.Exit, typer.Abort, BrokenPipeError):
        raise
    except (Exception, KeyboardInterrupt) as error:
        stop = stop_behind(error)
        if stop is not None:
            _stop(output, stop)
        if debug:
            traceback.print_exc()
        code = _exit_code(error)
        _say_error(output, error)
        output.end(code, _described(error))
        raise typer.Exit(code) from error
    else:
        output.end(0)


def print_usage_error(message: str) -> None:
    """The JSON object of a command line that is wrong before any command runs."""
    error: dict[str, Json] = {
        "type": "UsageError", "message": message, "hint": "--help says how it is used", "notes": [],
    }  # fmt: skip
    Output(json=True).end(2, error)


def _stop(output: Output, stop: KeyboardInterrupt) -> NoReturn:
    output.say(f"stopped by {signal_name(stop)}")
    output.end(exit_code(stop))
    raise typer.Exit(exit_code(stop)) from None


def _exit_code(error: BaseException) -> int:
    return 3 if isinstance(error, MissingExtraError) else 2 if isinstance(error, PlanError) else 1


def _say_error(output: Output, error: BaseException) -> None:
    if isinstance(error, DataflowError):
        output.say(f"error: {error}")
    else:
        output.say(
            f"error: {type(error).__name__}: {error}\n"
            "  hint: this should not happen; run it again with --debug and report what it shows"
        )
    for note in _notes(error):
        output.say(f"  note: {note}")


def _notes(error: BaseException) -> list[str]:
    """What was added to an error on its way, as the file and the row that it is about."""
    return list(getattr(error, "__notes__", ()))


def _described(error: BaseException) -> dict[str, Json]:
    if isinstance(error, DataflowError):
        told = {"message": error.message, "hint": error.hint}
    else:
        told = {"message": str(error), "hint": ""}
    return {"type": type(error).__name__, **told, "notes": [*_notes(error)]}
