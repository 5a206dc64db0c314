"""Fuse neighbouring steps that only pick or name columns."""

from __future__ import annotations

from dataflow.graph.node import Node

__all__ = ["fuse_columns"]


def fuse_columns(node: Node) -> Node:
    """Let every step swallow the one below it where both together are one step."""
    made = node.over(*[fuse_columns(feed) for feed in node.inputs])
    if len(made.inputs) == 1:
        fused = made.fused(made.input)
        if fused is not None:
            return fuse_columns(fused)
    return made
