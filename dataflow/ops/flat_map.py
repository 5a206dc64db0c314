"""FlatMap: several rows, or none, of one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import cast

import numpy as np
import pyarrow as pa

from connectors.contract import Json
from dataflow.errors import PlanError, StageError
from dataflow.graph.block import BadSample, Block
from dataflow.graph.calls import bad_row, call_rows, function_name
from dataflow.graph.draw import Draw
from dataflow.graph.function_types import infer_schema
from dataflow.graph.node import Traits
from dataflow.graph.registry import register
from dataflow.graph.returned_columns import fitting_columns
from dataflow.graph.rows import Row, taken
from dataflow.ops.function_step import FunctionStep

__all__ = ["FlatMap"]


@register("flat_map")
@dataclass(frozen=True, kw_only=True, eq=False)
class FlatMap(FunctionStep):
    """`function` of a row returns any number of rows (dicts), which take its place.

    `__id__` gets a second column: the number of the row among those of its call. `schema` as in `map`.
    """

    @property
    def traits(self) -> Traits:
        writes = None if self.declared is None else frozenset(self.declared.names)
        return Traits(
            kernel=True, keeps_rows=False, many=True, keeps_columns=False, holds_gil=True, random=self.rng,
            reads=None, writes=writes, needs_schema=self.declared is None,
        )  # fmt: skip

    def order_fact(self) -> Json:
        return function_name(self.function)

    def infer(self, schemas: Sequence[pa.Schema | None]) -> pa.Schema | None:
        return self.declared

    def probe(self, block: Block, draw: Draw) -> pa.Schema:
        """The schema of the rows that the function returns for the rows of a block."""
        groups, bad = self._call(block, draw)
        rows = [row for group in groups for row in group]
        if not rows and bad:
            raise bad[0].error
        if not rows:
            raise PlanError(
                f"{self.title} returned no row for the first {block.rows} rows: its columns are unknown.",
                hint="give schema={...}",
            )
        return infer_schema(rows, self.title, self.input.schema)

    def apply(self, block: Block, draw: Draw) -> Block:
        groups, bad = self._call(block, draw)
        columns, misfits = fitting_columns(groups, cast(pa.Schema, self.declared), self.title)
        bad += [bad_row(block, row, self.title, error) for row, error in misfits.items()]
        counts = np.fromiter(map(len, groups), np.int64, len(groups))
        counts[list(misfits)] = 0
        source = np.repeat(np.arange(block.rows), counts)
        sub = np.arange(len(source)) - np.repeat(np.cumsum(counts) - counts, counts)
        ids = np.column_stack([block.ids.reshape(block.rows, -1)[source], sub])
        origin = block.origin[source]
        return replace(block, columns=columns, ids=ids, origin=origin, owned=True, bad=(*block.bad, *bad))

    def _call(self, block: Block, draw: Draw) -> tuple[list[list[Row]], list[BadSample]]:
        extra = [self.drawn(block, row, draw) for row in range(block.rows)]
        results, bad = call_rows(
            lambda row, *more: self._listed(self.function(row, *more)), block, self.title, extra
        )
        return [cast(list[Row], result) if result is not None else [] for result in results], bad

    def _listed(self, result: object) -> list[Row]:
        if isinstance(result, Mapping) or not isinstance(result, Iterable):
            raise StageError(
                f"returned {type(result).__name__}, not a list of rows.", operator=self.title,
                hint="return a list of dicts, or yield them",
            )  # fmt: skip
        return [self._row(row) for row in result]

    def _row(self, row: object) -> Row:
        if not isinstance(row, Mapping):
            raise StageError(
                f"returned a list with a {type(row).__name__}, not a dict.", operator=self.title,
                hint="return a list of dicts",
            )  # fmt: skip
        return taken(row)
