"""`dataflow inspect`: what is in these files."""

from __future__ import annotations

from typing import Annotated

import typer

from connectors.contract import Json
from dataflow.beginnings import read
from dataflow.cli.index import Format, StorageOptions, Urls, describe_text, storage_options
from dataflow.cli.reporting import AsJson, Debug, reporting
from dataflow.cli.values import as_json_value, as_short_text
from dataflow.errors import DataError, StageError
from dataflow.fluent import Pipeline
from dataflow.index.describe import describe

__all__ = ["inspect"]


def inspect(
    url: Urls,
    rows: Annotated[int, typer.Option("--rows", min=0, help="How many of the first rows to show.")] = 5,
    index: Annotated[
        str | None,
        typer.Option("--index", help="Where the index of the files is kept, as `dataflow index --out` says."),
    ] = None,
    format: Format = None,
    options: StorageOptions = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Show the columns, rows, fragments, first rows and problems of the files at URL."""
    with reporting(as_json=as_json, debug=debug) as output:
        pipe = read(url, format=format, index=index, storage_options=storage_options(options))
        source = pipe.node.source
        assert source is not None
        facts = describe(source.index)
        schema, sizes = facts["schema"], facts["row_bytes"]
        assert isinstance(schema, dict)
        assert isinstance(sizes, dict)
        shown, bad = _first_rows(pipe, min(rows, source.index.rows))
        problems = facts["problems"]
        assert isinstance(problems, list)
        problems += bad
        columns = output.table(
            ["column", "type", "bytes a row"],
            [[name, str(kind), f"{sizes.get(name, 0):.1f}"] for name, kind in schema.items()],
        )
        lines = [f"row {number}: " + _row_text(row) for number, row in shown.items()]
        text = "\n".join([describe_text(facts), columns, *lines])
        facts["first_rows"] = [
            {name: as_json_value(value) for name, value in row.items()} for row in shown.values()
        ]
        output.give(facts, text)


def _row_text(row: dict[str, object]) -> str:
    return ", ".join(f"{name}={as_short_text(value)}" for name, value in row.items())


def _first_rows(pipe: Pipeline, count: int) -> tuple[dict[int, dict[str, object]], list[Json]]:
    """The first rows by number; and for those that cannot be read, why."""
    found: dict[int, dict[str, object]] = {}
    bad: list[Json] = []
    for number in range(count):
        try:
            found[number] = pipe[number]
        except (DataError, StageError) as error:
            bad.append(f"Row {number} cannot be read: {error.message}")
    return found, bad
