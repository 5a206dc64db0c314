"""`unify`: one schema for all files of a source."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.types as pt

from connectors.arrow_types import Kind, is_list
from dataflow.errors import DataError

__all__ = ["bare", "unify"]

Field: TypeAlias = "pa.Field[Any]"

# How many binary digits a whole number may have, so that a float has it exactly.
_EXACT_DIGITS = ((pa.float16(), 11), (pa.float32(), 24), (pa.float64(), 53))


def bare(schema: pa.Schema) -> pa.Schema:
    """The schema without metadata: what a writer noted about one file says nothing about the others."""
    return pa.schema([pa.field(f.name, f.type, f.nullable) for f in schema])


def unify(schemas: Iterable[tuple[str, pa.Schema]]) -> pa.Schema:
    """The smallest schema that the rows of every `(file, schema)` fit without loss, columns by appearance.

    Null becomes any type, integers and floats become wider ones of their kind, strings and binaries large,
    units finer; lists and structs by their members. A column that a file lacks is nullable. Beside floats, integers
    become floats; an integer of 64 bits that double has not exactly, as 2**53 + 1, is an error when it is read.

    Raises:
        DataError: two files have a column of types that do not fit; names both files and the column.
    """
    fields: dict[str, Field] = {}
    origin: dict[str, str] = {}
    for number, (file, schema) in enumerate(schemas):
        for new in schema:
            old = fields.get(new.name)
            if old is None:
                fields[new.name] = new.with_nullable(True) if number else new
            elif not old.equals(new):
                joined = _join(old.type, new.type)
                if joined is None:
                    raise _clash(new.name, origin[new.name], old.type, file, new.type)
                fields[new.name] = pa.field(new.name, joined, old.nullable or new.nullable)
                if joined == old.type:
                    continue
            else:
                continue
            origin[new.name] = file
        for name in fields.keys() - set(schema.names):
            fields[name] = fields[name].with_nullable(True)
    return pa.schema(list(fields.values()))


def _clash(column: str, file: str, kind: Kind, other: str, other_kind: Kind) -> DataError:
    return DataError(
        f"column {column!r} is {other_kind} here, but {kind} in {file}.",
        file=other,
        hint=f"write {column!r} with one type, or read the files as two sources and cast one of them; of JSON Lines, "
        "format=Jsonl(schema=...) can say the type",
    )


def _join(a: Kind, b: Kind) -> Kind | None:
    if a.equals(b):
        return a
    if pt.is_null(a) or pt.is_null(b):
        return b if pt.is_null(a) else a
    if pt.is_dictionary(a) and pt.is_dictionary(b):
        return _join_dictionaries(a, b)
    if pt.is_dictionary(a) or pt.is_dictionary(b):
        return _join(_value(a), _value(b))
    if pt.is_struct(a) and pt.is_struct(b):
        return _join_structs(a, b)
    if is_list(a) and is_list(b):
        return _join_lists(a, b)
    return _join_leaves(a, b)


def _join_dictionaries(a: Kind, b: Kind) -> Kind | None:
    values, indices = _join(a.value_type, b.value_type), _join(a.index_type, b.index_type)
    if values is None or indices is None:
        return values
    return pa.dictionary(indices, values, ordered=a.ordered and b.ordered)


def _join_structs(a: Kind, b: Kind) -> Kind | None:
    fields = {f.name: f for f in a}
    lacking = fields.keys() - {f.name for f in b}
    for new in b:
        old = fields.get(new.name)
        kind = new.type if old is None else _join(old.type, new.type)
        if kind is None:
            return None
        fields[new.name] = pa.field(new.name, kind, old is None or old.nullable or new.nullable)
    return pa.struct([f.with_nullable(True) if n in lacking else f for n, f in fields.items()])


def _join_lists(a: Kind, b: Kind) -> Kind | None:
    kind = _join(a.value_type, b.value_type)
    if kind is None:
        return None
    if pt.is_fixed_size_list(a) and pt.is_fixed_size_list(b):
        # Rows of another fixed length are another shape, which a batch could not hold.
        return pa.list_(kind, a.list_size) if a.list_size == b.list_size else None
    return pa.large_list(kind) if pt.is_large_list(a) or pt.is_large_list(b) else pa.list_(kind)


def _join_leaves(a: Kind, b: Kind) -> Kind | None:
    if _is_number(a) and _is_number(b) and _family(a) != _family(b):
        floats = pt.is_floating(a) or pt.is_floating(b)
        return _join_float(a, b) if floats else _join_signs(a, b)
    if pt.is_decimal(a) != pt.is_decimal(b):
        return None
    try:
        pair = [pa.schema([("x", a)]), pa.schema([("x", b)])]
        return pa.unify_schemas(pair, promote_options="permissive").field(0).type
    except (pa.ArrowTypeError, pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return None


def _join_float(a: Kind, b: Kind) -> Kind:
    """The smallest float, at least the one of the two, that has every integer of the other, or else double."""
    real, whole = (a, b) if pt.is_floating(a) else (b, a)
    digits = whole.bit_width - pt.is_signed_integer(whole)
    wide = next((kind for kind, most in _EXACT_DIGITS if digits <= most), pa.float64())
    return real if real.bit_width >= wide.bit_width else wide


def _join_signs(a: Kind, b: Kind) -> Kind | None:
    signed, unsigned = (a, b) if pt.is_signed_integer(a) else (b, a)
    wider = {8: pa.int16(), 16: pa.int32(), 32: pa.int64()}.get(unsigned.bit_width)
    if wider is None:
        return None
    return signed if signed.bit_width >= wider.bit_width else wider


def _family(kind: Kind) -> str:
    if pt.is_floating(kind):
        return "float"
    return "signed" if pt.is_signed_integer(kind) else "unsigned"


def _is_number(kind: Kind) -> bool:
    return bool(pt.is_integer(kind) or pt.is_floating(kind))


def _value(kind: Kind) -> Kind:
    return kind.value_type if pt.is_dictionary(kind) else kind
