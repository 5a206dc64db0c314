"""FunctionStep: what all steps have in common that make rows by calling a user's function."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from inspect import signature
from typing import Self

import numpy as np
import pyarrow as pa

from dataflow.errors import PlanError
from dataflow.given import as_dict, check_flags, check_text
from dataflow.graph.block import Block
from dataflow.graph.calls import first_id, function_name, sub_number
from dataflow.graph.columns import check_new_names
from dataflow.graph.draw import Draw
from dataflow.graph.node import Node
from dataflow.ops.cast import data_type
from dataflow.ops.forms import FUNCTION, SCHEMA

__all__ = ["FunctionStep", "Types"]

Types = Mapping[str, str | pa.DataType] | pa.Schema


@dataclass(frozen=True, kw_only=True, eq=False)
class FunctionStep(Node):
    """A step over `function`, whose random draws and whose columns may be named beforehand.

    `schema` says what is returned; without it, what the first rows of the source give is what all must give.
    `resolved` is that, set when training starts.
    """

    function: Callable[..., object] = field(metadata={"form": FUNCTION})
    schema_: Types | None = field(default=None, metadata={"key": "schema", "form": SCHEMA})
    rng: bool = False
    draws: str | None = field(default=None, metadata={"key": "key"})
    resolved: pa.Schema | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise PlanError(
                f"{self.kind}({self.function!r}) is no function.", hint="give a function of one row"
            )
        check_flags(self.kind, rng=self.rng)
        check_text(self.kind, "key", self.draws)
        self._check_parameters()
        # Types by name and a schema of the same types are one thing, in specs and in explain().
        object.__setattr__(self, "schema_", _schema(self.schema_))
        if self.declared is not None:
            check_new_names(self.kind, self.declared.names)

    def _check_parameters(self) -> None:
        given = ("row", "rng") if self.rng else ("row",)
        try:
            parameters = signature(self.function)
        except (TypeError, ValueError):
            return  # of what is written in C it is not always known
        try:
            parameters.bind(*given)
        except TypeError as error:
            other = "or leave rng=True out" if self.rng else "and give rng=True where it draws"
            raise PlanError(
                f"{self.title} is called with ({', '.join(given)}), which it does not take: {error}.",
                hint=f"write it as def f({', '.join(given)}), {other}",
            ) from error

    @property
    def declared(self) -> pa.Schema | None:
        """What the function returns, as far as it is known."""
        return self.resolved if self.resolved is not None else _schema(self.schema_)

    @property
    def key(self) -> str | None:
        return self.draws

    @property
    def title(self) -> str:
        return f"{self.kind}({function_name(self.function)})"

    def keyed(self, key: str) -> Self:
        return replace(self, draws=key)

    def resolved_with(self, schema: pa.Schema) -> Self:
        return replace(self, resolved=schema)

    def drawn(self, block: Block, row: int, draw: Draw) -> tuple[np.random.Generator, ...]:
        """What the function is given beside a row of a block: with `rng` the generator of that row, else nothing."""
        return (draw.generator(first_id(block, row), sub_number(block, row)),) if self.rng else ()


def _schema(types: Types | None) -> pa.Schema | None:
    if types is None or isinstance(types, pa.Schema):
        return types
    named = as_dict("schema", types, hint="as schema={'x': 'float32'}, or a pyarrow schema")
    return pa.schema([(name, data_type(kind)) for name, kind in named.items()])
