"""Checks on what the arguments of steps are given, which is whatever a user writes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeGuard

from dataflow.errors import PlanError

__all__ = ["check_flags", "check_mapping", "check_text", "is_whole"]


def is_whole(value: object) -> TypeGuard[int]:
    """Whether a value is a whole number; True and False are none."""
    return isinstance(value, int) and not isinstance(value, bool)


def check_flags(what: str, **flags: object) -> None:
    """Each is True or False.

    Raises:
        PlanError: one is not; a text as "no" would count as true.
    """
    for name, value in flags.items():
        if not isinstance(value, bool):
            raise PlanError(
                f"{what}({name}={value!r}) is neither true nor false.",
                hint=f"use {name}=True, or leave it out",
            )


def check_text(what: str, value: object, *, hint: str) -> None:
    """`value` is a text, or None where it was not given.

    Raises:
        PlanError: it is something else.
    """
    if value is not None and not isinstance(value, str):
        raise PlanError(f"{what}: {value!r} is no text.", hint=hint)


def check_mapping(what: str, value: object, *, hint: str) -> None:
    """`value` has values by name.

    Raises:
        PlanError: it has not.
    """
    if not isinstance(value, Mapping):
        raise PlanError(f"{what}: {value!r} has no values by name.", hint=hint)
