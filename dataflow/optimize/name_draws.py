"""Name the draws of random operators: the registered name and the ordinal among that name, depth first."""

from __future__ import annotations

from collections import Counter

from dataflow.graph.node import Node

__all__ = ["name_draws"]


def name_draws(node: Node) -> Node:
    """Give every random operator without a `key=` of the user's one of its own."""
    return _named(node, Counter())


def _named(node: Node, seen: Counter[str]) -> Node:
    made = node.over(*[_named(feed, seen) for feed in node.inputs])
    ordinal = seen[made.kind]
    seen[made.kind] += 1
    return made.keyed(f"{made.kind}:{ordinal}") if made.traits.random and made.key is None else made
