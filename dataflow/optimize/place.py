"""Whether the last step of a pipeline may stand where it stands, told while the pipeline is written."""

from __future__ import annotations

from dataflow.errors import PlanError
from dataflow.graph.node import Node, walk
from dataflow.optimize.place_shuffle import place_shuffle
from dataflow.optimize.push_filter import push_filter

__all__ = ["check_place"]


def check_place(step: Node) -> None:
    """The step can follow those below it.

    Raises:
        PlanError: it counts or joins rows of an input that is shuffled or repeated, or of which it is not known how
            many rows it has; or it is a shuffle of what is shuffled already, or that has no windows there.
    """
    traits = step.traits
    if traits.counts_rows or traits.joins:
        for below in _all_below(step):
            if below.traits.changes_order:
                raise PlanError(
                    f"{step.kind} of an input with {below.label()}.",
                    hint=f"{below.kind} behind it: {step.kind}(...).{below.kind}(...)",
                )
    if traits.counts_rows:
        for below in _all_below(push_filter(step)):
            if not below.traits.keeps_rows:
                hint = f"put {step.kind} in front of it" + (
                    ", or call counted() first" if below.traits.filters else ""
                )
                raise PlanError(
                    f"{step.kind} behind {below.label()}: how many rows that gives is not known.", hint=hint
                )
    if traits.shuffles and _shuffled_already(step.input):
        raise PlanError(
            f"{step.label()} of what is shuffled or repeated already.",
            hint="keep one shuffle, in front of repeat",
        )
    if traits.shuffles:
        place_shuffle(step)


def _all_below(step: Node) -> list[Node]:
    return [below for feed in step.inputs for below in walk(feed)]


def _shuffled_already(node: Node) -> bool:
    """Whether an order was changed on the way from the last step that makes several rows of one."""
    if node.traits.changes_order:
        return True
    return not node.traits.many and any(_shuffled_already(feed) for feed in node.inputs)
