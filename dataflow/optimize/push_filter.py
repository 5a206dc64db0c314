"""Push conditions on columns towards their sources, and make them index work where they get there.

A condition on columns that no function made is the same for every epoch: its kept rows are found in one pass
beforehand, and from then on lengths are known and lanes are equal.
"""

from __future__ import annotations

from dataflow.graph.node import Node, walk

__all__ = ["push_filter"]


def push_filter(node: Node) -> Node:
    """Move filters by expression down as far as they go; count them beforehand where no function is below."""
    made = node.over(*[push_filter(feed) for feed in node.inputs])
    if made.selection is not None:
        return made.selection.with_basis(made.input)
    if not made.traits.filters or made.traits.reads is None:
        return made
    return _pushed(made)


def _pushed(condition: Node) -> Node:
    below = condition.input
    if below.inputs and _commutes(condition, below):
        return below.over(*[_pushed(condition.over(feed)) for feed in below.inputs])
    return condition.counted_before(below) if _is_index_work(below) else condition


def _commutes(condition: Node, below: Node) -> bool:
    """Whether filtering the inputs of `below` is the same as filtering what comes out of it."""
    traits = below.traits
    if traits.counts_rows or traits.filters or traits.many or traits.batches or traits.pairs:
        return False
    reads = condition.traits.reads or frozenset()
    return traits.writes is not None and not reads & traits.writes


def _is_index_work(below: Node) -> bool:
    traits = [step.traits for step in walk(below)]
    # A function whose kept rows are found beforehand has been asked already.
    return all(t.keeps_rows and (t.selects or not t.holds_gil) and not t.random for t in traits)
