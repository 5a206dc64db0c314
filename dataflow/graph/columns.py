"""Checks on column names, with near matches."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import pyarrow as pa

from dataflow.errors import PlanError, near

__all__ = ["RESERVED", "check_columns", "check_named", "check_new_names"]

# The columns that loaders add to batches.
RESERVED: Final = frozenset({"__id__", "__valid__", "__replaced_by__"})


def check_columns(operator: str, names: Iterable[str], schema: pa.Schema | None) -> None:
    """Every name is a column of `schema` (an unknown schema passes).

    Raises:
        PlanError: a name is not a string, stands twice, or is no column; near matches are named.
    """
    seen: set[str] = set()
    for name in names:
        if not isinstance(name, str):
            raise PlanError(f"{operator}: {name!r} is not a column name.", hint="give names as strings")
        if name in seen:
            raise PlanError(f"{operator}: column {name!r} is named twice.", hint="name it once")
        seen.add(name)
        if schema is not None and name not in schema.names:
            raise PlanError(
                f"{operator}: there is no column {name!r}.", hint=near(name, schema.names, what="column")
            )


def check_named(verb: str, names: Sequence[object]) -> None:
    """A verb that takes `*columns` is given at least one, and each by itself.

    Raises:
        PlanError: there is none, or one is a list of names or the like.
    """
    if not names:
        raise PlanError(f"{verb}() names no column.", hint=f"name one or more, as {verb}('label', 'text')")
    for name in names:
        if not isinstance(name, str) and isinstance(name, Iterable):
            each = ", ".join(map(repr, name)) if isinstance(name, list | tuple | dict | set) else "*names"
            raise PlanError(
                f"{verb}: {name!r} is not a column name.",
                hint=f"give the names one by one, as {verb}({each or '*names'})",
            )


def check_new_names(operator: str, names: Iterable[str]) -> None:
    """The names that an operator gives are distinct and not reserved.

    Raises:
        PlanError: two are equal, or one is kept for batches, as ``__id__``.
    """
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise PlanError(
                f"{operator}: two columns would be called {name!r}.", hint="rename or drop one first"
            )
        if name in RESERVED:
            raise PlanError(f"{operator}: the name {name!r} is kept for batches.", hint="choose another name")
        seen.add(name)
