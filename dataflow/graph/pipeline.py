"""The part of `flow.Pipeline` that every verb builds on: a node, the seed, the schema."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Self

import pyarrow as pa

from dataflow.errors import PlanError
from dataflow.given import as_whole
from dataflow.graph.node import Node, makes_batches, walk

__all__ = ["PipelineBase"]


@dataclass(frozen=True, eq=False, repr=False)
class PipelineBase:
    """An immutable description of what to read and what to do with it; nothing runs until a loader does."""

    node: Node
    seed_value: int | None = field(default=None, kw_only=True)

    def then(self, node: Node) -> Self:
        """This pipeline with one more step; the step's inputs are set to it.

        Raises:
            PlanError: the step does not fit behind the ones there are.
        """
        if not isinstance(node, Node):
            raise PlanError(
                f"then({node!r}) is no step.", hint="give a step, as then(Scale(column='x', factor=2))"
            )
        step = node.over(self.node)
        if makes_batches(self.node) and not step.traits.after_batch:
            hint = f"call .{step.kind}(...) before .batch(...)"
            if step.traits.batches:
                hint = "leave one of the two out: a pipeline has one size of batches"
            raise PlanError(f"{step.label()} stands behind batch.", hint=hint)
        if step.traits.combines and not makes_batches(self.node):
            raise PlanError(
                f"{step.label()} mixes the rows of a batch, and there are no batches yet.",
                hint=f"call .{step.kind}(...) behind .batch(...)",
            )
        made = replace(self, node=step)
        made.schema  # noqa: B018 - wrong columns fail here, on the line that has them
        return made

    def seed(self, n: int) -> Self:
        """Key all randomness of the pipeline (shuffle, augmentation, replacements) by `n`; the default is 0.

        Raises:
            PlanError: `n` is no whole number from 0 to 2**63 - 1.
        """
        said = f"seed({n!r}) is no whole number from 0 to 2**63 - 1."
        return replace(
            self, seed_value=as_whole(n, said, hint="give one, as seed(7)", least=0, below=1 << 63)
        )

    @property
    def schema(self) -> pa.Schema | None:
        """The columns that come out, or None where only running the functions can tell."""
        return self.node.schema

    def __repr__(self) -> str:
        return " | ".join(step.label() for step in walk(self.node))
