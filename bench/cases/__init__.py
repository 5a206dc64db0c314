"""One benchmark case per file, each with a `CASE`; a file that is put here is found without being named."""

from __future__ import annotations

import pkgutil
from importlib import import_module

from bench.case import Case
from dataflow.errors import InternalError, PlanError, near

__all__ = ["case_names", "find_case"]


def case_names() -> list[str]:
    """The names of all cases, in alphabetical order."""
    return sorted(module.name for module in pkgutil.iter_modules(__path__))


def find_case(name: str) -> Case:
    """The case of that name.

    Raises:
        PlanError: there is none; names near matches.
    """
    names = case_names()
    if name not in names:
        raise PlanError(f"there is no benchmark case {name!r}.", hint=near(name, names, what="case"))
    case: object = import_module(f"{__name__}.{name}").CASE
    if not isinstance(case, Case) or case.name != name:
        raise InternalError(f"bench/cases/{name}.py has no CASE of that name")
    return case
