"""Name the draws of random operators: the registered name and the ordinal among that name, depth first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from dataflow.graph.node import Node

__all__ = ["name_batch_draws", "name_draws"]


def name_draws(node: Node) -> Node:
    """Give every random operator without a `key=` of the user's one of its own."""
    return _named(node, Counter())


def name_batch_draws(steps: Sequence[Node]) -> list[Node]:
    """The same for the steps behind `batch`, which mix rows as none in front of it does."""
    seen: Counter[str] = Counter()
    return [_keyed(step, seen) for step in steps]


def _named(node: Node, seen: Counter[str]) -> Node:
    return _keyed(node.over(*[_named(feed, seen) for feed in node.inputs]), seen)


def _keyed(made: Node, seen: Counter[str]) -> Node:
    ordinal = seen[made.kind]
    seen[made.kind] += 1
    return made.keyed(f"{made.kind}:{ordinal}") if made.traits.random and made.key is None else made
