"""Checks on what arguments are given, which is whatever a user writes."""

from __future__ import annotations

import operator
from collections.abc import Collection, Iterable, Mapping, Sequence
from os import PathLike, fspath
from pathlib import Path
from typing import Any, SupportsIndex, TypeGuard

from dataflow.errors import PlanError

__all__ = [
    "MOST_ROWS",
    "as_block_rows",
    "as_dict",
    "as_names",
    "as_path",
    "as_tuple",
    "as_whole",
    "check_choice",
    "check_flags",
    "check_text",
    "is_number",
    "is_pair",
]

# What is worked on at once, a batch or a block, has no more rows: Arrow counts its lists and texts in 32 bits.
MOST_ROWS = 1 << 31


def is_number(value: object) -> TypeGuard[int | float]:
    """Whether a value is a number; True and False are none."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def is_pair(value: object) -> TypeGuard[Sequence[float]]:
    """Whether a value is a tuple or list of two numbers."""
    return isinstance(value, tuple | list) and len(value) == 2 and all(map(is_number, value))


def as_whole(
    value: object, said: str, *, hint: str, least: int | None = None, below: int | None = None
) -> int:
    """A whole number of any kind (of Python, NumPy or torch) as one of Python, which JSON has a form for.

    Raises:
        PlanError: `said`, where it is none, or not from `least` up and below `below`. True, which Python takes for 1,
            is none.
    """
    number = None if _is_truth(value) else _index(value)
    if number is None or (least is not None and number < least) or (below is not None and number >= below):
        raise PlanError(said, hint=hint)
    return number


def as_block_rows(verb: str, value: object) -> int:
    """The `batch_size` of a function of blocks of rows.

    Raises:
        PlanError: it is no whole number from 1 to 2**31.
    """
    said = f"{verb}(batch_size={value!r}) is no number of rows."
    return as_whole(
        value, said, hint=f"give a whole number from 1 to {MOST_ROWS:,}", least=1, below=MOST_ROWS + 1
    )


def _is_truth(value: object) -> bool:
    """Whether it is true or false, or an array or tensor of such."""
    return isinstance(value, bool) or str(getattr(value, "dtype", "")).endswith("bool")


def _index(value: object) -> int | None:
    if not isinstance(value, SupportsIndex):
        return None
    try:
        return int(operator.index(value))
    except TypeError:  # of an array, which has the method and is no number
        return None


def check_flags(verb: str, **flags: object) -> None:
    """Each is True or False.

    Raises:
        PlanError: one is not; a text as "no" would count as true.
    """
    for name, value in flags.items():
        if not isinstance(value, bool):
            raise PlanError(
                f"{_call(verb, name, value)} is neither true nor false.",
                hint=f"give {name}=True, or leave it out",
            )


def check_text(verb: str, name: str, value: object) -> None:
    """The value of argument `name` of `verb`, which may be empty, is a text, or None where it was not given.

    Raises:
        PlanError: it is something else.
    """
    if value is not None and not isinstance(value, str):
        raise PlanError(
            f"{_call(verb, name, value)} is no text.", hint="give a name in quotes, or leave it out"
        )


def check_choice(verb: str, name: str, value: object, choices: Collection[str]) -> None:
    """The value of an argument is one of these texts.

    Raises:
        PlanError: it is not.
    """
    # Arrays answer == with an array: only a text is compared.
    if not isinstance(value, str) or value not in choices:
        *most, last = [repr(choice) for choice in choices]
        listed = f"{', '.join(most)} or {last}" if most else last
        raise PlanError(f"{_call(verb, name, value)} is unknown.", hint=f"use {listed}")


def as_dict(what: str, value: object, *, hint: str) -> dict[str, Any]:
    """A copy of what has values by name.

    Raises:
        PlanError: it has not, or a name is no text.
    """
    # Data frames are like that, and are no Mapping.
    named = hasattr(value, "keys") and hasattr(value, "__getitem__") and not isinstance(value, type)
    if not isinstance(value, Mapping) and not named:
        raise PlanError(f"{what}: {value!r} has no values by name.", hint=hint)
    made: dict[Any, Any] = dict(value)  # type: ignore[call-overload]
    for name in made:
        if not isinstance(name, str):
            raise PlanError(f"{what}: {name!r} is no name.", hint=hint)
    return made


def as_tuple(verb: str, name: str, value: object) -> tuple[Any, ...]:
    """The items of an argument that is a list or the like.

    Raises:
        PlanError: it is a single value; a text is one, and not the list of its letters.
    """
    said = f"{_call(verb, name, value)} is no list."
    if isinstance(value, str):
        raise PlanError(said, hint=f"use {name}=[{value!r}]")
    if not isinstance(value, Iterable) or isinstance(value, Mapping | bytes):
        raise PlanError(said, hint=f"give a list, as {name}=[...]")
    try:
        return tuple(value)
    except TypeError as error:
        raise PlanError(said, hint=f"give a list, as {name}=[...]") from error


def as_names(verb: str, name: str, value: object) -> tuple[str, ...]:
    """The texts of an argument that is a list of such.

    Raises:
        PlanError: it is no list, or has something else.
    """
    names = as_tuple(verb, name, value)
    for each in names:
        if not isinstance(each, str):
            raise PlanError(f"{_call(verb, name, value)}: {each!r} is no name.", hint="give names as texts")
    return names


def as_path(what: str, value: object) -> str | Path:
    """A path or URL as it is, and anything else that stands for a path as one.

    Raises:
        PlanError: it is neither.
    """
    if isinstance(value, str | Path):
        return value
    if isinstance(value, PathLike):
        path = fspath(value)
        if isinstance(path, str):
            return Path(path)
    raise PlanError(f"{what}: {value!r} is no path or URL.", hint="give a text or a pathlib.Path")


def _call(verb: str, name: str, value: object) -> str:
    return f"{verb}({name}={value!r})" if verb else f"{name}={value!r}"
