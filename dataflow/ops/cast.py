"""Cast: change the types of columns, refusing to lose values."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from connectors.arrow_types import Arrow, is_list
from connectors.bfloat16 import is_bfloat16
from dataflow.errors import DataError, PlanError
from dataflow.given import check_flags
from dataflow.graph.block import Block, Column, as_arrow
from dataflow.graph.columns import check_columns
from dataflow.graph.draw import Draw
from dataflow.graph.node import Node, Traits
from dataflow.graph.registry import register

__all__ = ["Cast", "data_type", "type_name"]


# Of a longer value the beginning is shown.
_MOST_LETTERS = 80
_TENSOR = re.compile(r"(.+)\[(\d+(?:, *\d+)+)\]")
_PRINTED_TENSOR = re.compile(r"extension<arrow\.fixed_shape_tensor\[value_type=(.+), shape=\[([\d,]+)\]\]>")


def data_type(kind: str | pa.DataType) -> pa.DataType:
    """An Arrow type from its name: "int32", "float16", "string", "timestamp[us]", "list<int64>".

    "int32[512]" is a fixed-size list, "uint8[32,32,3]" a fixed_shape_tensor. Whatever Arrow prints for one of
    these types is understood.

    Raises:
        PlanError: the name is unknown.
    """
    if isinstance(kind, pa.DataType):
        return kind
    text = str(kind).strip()
    tensor = _PRINTED_TENSOR.fullmatch(text) or _TENSOR.fullmatch(text)
    if tensor is not None:
        return pa.fixed_shape_tensor(data_type(tensor[1]), [int(size) for size in tensor[2].split(",")])
    if text.startswith(("list<", "large_list<")) and text.endswith(">"):
        outer, inner = text[:-1].split("<", 1)
        item = data_type(inner.split(": ", 1)[-1])
        return pa.list_(item) if outer == "list" else pa.large_list(item)
    if text.startswith("fixed_size_list<") and "]" in text:
        inner, size = text[len("fixed_size_list<") :].rstrip(">").rstrip("]").rsplit("[", 1)
        return pa.list_(data_type(inner.split(": ", 1)[-1].rstrip(">")), int(size))
    if text.endswith("]") and text.rsplit("[", 1)[1][:-1].isdigit():
        inner, size = text[:-1].rsplit("[", 1)
        return pa.list_(data_type(inner), int(size))
    aliases = {"float16": "halffloat", "float32": "float", "float64": "double", "str": "string"}
    name: Any = aliases.get(text, text)  # the stubs want one of the literals
    try:
        found: pa.DataType = pa.type_for_alias(name)
        return found
    except ValueError:
        raise PlanError(
            f"{kind!r} is no type.",
            hint="use a name as 'int64', 'float16', 'string', 'int32[512]' or 'uint8[32,32,3]'",
        ) from None


def type_name(kind: pa.DataType) -> str:
    """The name of an Arrow type, as `data_type` understands it: what Arrow prints, but for tensors."""
    tensor = _PRINTED_TENSOR.fullmatch(str(kind))
    return str(kind) if tensor is None else f"{tensor[1]}[{tensor[2]}]"


@register("cast")
@dataclass(frozen=True, kw_only=True, eq=False)
class Cast(Node):
    """Change the type of each column named by the keys of `types` to the Arrow type that is its value.

    A value that the new type cannot hold makes its row a bad row (`safe`), or is cut off.
    """

    types: Mapping[str, str]
    safe: bool = True

    def __post_init__(self) -> None:
        check_flags("cast", safe=self.safe)
        check_columns("cast", self.types, None)
        for kind in self.types.values():
            data_type(kind)

    @property
    def traits(self) -> Traits:
        names = frozenset(self.types)
        return Traits(kernel=True, reads=names, writes=names)

    def infer(self, schemas: Sequence[pa.Schema | None]) -> pa.Schema | None:
        schema = schemas[0]
        if schema is None:
            return None
        check_columns("cast", self.types, schema)
        for name, kind in self.types.items():
            place = schema.get_field_index(name)
            target = data_type(kind)
            if is_bfloat16(schema.field(name).type):
                # Arrow would cast the bits.
                raise PlanError(
                    f"cast: column {name!r} is bfloat16, which Arrow cannot change.",
                    hint="give to_dtype or normalize the dtype that you want",
                )
            try:
                pa.nulls(0, schema.field(name).type).cast(target, safe=self.safe)
            except pa.ArrowException as error:
                raise PlanError(
                    f"cast: column {name!r} is {schema.field(name).type} and has no way to {target}.",
                    hint="use map for a conversion of your own",
                ) from error
            schema = schema.set(place, pa.field(name, target))
        return schema

    def needs(self, wanted: frozenset[str] | None) -> tuple[frozenset[str] | None, ...]:
        return (wanted,)

    def narrowed(self, wanted: frozenset[str]) -> Node:
        types = {name: kind for name, kind in self.types.items() if name in wanted}
        return replace(self, types=types) if types else self.input

    def apply(self, block: Block, draw: Draw) -> Block:
        columns: dict[str, Column] = dict(block.columns)
        for name, kind in self.types.items():
            columns[name] = self._cast(as_arrow(columns[name]), name, data_type(kind))
        return block.with_columns(columns)

    def _cast(self, column: Arrow, name: str, target: pa.DataType) -> Arrow:
        try:
            return self._changed(column, target)
        except pa.ArrowException as error:
            # Of more rows the one is not known yet: they are then cast in parts, until it stands alone.
            value = f": {_printed(column)}" if len(column) == 1 else ""
            raise DataError(
                f"cast: column {name!r} ({column.type}) has a value that is no {type_name(target)}{value} "
                f"({_short(str(error))}).",
                hint=_hint(column.type, target, safe=self.safe),
            ) from error

    def _changed(self, column: Arrow, target: pa.DataType) -> Arrow:
        try:
            return pc.cast(column, target, safe=self.safe)
        except pa.ArrowException:
            if not is_list(column.type):
                raise
        # The cast of a slice of lists also takes the values of the rows beside it, and those below a null list:
        # what is wrong may be one of these. A copy has the values of its own rows alone.
        own = column.take(pa.array(np.arange(len(column))))
        return pc.cast(own, target, safe=self.safe)


def _printed(column: Arrow) -> str:
    """The only value of a column as Arrow prints it: Python has no value for every time."""
    return _short(" ".join(column.to_string().split()).removeprefix("[").removesuffix("]").strip())


def _short(text: str) -> str:
    return text if len(text) <= _MOST_LETTERS else f"{text[: _MOST_LETTERS - 3]}..."


def _hint(kind: pa.DataType, target: pa.DataType, *, safe: bool) -> str:
    skipped = "let the loader leave such rows out with on_error='skip'"
    numbers = all(pa.types.is_integer(each) or pa.types.is_floating(each) for each in (kind, target))
    return f"use a wider type, safe=False to cut values off, or {skipped}" if safe and numbers else skipped
