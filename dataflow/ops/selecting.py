"""SelectingNode: what all steps have in common whose kept rows are found in one pass beforehand."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Self

from dataflow.graph.node import Kept, Node

__all__ = ["SelectingNode"]


@dataclass(frozen=True, kw_only=True, eq=False)
class SelectingNode(Node):
    """A step that remembers what its pass evaluates and what it has found.

    `basis` is what that pass reads, set by a rule, which may narrow the input behind it; `kept` is what the pass has
    found.
    """

    basis: Node | None = field(default=None, repr=False)
    kept: Kept | None = field(default=None, repr=False)

    @property
    def selection_basis(self) -> Node:
        return self.basis if self.basis is not None else self.input

    def with_basis(self, basis: Node) -> Self:
        return replace(self, basis=basis)

    def with_kept(self, kept: Kept) -> Self:
        return replace(self, kept=kept)
