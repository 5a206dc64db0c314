"""Read only the columns that something above needs."""

from __future__ import annotations

from dataflow.graph.node import Node

__all__ = ["narrow_to", "push_projection"]

Wanted = frozenset[str] | None


def push_projection(node: Node) -> Node:
    """Narrow every source to the columns that the steps above it read or deliver."""
    schema = node.schema
    return _narrowed(node, None if schema is None else frozenset(schema.names))


def narrow_to(node: Node, columns: Wanted) -> Node:
    """A tree that gives these columns at least, and reads no others than they need; None for all."""
    return _narrowed(node, columns)


def _narrowed(node: Node, wanted: Wanted) -> Node:
    feeds = zip(node.inputs, node.needs(wanted), strict=True)
    made = node.over(*[_narrowed(feed, needed) for feed, needed in feeds])
    return made if wanted is None else made.narrowed(wanted)
