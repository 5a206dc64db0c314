"""The rules, in the order in which they run, and what each made of the pipeline."""

from __future__ import annotations

from collections.abc import Callable

from dataflow.errors import InternalError
from dataflow.graph.node import Node
from dataflow.optimize.fuse_columns import fuse_columns
from dataflow.optimize.name_draws import name_draws
from dataflow.optimize.place_shuffle import place_shuffle
from dataflow.optimize.push_filter import push_filter
from dataflow.optimize.push_projection import push_projection

__all__ = ["RULES", "optimize"]

Rule = Callable[[Node], Node]

RULES: tuple[Rule, ...] = (
    # First of all: keys follow the pipeline as it was written, so that no rule can change a draw.
    name_draws,
    # Before the projection: a filter that has reached its source no longer needs its columns above.
    push_filter,
    place_shuffle,
    # Before the fusion, which would hide which columns a step reads.
    push_projection,
    fuse_columns,
)


def optimize(node: Node) -> Node:
    """Apply all rules; after each the schema is what it was before.

    Raises:
        InternalError: a rule changed the schema.
    """
    for rule in RULES:
        before, node = node, rule(node)
        if before.schema is not None and node.schema is not None and before.schema != node.schema:
            raise InternalError(f"{rule.__name__} changed the schema from {before.schema} to {node.schema}.")
    return node
