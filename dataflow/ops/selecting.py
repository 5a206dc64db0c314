"""SelectingNode: steps that can be their own `Selection`, with kept rows that are found in one pass beforehand."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from typing import Self

from dataflow.graph.block import Block
from dataflow.graph.node import Kept, NameRows, Node, Selection

__all__ = ["SelectingNode"]


@dataclass(frozen=True, kw_only=True, eq=False)
class SelectingNode(Node, ABC):
    """A step that remembers what its pass evaluates and what it has found.

    `basis` is what that pass reads, set by a rule, which may narrow the input behind it; `kept` is what the pass has
    found.
    """

    basis: Node | None = field(default=None, repr=False)
    kept: Kept | None = field(default=None, repr=False)

    @property
    def selection(self) -> Selection | None:
        return self if self.traits.selects else None

    @property
    def reads_from(self) -> Node:
        return self.basis if self.basis is not None else self.input

    @property
    @abstractmethod
    def selection_key(self) -> str | None: ...

    @abstractmethod
    def selected(self, block: Block, named: NameRows) -> Block: ...

    def with_basis(self, basis: Node) -> Self:
        return replace(self, basis=basis)

    def with_kept(self, kept: Kept) -> Self:
        return replace(self, kept=kept)
