"""Python functions in specs: `module:qualified.name`, imported only from modules that the caller allows."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from types import ModuleType

from dataflow.errors import PlanError
from dataflow.graph.calls import function_name
from dataflow.wording import text_of

__all__ = ["find_function", "function_reference"]

_NAME = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")


def function_reference(function: Callable[..., object]) -> str:
    """`module:qualified.name` of a function that can be imported by that name.

    Raises:
        PlanError: it cannot: a lambda, a function inside a function, a bound method, one of `__main__`.
    """
    name = function_name(function)
    module, _, path = name.partition(":")
    if module == "__main__":
        raise PlanError(
            f"the function {name} is of the program that runs, which nobody can import.",
            hint="move it into a module of its own, and import it from there",
        )
    if not _NAME.fullmatch(name) or _reached(sys.modules.get(module), path) is not function:
        raise PlanError(
            f"the function {name} cannot be found again by its name.",
            hint="use a function that `def` makes at the top of a module: no lambda, closure or bound method",
        )
    return name


def find_function(name: str, allow_modules: Sequence[str]) -> Callable[..., object]:
    """The function of that name; `allow_modules` has modules and packages, each for all that is below it.

    Both the module that is imported and the one that defines what is found must be allowed, so that a module
    gives away nothing of what it has imported itself.

    Raises:
        PlanError: the name is no name, its module is not allowed, or there is no such function.
    """
    if not _NAME.fullmatch(name):
        raise PlanError(f"{name!r} names no function.", hint="write it as 'package.module:function'")
    module, _, path = name.partition(":")
    _check_allowed(name, module, allow_modules)
    if any(part.startswith("__") for part in path.split(".")):
        raise PlanError(f"{name!r} names an inner part of Python.", hint="name a function of your own")
    try:
        found = _reached(import_module(module), path)
    except Exception as error:
        # Whatever a module does at import, the user needs to hear which one it was.
        raise PlanError(
            f"the module {module!r} cannot be imported: {type(error).__name__}: {text_of(error)}",
            hint="is it installed, or its folder on PYTHONPATH?",
        ) from error
    if not callable(found):
        raise PlanError(
            f"{module!r} has no function {path!r}.", hint="check the spelling: it is module:function"
        )
    _check_allowed(name, function_name(found).partition(":")[0], allow_modules)
    return found


def _check_allowed(name: str, module: str, allow_modules: Sequence[str]) -> None:
    if any(module == allowed or module.startswith(f"{allowed}.") for allowed in allow_modules):
        return
    raise PlanError(
        f"the function {name!r} is of the module {module!r}, which is not allowed.",
        hint=f"if you trust it: load_spec(..., allow_modules=[{module!r}]), or --allow {module}",
    )


def _reached(start: object, path: str) -> object:
    found = start
    for part in path.split("."):
        found = getattr(found, part, None)
        if isinstance(found, ModuleType):
            return None
    return found
