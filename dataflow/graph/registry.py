"""Operators by their registered names: what a spec can name."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from dataflow.errors import InternalError, PlanError, near
from dataflow.graph.node import Node

__all__ = ["node_kinds", "node_named", "register"]

N = TypeVar("N", bound=Node)
_KINDS: dict[str, type[Node]] = {}


def register(name: str) -> Callable[[type[N]], type[N]]:
    """Class decorator: give a node its name in specs, in `explain()` and in the keys of its draws."""

    def add(kind: type[N]) -> type[N]:
        if name in _KINDS and _KINDS[name] is not kind:
            raise InternalError(f"two operators are called {name!r}.")
        kind.kind = name
        _KINDS[name] = kind
        return kind

    return add


def node_named(name: str) -> type[Node]:
    """The node class of a registered name.

    Raises:
        PlanError: no operator has that name; near matches are named.
    """
    if name not in _KINDS:
        raise PlanError(f"there is no operator {name!r}.", hint=near(name, _KINDS, what="operator"))
    return _KINDS[name]


def node_kinds() -> dict[str, type[Node]]:
    """All registered operators."""
    return dict(_KINDS)
