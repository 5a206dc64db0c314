"""Read only the columns that something above needs."""

from __future__ import annotations

from collections.abc import Sequence

from dataflow.graph.node import Node
from dataflow.ops.select import Select

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
    feeds = [_narrowed(feed, needed) for feed, needed in zip(node.inputs, node.needs(wanted), strict=True)]
    schema = node.schema
    if node.traits.joins and not node.traits.pairs and wanted is not None and schema is not None:
        names = [name for name in schema.names if name in wanted]
        feeds = [_exactly(feed, names) for feed in feeds]
    made = node.over(*feeds)
    return made if wanted is None else made.narrowed(wanted)


def _exactly(node: Node, names: Sequence[str]) -> Node:
    """The columns `names` of a step: not every step can be narrowed, and what is joined must be alike."""
    schema = node.schema
    if schema is None or set(schema.names) == set(names):
        return node
    return Select(inputs=(node,), columns=tuple(names))
