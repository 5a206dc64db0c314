"""Map: a Python function over rows, or over blocks of rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import cast

import numpy as np
import pyarrow as pa

from connectors.contract import Json
from dataflow.errors import StageError
from dataflow.given import as_block_rows, check_flags
from dataflow.graph.block import BadSample, Block, Column, as_arrow
from dataflow.graph.calls import bad_row, call_rows, columns_view, fail
from dataflow.graph.draw import Draw
from dataflow.graph.function_types import check_keys, infer_schema, kept_types
from dataflow.graph.node import Traits
from dataflow.graph.registry import register
from dataflow.graph.returned_columns import as_column, fitting_columns, misfit, type_of
from dataflow.graph.rows import Row, plain_value, taken
from dataflow.ops.function_step import FunctionStep
from dataflow.wording import counted, text_of

__all__ = ["Map"]


@register("map")
@dataclass(frozen=True, kw_only=True, eq=False)
class Map(FunctionStep):
    """The dict that `function` returns replaces the row, or adds to it with `add`.

    Per row: the function gets a dict of NumPy scalars, arrays, str and bytes. `batched`: a dict of arrays
    (rows, *shape) and lists, for blocks of `batch_size` rows of a window; it returns columns of that length.
    With `rng` it also gets a numpy.random.Generator of the sample's own (`batched`: of the block's first
    sample).
    """

    batched: bool = False
    batch_size: int = 1024
    add: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        check_flags("map", batched=self.batched, add=self.add)
        object.__setattr__(self, "batch_size", as_block_rows("map", self.batch_size))

    @property
    def traits(self) -> Traits:
        writes = None if self.declared is None else frozenset(self.declared.names)
        return Traits(
            kernel=True, keeps_columns=self.add, random=self.rng, holds_gil=True, reads=None, writes=writes,
            chunk=self.batch_size if self.batched else None, needs_schema=self.declared is None,
        )  # fmt: skip

    def order_fact(self) -> Json:
        # Named draws are part of what a sample is; the function itself may change between runs.
        return self.draws if self.rng else None

    def infer(self, schemas: Sequence[pa.Schema | None]) -> pa.Schema | None:
        made = self.declared
        if made is None or not self.add:
            return made
        return None if schemas[0] is None else _added(schemas[0], made)

    def probe(self, block: Block, draw: Draw) -> pa.Schema:
        """The schema of what the function returns for the rows of a block.

        Raises:
            StageError, PlanError: the function fails for all of them, or returns what has no type.
        """
        if self.batched:
            columns = self._first_columns(block, draw)
            kinds = {name: as_arrow(column).type for name, column in columns.items()}
            return pa.schema(list(kept_types(kinds, self.input.schema).items()))
        results, bad = self._call_rows(block, draw)
        rows = [cast(Row, result) for result in results if result is not None]
        if not rows:
            raise bad[0].error
        return infer_schema(rows, self.title, self.input.schema)

    def _first_columns(self, block: Block, draw: Draw) -> dict[str, Column]:
        """What the function returns for a block, or for the first part of it for which it does not fail."""
        try:
            return self._call_block(block, draw)
        except StageError:
            middle = block.rows // 2
            for start, stop in ((0, middle), (middle, block.rows)) if middle else ():
                with suppress(StageError):
                    return self._first_columns(block.slice(start, stop), draw)
            raise

    def apply(self, block: Block, draw: Draw) -> Block:
        kept, made = (block, self._call_block(block, draw)) if self.batched else self._made(block, draw)
        columns = {**kept.columns, **made} if self.add else made
        return kept.with_columns(columns, owned=not self.add)

    def _made(self, block: Block, draw: Draw) -> tuple[Block, dict[str, Column]]:
        """The rows of a block of which the function made one, and the columns of these."""
        results, bad = self._call_rows(block, draw)
        called = [place for place, result in enumerate(results) if result is not None]
        groups = [[cast(Row, results[place])] for place in called]
        made, misfits = fitting_columns(groups, cast(pa.Schema, self.declared), self.title)
        if not bad and not misfits:
            return block, made
        bad += [bad_row(block, called[group], self.title, error) for group, error in misfits.items()]
        good = np.zeros(block.rows, np.bool_)
        good[[place for group, place in enumerate(called) if group not in misfits]] = True
        return block.without(bad, good), made

    def _call_rows(self, block: Block, draw: Draw) -> tuple[list[object], list[BadSample]]:
        extra = [self.drawn(block, row, draw) for row in range(block.rows)]
        return call_rows(lambda row, *more: self._row(self.function(row, *more)), block, self.title, extra)

    def _row(self, result: object) -> object:
        if not isinstance(result, Mapping):
            raise _wrong_result(self.title, result)
        return taken(result)

    def _call_block(self, block: Block, draw: Draw) -> dict[str, Column]:
        try:
            result = self.function(columns_view(block), *self.drawn(block, 0, draw))
        except Exception as error:
            fail(self.title, error)
        if not isinstance(result, Mapping):
            raise _wrong_result(self.title, result)
        schema = self.declared
        if schema is not None and set(result) != set(schema.names):
            raise StageError(
                f"returned the columns {sorted(map(str, result))}, not {sorted(schema.names)}.", operator=self.title,
                hint="return the same columns for every block",
            )  # fmt: skip
        if schema is None:
            check_keys(result, self.title)
        names = schema.names if schema is not None else list(result)
        return {name: self._returned(name, result[name], block.rows) for name in names}

    def _returned(self, name: str, values: object, rows: int) -> Column:
        field_ = None if self.declared is None else self.declared.field(name)
        try:
            values = plain_value(values)
            length = len(cast(Sequence[object], values))
        except Exception as error:
            raise StageError(
                f"the values returned for {name!r} are no column: {text_of(error)}",
                operator=self.title, hint="return an array, or a list with one entry a row",
            ) from error  # fmt: skip
        if length != rows:
            raise StageError(
                f"returned {counted(length, 'value')} for column {name!r}, and got {counted(rows, 'row')}.",
                operator=self.title, hint="return one value a row; use flat_map to change the number of rows",
            )  # fmt: skip
        if field_ is None:
            return as_column(values, type_of(values, name, self.title))
        try:
            return as_column(values, field_.type)
        except Exception as error:
            # What is returned is the user's, and may fail in any way when it is looked at.
            raise misfit(field_, error, self.title) from error


def _added(schema: pa.Schema, made: pa.Schema) -> pa.Schema:
    for field_ in made:
        place = schema.get_field_index(field_.name)
        schema = schema.append(field_) if place < 0 else schema.set(place, field_)
    return schema


def _wrong_result(operator: str, result: object) -> StageError:
    # Arrays have it, and images of PIL.
    like = "np.asarray(...)" if hasattr(result, "__array_interface__") else "..."
    return StageError(
        f"returned {type(result).__name__}, not a dict.",
        operator=operator,
        hint=f"return a dict of column values, as {{'name': {like}}}",
    )
