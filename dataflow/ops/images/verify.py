"""Files of images are read to their end where bad rows are left out or replaced."""

from __future__ import annotations

from dataflow.graph.node import Node
from dataflow.ops.images.step import ImageStep

__all__ = ["verify_images"]


def verify_images(root: Node) -> Node:
    """The same steps; those that open files find all damage, whatever is cut out of the images behind them."""
    below = [verify_images(node) for node in root.inputs]
    changed = any(new is not old for new, old in zip(below, root.inputs, strict=True))
    node = root.over(*below) if changed else root
    return node.verified() if isinstance(node, ImageStep) else node
