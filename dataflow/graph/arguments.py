"""What a spec says of a step: its arguments, how each is written down, and how it is read back."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, dataclass, field, fields
from functools import cache
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any, TypeAlias, get_args, get_type_hints

import numpy as np

from connectors.contract import Json
from dataflow.errors import PlanError, near

if TYPE_CHECKING:
    from pydantic import BaseModel, ValidationError

__all__ = ["PLAIN", "Argument", "FindFunction", "Form", "Misfit", "arguments_of", "check", "plain", "written"]

# From "module:function" to the function; raises PlanError where it may not be imported.
FindFunction = Callable[[str], Callable[..., object]]
# A value of an operator's field, whatever the operator takes.
Value: TypeAlias = Any


class Misfit(PlanError):
    """An argument of a spec that does not fit; `path` leads to it from the step's arguments."""

    def __init__(self, message: str, *, path: tuple[str | int, ...], hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.path = path


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """How a value that is no plain data stands in a spec.

    Fields:
        type: what stands there, as an annotation that pydantic checks.
        write: from the value to plain data; raises PlanError where it has no such form.
        read: from plain data of that type to the value.
    """

    type: object
    write: Callable[[Value], Json]
    read: Callable[[Value, FindFunction], object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Argument:
    """One key of a step in a spec; `name` is the keyword that gets its value, `type` its annotation."""

    key: str
    name: str
    type: object
    form: Form
    required: bool = False
    default: object = field(default=None, compare=False)


def plain(value: Value) -> Json:
    """A value as plain data: numbers, texts, lists and dicts of them; NumPy scalars and paths as such.

    Raises:
        PlanError: it is something else.
    """
    if isinstance(value, np.generic) and value.dtype.kind in "biufU":
        value = value.item()
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, PathLike):
        return str(fspath(value))
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(item) for item in value]
    raise PlanError(
        f"a spec cannot hold {value!r}, a {type(value).__name__}.",
        hint="use numbers, texts, lists or dicts, or make the pipeline in Python",
    )


PLAIN = Form(type=object, write=plain, read=lambda value, _: value)


def arguments_of(kind: type, forms: tuple[tuple[type, Form], ...] = ()) -> tuple[Argument, ...]:
    """The fields of a dataclass as arguments; those that its repr leaves out are no arguments.

    The metadata of a field may have another `key`, and its `form`; `forms` has those of whole types.
    """
    return _arguments_of(kind, forms)


@cache
def _arguments_of(kind: Value, forms: tuple[tuple[type, Form], ...]) -> tuple[Argument, ...]:
    hints = get_type_hints(kind)
    return tuple(
        _argument(f, hints[f.name], forms)
        for f in fields(kind)
        if f.init and f.repr and not f.name.startswith("_")
    )


def _argument(f: Field[Value], hint: object, forms: tuple[tuple[type, Form], ...]) -> Argument:
    form = f.metadata.get("form") or next((form for kind, form in forms if kind in _leaves(hint)), PLAIN)
    required = f.default is MISSING and f.default_factory is MISSING
    kind: Value = hint if form is PLAIN else form.type
    default = f.default_factory() if f.default_factory is not MISSING else f.default
    return Argument(
        key=f.metadata.get("key", f.name),
        name=f.name,
        type=kind if required or default is not None else kind | None,
        form=form,
        required=required,
        default=None if required else default,
    )


def _leaves(hint: object) -> list[object]:
    parts = [hint]
    for part in get_args(hint):
        parts += _leaves(part)
    return parts


def written(holder: object, arguments: tuple[Argument, ...]) -> dict[str, Json]:
    """The arguments of a dataclass instance as plain data; those at their defaults are left out.

    Raises:
        PlanError: a value has no form in a spec.
    """
    made: dict[str, Json] = {}
    for argument in arguments:
        value = getattr(holder, argument.name)
        # Arrow expressions and schemas answer == with something that is no bool.
        same = value is argument.default or (
            type(value) is type(argument.default) and argument.form is PLAIN and value == argument.default
        )
        if argument.required or not same:
            made[argument.key] = argument.form.write(value)
    return made


def check(
    arguments: tuple[Argument, ...], given: Mapping[str, Json], what: str, find: FindFunction
) -> dict[str, object]:
    """The values of the keys that are given, by the name of their argument.

    Raises:
        Misfit: a key is unknown (near matches are named) or missing, or a value is of another type.
    """
    from pydantic import ValidationError

    try:
        model = _model(arguments).model_validate_json(json.dumps(given))
    except ValidationError as error:
        raise _misfit(error, arguments, what) from None
    made: dict[str, object] = {}
    for place, argument in enumerate(arguments):
        if f"a{place}" not in model.model_fields_set:
            continue
        value = getattr(model, f"a{place}")
        try:
            made[argument.name] = value if value is None else argument.form.read(value, find)
        except Misfit as error:
            raise Misfit(error.message, path=(argument.key, *error.path), hint=error.hint) from error
        except PlanError as error:
            raise Misfit(error.message, path=(argument.key,), hint=error.hint) from error
    return made


@cache
def _model(arguments: tuple[Argument, ...]) -> type[BaseModel]:
    # Here, not at the top: pydantic takes as long to import as half of the package.
    from pydantic import ConfigDict, Field, create_model

    # Numbered names: a key as `schema` or `copy` would hide an attribute of the model.
    named: dict[str, Value] = {
        f"a{place}": (a.type, Field(... if a.required else a.default, alias=a.key))
        for place, a in enumerate(arguments)
    }
    config = ConfigDict(extra="forbid", strict=True, arbitrary_types_allowed=True)
    model: type[BaseModel] = create_model("Arguments", __config__=config, **named)
    return model


def _misfit(error: ValidationError, arguments: tuple[Argument, ...], what: str) -> Misfit:
    # An unknown key first: it is mostly the one that is then missing, misspelt.
    faults = sorted(error.errors(include_url=False), key=lambda fault: fault["type"] != "extra_forbidden")
    first = faults[0]
    path: tuple[str | int, ...] = first["loc"]
    if not path:
        return Misfit(f"{what}: {first['msg']}", path=(), hint="write plain text and numbers")
    key = str(path[0])
    if first["type"] == "extra_forbidden" and len(path) == 1:
        known = [a.key for a in arguments]
        hint = near(key, known, what="key") if known else f"{what} takes no arguments: write {{}}"
        return Misfit(f"{what} has no key {key!r}.", path=path, hint=hint)
    if first["type"] == "missing" and len(path) == 1:
        return Misfit(f"{what} lacks the key {key!r}.", path=(), hint=f"add {key}: ...")
    # The branches of a union each give a fault; together they say what may stand there.
    same = [fault for fault in faults if fault["loc"][0] == path[0]]
    wanted = " or ".join(dict.fromkeys(fault["msg"].removeprefix("Input should be ") for fault in same))
    return Misfit(
        f"{what}.{key} should be {wanted}, not {first['input']!r}.",
        path=path,
        hint=_hint(key, first["input"], {fault["type"] for fault in same}),
    )


def _hint(key: str, value: Json, wanted: set[str]) -> str:
    """What to write for a value that is none of the types `wanted`, as pydantic calls their faults."""
    if wanted <= {"list_type", "tuple_type"}:
        if isinstance(value, dict):
            return f"write a list, each part of {key} behind a dash of its own"
        return f"write a list: {key}: [{value if isinstance(value, str) else json.dumps(value)}]"
    if wanted == {"dict_type"}:
        return f"write keys with values: {key}: {{name: value}}"
    return "see docs/spec.md; a text that looks like a number or true needs quotes, and a number none"
