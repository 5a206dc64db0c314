"""`dataflow index`: scan files beforehand, so that no training has to wait for it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Annotated

import typer

from connectors.contract import Json
from dataflow.cli.reporting import AsJson, Debug, reporting
from dataflow.errors import PlanError
from dataflow.index.describe import describe
from dataflow.index.open import open_index
from dataflow.wording import counted

__all__ = ["Format", "StorageOptions", "Urls", "describe_text", "index", "storage_options"]

Urls = Annotated[
    list[str], typer.Argument(metavar="URL...", help="Files, folders, patterns; any fsspec URL.")
]
Format = Annotated[str | None, typer.Option("--format", help="The format, where the file names do not tell.")]
StorageOptions = Annotated[
    str | None,
    typer.Option("--storage-options", metavar="JSON", help="Options for fsspec, as a JSON object."),
]


# Of more classes the first are shown; with --json all.
_MOST_CLASSES = 20


def storage_options(text: str | None) -> dict[str, Json] | None:
    """The options of `--storage-options`.

    Raises:
        PlanError: they are no JSON object.
    """
    if text is None:
        return None
    try:
        options = json.loads(text)
    except ValueError:
        options = None
    if not isinstance(options, dict):
        raise PlanError(
            f"--storage-options {text!r} is no JSON object.", hint="""as --storage-options '{"anon": true}'"""
        )
    return options


def describe_text(facts: dict[str, Json]) -> str:
    """What `describe` found as lines of text."""
    rows, sizes = facts["fragment_rows"], facts["row_bytes"]
    assert isinstance(rows, dict)
    assert isinstance(sizes, dict)
    lines = [
        f"{facts['name']}: {facts['format']}, {_counted(facts['files'], 'file')}, {_size(facts['file_bytes'])}",
        f"{_counted(facts['rows'], 'row')}, {_size(facts['bytes'])} when decoded (estimated)",
        f"{_counted(facts['fragments'], 'fragment')} of {_spread(rows)}",
    ]
    classes, problems = facts["classes"], facts["problems"]
    assert isinstance(classes, list)
    assert isinstance(problems, list)
    if classes:
        lines.append(f"{counted(len(classes), 'class', 'classes')} by label: {_numbered(classes)}")
    return "\n".join([*lines, *(f"problem: {problem}" for problem in problems)])


def _spread(rows: Mapping[str, Json]) -> str:
    """How many rows fragments have."""
    smallest, largest, median = rows["smallest"], rows["largest"], rows["median"]
    if smallest == largest:
        return _counted(largest, "row")
    return f"{smallest:,} to {_counted(largest, 'row')}, median {median:,.0f}"


def _numbered(classes: Sequence[Json]) -> str:
    shown = ", ".join(f"{label} {name}" for label, name in enumerate(classes[:_MOST_CLASSES]))
    return shown + (", ..." if len(classes) > _MOST_CLASSES else "")


def _counted(count: Json, what: str) -> str:
    assert isinstance(count, int)
    return counted(count, what)


def _size(count: Json) -> str:
    assert isinstance(count, int)
    if count < 1000:
        return counted(count, "byte")
    size = float(count)
    for unit in ("kB", "MB", "GB"):
        size /= 1000
        if size < 1000:
            return f"{size:.1f} {unit}"
    return f"{size / 1000:.1f} TB"


def index(
    url: Urls,
    out: Annotated[
        str | None,
        typer.Option("--out", help="A folder or .arrow file for it, for read(..., index=); any fsspec URL."),
    ] = None,
    format: Format = None,
    options: StorageOptions = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Build the index of the files at URL, or bring it up to date, and say what is in it.

    Without --out it is kept in the user's cache folder only.
    """
    with reporting(as_json=as_json, debug=debug) as output:
        found = open_index(
            url, format=format, storage_options=storage_options(options), index=out, progress=not as_json,
            must_keep=out is not None,
        )  # fmt: skip
        facts = describe(found)
        if out is not None:
            facts["out"] = out
        where = "" if out is None else f"\nindex at {out}"
        output.give(facts, describe_text(facts) + where)
