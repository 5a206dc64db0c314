"""How the arguments of operators that are no plain data stand in specs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import is_dataclass
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from connectors.contract import Connector, Json
from connectors.credentials import credentials
from connectors.registry import choose
from dataflow.errors import PlanError
from dataflow.graph.arguments import FindFunction, Form, Misfit, arguments_of, check, plain, written
from dataflow.graph.calls import function_name
from dataflow.graph.expression import read_expression, written_expression
from dataflow.graph.functions import function_reference
from dataflow.ops.cast import data_type, type_name

__all__ = ["CONDITION", "FORMAT", "FUNCTION", "SCHEMA", "STORAGE_OPTIONS", "URLS", "settled_terms"]

Value: TypeAlias = Any


def _write_schema(schema: pa.Schema) -> Json:
    types = {field.name: type_name(field.type) for field in schema}
    if _read_schema(types) != schema:
        raise PlanError(
            f"the schema {{{', '.join(f'{f.name}: {f.type}' for f in schema)}}} has a type or a not-null mark "
            "that no type name says.",
            hint="use types as 'int64', 'list<int32>', 'int32[512]' or 'uint8[32,32,3]' that may be null",
        )
    return plain(types)


def _read_schema(types: Mapping[str, str]) -> pa.Schema:
    fields: list[tuple[str, pa.DataType]] = []
    for name, kind in types.items():
        try:
            fields.append((name, data_type(kind)))
        except PlanError as error:
            raise Misfit(error.message, path=(name,), hint=error.hint) from error
    return pa.schema(fields)


def settled_terms(terms: Value) -> Value:
    """Terms as tuples in lists, whatever containers they came in; NumPy's numbers as Python's.

    What a spec gives back is then the same.
    """
    if isinstance(terms[0], str):
        return (terms[0], terms[1], _settled_value(terms[2]))
    return [settled_terms(term) for term in terms]


def _settled_value(value: Value) -> Value:
    if isinstance(value, list | tuple | set | frozenset | np.ndarray):
        return [_settled_value(item) for item in value]
    # Not times: of nanoseconds, `item` makes a number.
    return value.item() if isinstance(value, np.generic) and value.dtype.kind in "biufU" else value


def _write_condition(condition: Value) -> Json:
    if isinstance(condition, pc.Expression):
        return {"arrow": written_expression(condition)}
    if callable(condition):
        return function_reference(condition)
    return _write_terms(condition)


def _write_terms(terms: Sequence[Value]) -> Json:
    if isinstance(terms[0], str):
        column, operator, value = terms
        return [column, operator, _write_value(value)]
    return [_write_terms(term) for term in terms]


def _write_value(value: Value) -> Json:
    if isinstance(value, list | tuple | set | frozenset):
        return [_write_value(item) for item in value]
    try:
        return plain(value)
    except PlanError:
        # Dates, times and decimals: by the name of their Arrow type, and as Arrow prints them.
        try:
            scalar: Value = pa.scalar(value)
            made: dict[str, Json] = {"type": str(scalar.type), "value": scalar.cast(pa.string()).as_py()}
            same = _read_value(made) == value
        except (pa.ArrowException, PlanError, ValueError):
            same = False
        if not same:
            raise
        return made


def _read_condition(value: Value, find: FindFunction) -> object:
    if isinstance(value, str):
        return find(value)
    if isinstance(value, list):
        return _read_terms(value)
    text = value.get("arrow")
    if set(value) != {"arrow"} or not isinstance(text, str):
        raise PlanError(
            f"{value!r} is no condition.",
            hint="write 'module:function', terms as [[label, '>', 3]], or {arrow: '(label > 3)'}",
        )
    return read_expression(text)


def _read_terms(value: Value) -> Value:
    if isinstance(value, list) and len(value) == 3 and isinstance(value[0], str):
        return (value[0], value[1], _read_value(value[2]))
    return [_read_terms(item) for item in value] if isinstance(value, list) else value


def _read_value(value: Value) -> Value:
    if isinstance(value, list):
        return [_read_value(item) for item in value]
    if not isinstance(value, dict):
        return value
    kind, text = value.get("type"), value.get("value")
    if set(value) != {"type", "value"} or not isinstance(kind, str) or not isinstance(text, str):
        raise PlanError(f"{value!r} is no value.", hint="write {type: 'date32[day]', value: '2024-12-31'}")
    try:
        return pa.scalar(text).cast(data_type(kind)).as_py()
    except pa.ArrowException as error:
        raise PlanError(f"{text!r} is no {kind}: {error}", hint="write it as Arrow prints it") from error


def _write_format(format: str | Connector) -> Json:
    if isinstance(format, str):
        return format
    arguments = arguments_of(type(format), _CONNECTOR_FORMS) if is_dataclass(format) else ()
    options = written(format, arguments)
    try:
        known = type(choose(format.name, ())) is type(format)
    except PlanError:
        known = False
    if not known:
        raise PlanError(
            f"the connector {function_name(type(format))} cannot be found by its name {format.name!r}.",
            hint="register it under the entry point group 'dataflow.connectors'",
        )
    return {"name": format.name, **options} if options else format.name


def _read_format(value: Value, find: FindFunction) -> object:
    if isinstance(value, str):
        # The connector itself is chosen with the files; a wrong name shall fail on its own line.
        choose(value, ())
        return value
    options = dict(value)
    name = options.pop("name", None)
    if not isinstance(name, str):
        raise PlanError(f"{value!r} has no name.", hint="write it as {name: tar, key_dot: last}")
    connector: Value = choose(name, ())
    kind: Value = type(connector)
    if not hasattr(kind, "__dataclass_fields__"):
        raise PlanError(f"the format {name!r} has no options.", hint=f"write format: {name}")
    arguments = arguments_of(kind, _CONNECTOR_FORMS)
    return kind(**check(arguments, options, name, find))


def _write_storage_options(options: Mapping[str, Value]) -> Json:
    names = next(credentials(options), None)
    if names is not None:
        place = "".join(f"[{name!r}]" for name in names)
        raise PlanError(
            f"storage_options{place} looks like a credential, and a spec is a file that is passed on.",
            hint="let the store find it in its own environment variables or configuration",
        )
    return plain(options)


def _write_urls(url: Value) -> Json:
    return plain(list(url) if isinstance(url, tuple) else url)


FUNCTION = Form(type=str, write=function_reference, read=lambda name, find: find(name))
SCHEMA = Form(type=dict[str, str], write=_write_schema, read=lambda types, _: _read_schema(types))
CONDITION = Form(type=str | list[Any] | dict[str, Any], write=_write_condition, read=_read_condition)
FORMAT = Form(type=str | dict[str, Any], write=_write_format, read=_read_format)
STORAGE_OPTIONS = Form(type=dict[str, Any], write=_write_storage_options, read=lambda value, _: value)
URLS = Form(
    type=str | list[str],
    write=_write_urls,
    read=lambda url, _: tuple(url) if isinstance(url, list) else url,
)
_CONNECTOR_FORMS: tuple[tuple[type, Form], ...] = ((pa.Schema, SCHEMA),)
