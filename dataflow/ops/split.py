"""Split: parts of a data set that stay the same when files are added."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from connectors.contract import Json
from dataflow.errors import PlanError
from dataflow.graph.block import Block, as_arrow
from dataflow.graph.columns import check_columns
from dataflow.graph.node import Kept, NameRows, Node, Traits, walk
from dataflow.graph.registry import register
from dataflow.order.philox import draws, key_of

__all__ = ["Split", "split_ranges"]

# The stubs of pyarrow know the members of an array or type only when its class is known statically.
Arrow: TypeAlias = Any


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
    return isinstance(share, int | float) and not isinstance(share, bool) and share > 0


@register("split")
@dataclass(frozen=True, kw_only=True, eq=False)
class Split(Node):
    """Keep the rows whose draw lies in [low, high).

    The draw of a row depends on its file's name and its place in the file (`by="id"`), or on its value in
    column `by` (rows of one value stay together): never on the seed, nor on what other files there are. A part
    that is split again is split by other draws, so that shares are those of the part.
    """

    low: float
    high: float
    by: str = "id"
    basis: Node | None = field(default=None, repr=False)
    kept: Kept | None = field(default=None, repr=False)

    def with_basis(self, basis: Node) -> Node:
        return replace(self, basis=basis)

    def with_kept(self, kept: Kept) -> Node:
        return replace(self, kept=kept)

    @property
    def traits(self) -> Traits:
        return Traits(
            selects=True, filters=True, reads=frozenset() if self.by == "id" else frozenset([self.by])
        )

    def needs(self, wanted: frozenset[str] | None) -> tuple[frozenset[str] | None, ...]:
        return (wanted,)

    def order_fact(self) -> Json:
        return self.selection_key

    def infer(self, schemas: Sequence[pa.Schema | None]) -> pa.Schema | None:
        return schemas[0]

    @property
    def selection_basis(self) -> Node:
        return self.basis if self.basis is not None else self.input

    @property
    def selection_key(self) -> str | None:
        again = f"{self._depth} " if self._depth else ""
        return f"split {again}{self.by} {self.low!r} {self.high!r}"

    @cached_property
    def _depth(self) -> int:
        """How many splits rows have been through that drew from their names, or from values, as this one does."""
        below = [step for step in walk(self.selection_basis) if isinstance(step, Split)]
        return sum((step.by == "id") == (self.by == "id") for step in below)

    def selected(self, block: Block, named: NameRows) -> Block:
        drawn = self._by_row(block, named) if self.by == "id" else self._by_value(block)
        return block.take(np.flatnonzero((drawn >= self.low) & (drawn < self.high)))

    def _by_row(self, block: Block, named: NameRows) -> npt.NDArray[np.float64]:
        first = block.ids if block.ids.ndim == 1 else block.ids[:, 0]
        files, rows = named(first)
        drawn = np.empty(block.rows)
        names = np.array(files)
        for name in dict.fromkeys(files):
            some = names == name
            drawn[some] = draws(key_of(0, self._depth, f"split {name}"), rows[some], 1)[:, 0] / 2.0**32
        return drawn

    def _by_value(self, block: Block) -> npt.NDArray[np.float64]:
        check_columns("split", [self.by], pa.schema([(name, pa.null()) for name in block.columns]))
        column: Arrow = as_arrow(block.columns[self.by])
        coded = column.dictionary_encode(null_encoding="encode")
        drawn = np.array([_unit(value, self._depth) for value in coded.dictionary.to_pylist()])
        place: npt.NDArray[np.int32] = coded.indices.to_numpy()
        return drawn[place]


def _unit(value: object, depth: int) -> float:
    salt = depth.to_bytes(4, "little")
    digest = hashlib.blake2b(
        f"{type(value).__name__} {value!r}".encode(), digest_size=8, person=b"split", salt=salt
    ).digest()
    return int.from_bytes(digest, "little") / 2.0**64
