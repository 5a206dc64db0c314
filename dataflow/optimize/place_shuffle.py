"""A shuffle behind an operator that makes several rows of one permutes what each window gave."""

from __future__ import annotations

from dataflow.errors import PlanError
from dataflow.graph.node import Node, walk

__all__ = ["place_shuffle"]


def place_shuffle(node: Node) -> Node:
    """Replace such shuffles by their form for outputs; all others shuffle at the source.

    Raises:
        PlanError: two shuffles on one path stand on the same side of such an operator.
    """
    made = node.over(*[place_shuffle(feed) for feed in node.inputs])
    if not made.traits.shuffles or not any(step.traits.many for step in walk(made.input)):
        return made
    if any(step.traits.whole_window for step in walk(made.input)):
        raise PlanError("two shuffles stand behind flat_map.", hint="keep the last one")
    return made.for_outputs()
