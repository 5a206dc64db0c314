"""Which columns of a source a recipe takes: those that are named, else those of a usual name and the right type."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import pyarrow as pa

from dataflow.beginnings import read
from dataflow.errors import PlanError
from dataflow.fluent import Pipeline
from dataflow.graph.columns import check_columns
from dataflow.ops.images.form import is_encoded
from dataflow.ops.read import Url

__all__ = ["IMAGE", "LABEL", "TEXT", "Given", "Sought", "taken"]

# What a recipe reads: files, or rows that a pipeline gives.
Given: TypeAlias = Url | Sequence[Url] | Pipeline
# The stubs of pyarrow know the members of a type only when its class is known statically.
Kind: TypeAlias = Any


@dataclass(frozen=True, kw_only=True)
class Sought:
    """A column that a recipe wants.

    Fields:
        argument: that names it; the column has this name behind `taken`.
        names: that it usually has, the most usual first.
        what: it holds, for errors.
        fits: whether a type can hold that.
    """

    argument: str
    names: tuple[str, ...]
    what: str
    fits: Callable[[Kind], bool]


def _file_field(kind: Kind) -> str | None:
    """The field of a struct that holds files: that of data sets which Hugging Face has written is `bytes`."""
    if not pa.types.is_struct(kind) or kind.get_field_index("bytes") < 0:
        return None
    return "bytes" if is_encoded(kind.field("bytes").type) else None


# The names are those of data sets that Hugging Face has written, of members in tar shards, and of files in folders.
IMAGE: Final = Sought(
    argument="image",
    names=("image", "jpg", "jpeg", "png", "webp", "img", "bytes"),
    what="files of images",
    fits=lambda kind: is_encoded(kind) or _file_field(kind) is not None,
)
LABEL: Final = Sought(
    argument="label",
    names=("label", "cls", "class", "labels"),
    what="whole numbers",
    fits=pa.types.is_integer,
)
TEXT: Final = Sought(
    argument="text",
    names=("text", "txt", "caption"),
    what="texts",
    fits=lambda kind: pa.types.is_string(kind) or pa.types.is_large_string(kind),
)


def taken(recipe: str, given: Given, named: Mapping[Sought, str | None]) -> Pipeline:
    """The rows of what is given, with these columns alone, each under the name of its argument.

    Raises:
        PlanError: a column is not there, holds something else, or is not found; says which columns there are.
    """
    pipe = given if isinstance(given, Pipeline) else read(given)
    if pipe.schema is None:
        raise PlanError(
            f"{recipe}: the columns are known only when the function of a step has run.",
            hint="give that step schema=",
        )
    columns = {_found(recipe, pipe.schema, sought, name): sought.argument for sought, name in named.items()}
    for column in columns:
        inside = _file_field(pipe.schema.field(column).type)
        pipe = pipe if inside is None else pipe.field(column, inside)
    renamed = {column: argument for column, argument in columns.items() if column != argument}
    pipe = pipe.select(*columns)
    return pipe.rename(renamed) if renamed else pipe


def _found(recipe: str, schema: pa.Schema, sought: Sought, name: str | None) -> str:
    if name is None:
        for usual in sought.names:
            if usual in schema.names and sought.fits(schema.field(usual).type):
                return usual
        raise PlanError(
            f"{recipe}: which column has {sought.what} is not known; there are {_listed(schema)}.",
            hint=f"name it: {sought.argument}='...'",
        )
    check_columns(f"{recipe}({sought.argument}=)", [name], schema)
    kind = schema.field(name).type
    if not sought.fits(kind):
        raise PlanError(
            f"{recipe}({sought.argument}={name!r}) is {kind}, and there should be {sought.what}.",
            hint=f"name another column of {_listed(schema)}, or change it in a pipeline and give that",
        )
    return name


def _listed(schema: pa.Schema) -> str:
    return ", ".join(f"{field.name} ({field.type})" for field in schema)
