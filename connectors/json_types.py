"""`merge`: the columns of two parts of a JSONL file become those of both."""

from __future__ import annotations

from typing import TypeAlias

import pyarrow as pa
import pyarrow.types as pt

from connectors.arrow_types import Kind

__all__ = ["Conflict", "depth_of", "fields_in", "merge"]

Fields: TypeAlias = dict[str, Kind]


class Conflict(Exception):
    """Two types of a value have no common one: `path` leads to it, and begins with the name of a column."""

    def __init__(self, path: tuple[str, ...], before: Kind, here: Kind) -> None:
        super().__init__(path, before, here)
        self.path, self.before, self.here = path, before, here


def merge(before: pa.Schema, here: pa.Schema) -> pa.Schema:
    """Return the fields of both in order of first appearance, each of the type that holds all the values.

    Null gives way to anything, integers to floats, a coarser timestamp to a finer one, timestamps (text that
    looks like one) to strings; the fields of objects and the values of lists likewise.

    Raises:
        Conflict: a column has, say, numbers in one and strings in the other.
    """
    return pa.schema(list(_merge_fields(_fields(before), _fields(here), ()).items()))


def depth_of(schema: pa.Schema) -> int:
    """How many objects and lists the columns have inside one another, at most."""
    depth = -1
    level: list[Kind] = [field.type for field in schema]
    # Not by recursion: a hostile line nests deeper than Python's stack.
    while level:
        level = [kind.field(k).type for kind in level for k in range(kind.num_fields)]
        depth += 1
    return depth


def fields_in(schema: pa.Schema) -> int:
    """How many fields there are, those of objects in one another counted too."""
    found = 0
    level: list[Kind] = [field.type for field in schema]
    while level:
        found += len(level)
        level = [kind.field(k).type for kind in level for k in range(kind.num_fields)]
    return found


def _fields(kind: Kind) -> Fields:
    return {field.name: field.type for field in kind}


def _merge_fields(before: Fields, here: Fields, path: tuple[str, ...]) -> Fields:
    merged = dict(before)
    for name, kind in here.items():
        merged[name] = _merge(before[name], kind, (*path, name)) if name in before else kind
    return merged


def _merge(before: Kind, here: Kind, path: tuple[str, ...]) -> Kind:
    if before == here or pt.is_null(here):
        return before
    if pt.is_null(before):
        return here
    if pt.is_struct(before) and pt.is_struct(here):
        return pa.struct(list(_merge_fields(_fields(before), _fields(here), path).items()))
    if pt.is_list(before) and pt.is_list(here):
        return pa.list_(_merge(before.value_type, here.value_type, (*path, "[]")))
    kinds = {before, here}
    if kinds == {pa.int64(), pa.float64()}:
        return pa.float64()
    if kinds == {pa.timestamp("s"), pa.timestamp("ns")}:
        return pa.timestamp("ns")
    if pa.string() in kinds and any(map(pt.is_timestamp, kinds)):
        return pa.string()
    raise Conflict(path, before, here)
