"""Split: parts of a data set that stay the same when files are added."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from connectors.arrow_types import Arrow
from connectors.contract import Json
from dataflow.errors import PlanError
from dataflow.given import is_number
from dataflow.graph.block import Block, as_arrow
from dataflow.graph.columns import check_columns
from dataflow.graph.node import NameRows, Traits, walk
from dataflow.graph.registry import register
from dataflow.graph.value_bytes import value_bytes
from dataflow.ops.selecting import SelectingNode
from dataflow.order.philox import draws, key_of

__all__ = ["Split", "split_ranges"]

Float64s = npt.NDArray[np.float64]

# What `by` may say for the sample, beside nothing at all.
_SAMPLES: Final = "id"


def split_ranges(parts: Mapping[str, float]) -> dict[str, tuple[float, float]]:
    """Shares by name as ranges of [0, 1), one behind the other.

    Raises:
        PlanError: a share is not over 0, or they add up to more than 1.
    """
    if not parts or not all(_is_share(s) for s in parts.values()):
        raise PlanError(
            f"split({dict(parts)!r}): every share must be over 0.", hint="as {'train': 0.98, 'val': 0.02}"
        )
    total = float(sum(parts.values()))
    if total > 1 + 1e-9:
        raise PlanError(f"split: the shares add up to {total:g}.", hint="let them add up to at most 1")
    ranges, low = {}, 0.0
    for name, share in parts.items():
        high = low + share
        ranges[name] = (low, 1.0 if high > 1 - 1e-9 else high)
        low = high
    return ranges


def _is_share(share: object) -> bool:
    return is_number(share) and share > 0


@register("split")
@dataclass(frozen=True, kw_only=True, eq=False)
class Split(SelectingNode):
    """Keep the rows whose draw lies in [low, high).

    The draw of a row depends on its file's name and its place in the file, or on its value in column `by` (rows of
    one value stay together): never on the seed, nor on what other files there are. `by="id"` says the first of the
    two as well, unless there is a column of that name. A part that is split again is split by other draws, so that
    shares are those of the part.
    """

    low: float
    high: float
    by: str | None = None

    @property
    def column(self) -> str | None:
        """The column whose values draw; None where samples do."""
        return None if self.by == _SAMPLES else self.by

    @property
    def traits(self) -> Traits:
        reads = frozenset() if self.column is None else frozenset([self.column])
        return Traits(selects=True, filters=True, reads=reads)

    def needs(self, wanted: frozenset[str] | None) -> tuple[frozenset[str] | None, ...]:
        # The pass that finds the kept rows reads its own column.
        return (wanted,)

    def order_fact(self) -> Json:
        return self.selection_key

    def infer(self, schemas: Sequence[pa.Schema | None]) -> pa.Schema | None:
        # What comes in behind the pass need not have its column any more.
        if self.basis is None and self.by is not None and schemas[0] is not None:
            _check_by(self.by, schemas[0])
        return schemas[0]

    @property
    def selection_key(self) -> str | None:
        again = f"{self._depth} " if self._depth else ""
        by = "samples" if self.column is None else f"values of {self.column}"
        return f"split {again}{by} {self.low!r} {self.high!r}"

    @cached_property
    def _depth(self) -> int:
        """How many splits rows have been through that drew from their names, or from values, as this one does."""
        below = [step for step in walk(self.reads_from) if isinstance(step, Split)]
        return sum((step.column is None) == (self.column is None) for step in below)

    def selected(self, block: Block, named: NameRows) -> Block:
        drawn = self._by_row(block, named) if self.column is None else self._by_value(block, self.column)
        return block.take(np.flatnonzero((drawn >= self.low) & (drawn < self.high)))

    def _by_row(self, block: Block, named: NameRows) -> Float64s:
        first = block.ids if block.ids.ndim == 1 else block.ids[:, 0]
        files, rows = named(first)
        drawn = np.empty(block.rows)
        names = np.array(files)
        for name in dict.fromkeys(files):
            some = names == name
            drawn[some] = draws(key_of(0, self._depth, f"split {name}"), rows[some], 1)[:, 0] / 2.0**32
        return drawn

    def _by_value(self, block: Block, name: str) -> Float64s:
        values, places = _distinct(as_arrow(block.columns[name]))
        return np.array([_unit(value, self._depth) for value in value_bytes(values)], np.float64)[places]


def _check_by(by: str, schema: pa.Schema) -> None:
    if by != _SAMPLES:
        check_columns("split", [by], schema)
    elif by in schema.names:
        raise PlanError(
            f"split(by={by!r}) is the sample or the column {by!r}.",
            hint="leave out by= to split by sample; to split by the column, give it another name first, as "
            f".rename({{{by!r}: 'key'}}).split(..., by='key')",
        )


def _distinct(column: Arrow) -> tuple[Arrow, npt.NDArray[np.int64]]:
    """The values of a column, equal ones once where Arrow can tell, and the place of each row's among them."""
    plain = column.dictionary_decode() if isinstance(column, pa.DictionaryArray) else column
    try:
        coded = plain.dictionary_encode(null_encoding="encode")
    except pa.ArrowNotImplementedError:
        return plain, np.arange(len(plain))
    return coded.dictionary, coded.indices.to_numpy()


def _unit(value: bytes, depth: int) -> float:
    """A number in [0, 1) of a value's bytes."""
    salt = depth.to_bytes(4, "little")
    digest = hashlib.blake2b(value, digest_size=8, person=b"split", salt=salt).digest()
    # As many bits as a float holds: of more, the largest would be rounded to 1.
    return (int.from_bytes(digest, "little") >> 11) / 2.0**53
