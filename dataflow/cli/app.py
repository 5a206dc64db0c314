"""The words of the command line, and `main`."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Annotated, Any, Final

import typer
from typer.core import TyperGroup

from dataflow import __version__
from dataflow.cli.bench import bench
from dataflow.cli.demo import demo
from dataflow.cli.explain import explain
from dataflow.cli.index import index
from dataflow.cli.inspect import inspect
from dataflow.cli.reporting import EXIT_CODES, print_usage_error
from dataflow.cli.run import run
from dataflow.cli.state import state
from dataflow.cli.stopping import exit_code, stop_behind

__all__ = ["app", "main"]

_GIVEN: Final = "dataflow.given"  # in the context of a command line: its words


class _Commands(TyperGroup):
    """The words; of one that is used wrongly with `--json` the error is printed as of one that fails."""

    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> Any:
        with _reported(args):
            context: Any = super().make_context(info_name, args, parent, **extra)
        context.meta[_GIVEN] = tuple(args)
        return context

    def invoke(self, ctx: Any) -> Any:
        with _reported(ctx.meta[_GIVEN]):
            return super().invoke(ctx)


@contextmanager
def _reported(given: Sequence[str]) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        # The class of errors of usage has no public name in typer; no other has this method.
        if "--json" in given and hasattr(error, "format_message"):
            print_usage_error(error.format_message())
        raise


app = typer.Typer(
    cls=_Commands, name="dataflow", no_args_is_help=True, add_completion=False, rich_markup_mode=None,
    pretty_exceptions_enable=False, context_settings={"help_option_names": ["-h", "--help"]},
)  # fmt: skip


def _show_version(wanted: bool) -> None:
    if wanted:
        print(f"dataflow-engine {__version__}")
        raise typer.Exit


@app.callback(epilog=f"Exit codes: {EXIT_CODES}")
def _dataflow(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version and exit."),
    ] = False,
) -> None:
    """Stream training data in exact order: run, explain, index and inspect."""


app.command()(run)
app.command()(explain)
app.command()(index)
app.command()(inspect)
app.add_typer(state, name="state")
app.command()(demo)
app.command(
    add_help_option=False, context_settings={"allow_extra_args": True, "ignore_unknown_options": True}
)(bench)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    try:
        app(args=None if arguments is None else list(arguments), prog_name="dataflow")
        sys.stdout.flush()
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except (KeyboardInterrupt, ImportError) as error:
        # ImportError: of a word that loads the rest of itself before it reports, as `bench`.
        stop = stop_behind(error)
        if stop is None:
            raise
        return exit_code(stop)
    except BrokenPipeError:
        # The reader, as `head`, had enough; the interpreter must not flush into the closed pipe at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    return 0
