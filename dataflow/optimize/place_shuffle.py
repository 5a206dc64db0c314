"""A shuffle behind an operator that makes several rows of one permutes what each window gave."""

from __future__ import annotations

from dataflow.errors import PlanError
from dataflow.graph.node import Node, walk

__all__ = ["place_shuffle"]


def place_shuffle(node: Node) -> Node:
    """Replace such shuffles by their form for outputs; all others shuffle at the source.

    Raises:
        PlanError: of two shuffles on one path both stand behind such an operator, or windows of one size do not
            serve both.
    """
    made = node.over(*[place_shuffle(feed) for feed in node.inputs])
    if not made.traits.shuffles:
        return made
    steps = walk(made.input)
    many = next((step for step in steps if step.traits.many), None)
    if many is None:
        return made
    outputs = made.for_outputs()
    for step in steps:
        if step.traits.whole_window:
            raise PlanError(
                f"{made.label()} behind another shuffle of what {many.label()} gave.",
                hint="keep the last one",
            )
        # Single rows in any order can be cut into windows of any size.
        if step.traits.shuffles and step.window_size not in ("full", made.window_size):
            raise PlanError(
                f"{made.label()} behind {many.label()} permutes what windows of source rows gave, and those are "
                f"of {step.label()}.",
                hint=f"give both the same window, or keep one of them: shuffle({step.window_size!r})",
            )
    return outputs
