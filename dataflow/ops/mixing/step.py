"""MixStep: what operators have in common that mix the rows of a batch, and their labels as they mixed them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from connectors.tensors import shape_of, to_numpy
from dataflow.errors import DataError, InternalError, PlanError
from dataflow.given import as_whole, check_text
from dataflow.graph.block import Block, Column
from dataflow.graph.calls import first_id, sub_number
from dataflow.graph.columns import check_columns
from dataflow.graph.draw import Draw
from dataflow.graph.node import Node, Traits
from dataflow.order.philox import draws, key_of

__all__ = ["MixStep", "check_alpha"]

Int64s = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float32]
Values = npt.NDArray[Any]
_MOST_CLASSES = (1 << 31) - 1  # the longest list of a fixed length that Arrow has


def check_alpha(step: str, name: str, alpha: object) -> None:
    """The parameter of a Beta distribution.

    Raises:
        PlanError: it is none.
    """
    if isinstance(alpha, bool) or not isinstance(alpha, int | float) or not 0 < alpha < float("inf"):
        raise PlanError(
            f"{step}: {name}={alpha!r}.", hint="give a number over 0; the larger, the more even the mix"
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class MixStep(Node):
    """Mix each row of a rank's batch with the one before it, the first with the last; rows that only pad are not mixed.

    Whole numbers in `label_column` become float32 (num_classes,), a share for each class; what is (num_classes,) floats
    already is mixed as it is. What is drawn is one for a batch, keyed by which rows it has: the same wherever and
    whenever the batch is made.
    """

    column: str
    label_column: str = field(metadata={"key": "label"})
    num_classes: int
    draws: str | None = field(default=None, metadata={"key": "key"})

    def __post_init__(self) -> None:
        check_columns(self.kind, [self.column, self.label_column], None)
        check_text(self.kind, "key", self.draws)
        classes = as_whole(
            self.num_classes,
            f"{self.kind}: num_classes={self.num_classes!r}.",
            hint="give the number of classes, as 1000",
            least=1,
            below=_MOST_CLASSES + 1,
        )
        object.__setattr__(self, "num_classes", classes)

    @property
    def traits(self) -> Traits:
        columns = frozenset({self.column, self.label_column})
        return Traits(after_batch=True, combines=True, random=True, reads=columns, writes=columns)

    @property
    def key(self) -> str | None:
        return self.draws

    def keyed(self, key: str) -> Self:
        return replace(self, draws=key)

    def infer(self, schemas: Sequence[pa.Schema | None]) -> pa.Schema | None:
        schema = schemas[0]
        if schema is None:
            return None
        check_columns(self.kind, [self.column, self.label_column], schema)
        self.check_column(schema.field(self.column).type)
        place = schema.get_field_index(self.label_column)
        kind = schema.field(place).type
        dense = shape_of(kind)
        if dense == (np.dtype(np.float32), (self.num_classes,)):
            return schema
        if dense is None or dense[1] or dense[0].kind not in "iu" or pa.types.is_temporal(kind):
            raise PlanError(
                f"{self.kind}: column {self.label_column!r} is {kind}, no labels.",
                hint=f"a label is a whole number under {self.num_classes}, or float32[{self.num_classes}]",
            )
        return schema.set(place, pa.field(self.label_column, pa.list_(pa.float32(), self.num_classes)))

    def check_column(self, kind: pa.DataType) -> None:
        """A column of that type can be mixed.

        Raises:
            PlanError: it cannot.
        """
        raise InternalError(f"{self.kind} mixes no columns.")

    def mix(self, values: Values, labels: Floats, rows: Int64s, rng: np.random.Generator) -> None:
        """Mix `rows` of both in place."""
        raise InternalError(f"{self.kind} mixes nothing.")

    @property
    def mixed_type(self) -> Any:
        """The type of the column that is mixed."""
        if self.input.schema is None:
            raise InternalError(f"the columns in front of {self.title} are not known.")
        return self.input.schema.field(self.column).type

    def combine(self, block: Block, rows: Int64s, draw: Draw) -> Block:
        columns: dict[str, Column] = {
            name: values if block.owned or not isinstance(values, np.ndarray) else values.copy(order="K")
            for name, values in block.columns.items()
        }
        values = _present(columns[self.column], self.column)
        labels = self._shares(_present(columns[self.label_column], self.label_column), block)
        self.mix(values, labels, rows, draw.generator(_number(block, rows, draw)))
        return block.with_columns({**columns, self.column: values, self.label_column: labels}, owned=True)

    def _shares(self, labels: Values, block: Block) -> Floats:
        """A share of each class, float32 (rows, num_classes)."""
        if labels.ndim == 2:
            return labels
        wrong = np.flatnonzero((labels < 0) | (labels >= self.num_classes))
        if len(wrong):
            sample = first_id(block, int(wrong[0]))
            raise DataError(
                f"{self.kind}: sample {sample >> 40}:{sample & (1 << 40) - 1} has the label {labels[wrong[0]]}, "
                f"and num_classes={self.num_classes}.",
                hint="labels are whole numbers from 0 to num_classes - 1; filter others out in front of batch",
            )
        shares = np.zeros((len(labels), self.num_classes), np.float32)
        shares[np.arange(len(labels)), labels] = 1
        return shares


def _present(column: Column, name: str) -> Values:
    """A dense column, as memory that may be written to."""
    if isinstance(column, np.ndarray):
        return column
    if column.null_count:
        raise DataError(
            f"column {name!r} has nulls, which cannot be mixed.",
            hint=f"fill them with .nulls({name!r}) before batch",
        )
    return to_numpy(column).copy(order="K")


def _number(block: Block, rows: Int64s, draw: Draw) -> int:
    """A random number of 64 bits that depends on which rows these are, and not on their order."""
    ids = np.ascontiguousarray(block.ids.reshape(block.rows, -1)[rows, 0])
    subs = 0 if block.ids.ndim == 1 else np.array([sub_number(block, row) for row in rows.tolist()])
    words = draws(key_of(draw.seed, draw.turn, draw.key), ids, 2, subs).astype(np.uint64)
    return int((words[:, 0] | words[:, 1] << np.uint64(32)).sum(dtype=np.uint64))
